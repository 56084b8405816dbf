"""The commands. Each is thin: it reads what a person typed, calls the library, and says what came of it.

Nothing heavy is imported before a command runs, so that help is instant.
"""

import dataclasses
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sqvae.cli.launch import is_first_process, is_launched
from sqvae.cli.options import (
    Audio,
    Batch,
    Data,
    Devices,
    Epochs,
    Extent,
    Kind,
    Nodes,
    Overwrite,
    Precision,
    Profile,
    Run,
    Seed,
    Settings,
    Speaker,
    Split,
    Strict,
)
from sqvae.cli.root import app, is_of_speech, launched_elsewhere, typed_words


@app.command(epilog="Example: sqvae train --data photos --out runs/photos --set quantizer.codebook_size=1024")
def train(
    recipe: Annotated[str | None, typer.Argument(help="A name of `sqvae list recipes`. Your own data: none.")] = None,
    data: Data = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="RUN", help="The run's folder. Default: a new one in runs/.")
    ] = None,
    seed: Seed = None,
    epochs: Epochs = None,
    devices: Devices = None,
    nodes: Nodes = 1,
    precision: Annotated[Precision | None, typer.Option("--precision", help="Mixed precision.")] = None,
    compile_model: Annotated[bool, typer.Option("--compile", help="Compile first; faster steps in long runs.")] = False,
    profile: Annotated[
        Profile, typer.Option("--profile", help="The paper as printed, or what its authors' code does.")
    ] = Profile.paper,
    strict: Strict = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the configuration, and train nothing.")] = False,
) -> None:
    """Train a model, in a folder that holds everything about it. Ctrl-C saves; `sqvae resume` goes on."""
    from sqvae.cli import console
    from sqvae.cli.training import asked_for, new_folder, watched
    from sqvae.experiment import train as train_run
    from sqvae.training import RunFolder

    chosen = precision.value if precision else None
    experiment = asked_for(recipe, data, settings or [], seed, epochs, chosen, compile_model, strict, profile.value)
    if dry_run:
        console.out.print_json(data=dataclasses.asdict(experiment))
        return
    folder = out or new_folder(experiment)
    if launched_elsewhere(devices, nodes, ["--out", str(folder)] if out is None else []):
        return
    if is_first_process():
        console.note(f"training {experiment.recipe} in {folder}")
    watched(RunFolder(folder), partial(train_run, experiment, folder))


@app.command(epilog="Example: sqvae resume runs/photos")
def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    data: Annotated[
        str | None, typer.Option("--data", metavar="DIR|NAME", help="Where the data is now, if it has moved.")
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Train for so many epochs in all.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option("--from", metavar="NAME", help="'previous': the newest checkpoint but one.")
    ] = None,
    devices: Devices = None,
    nodes: Nodes = 1,
) -> None:
    """Go on exactly where a run stands: the same weights come out as if it had never stopped."""
    from sqvae.cli.priors import is_prior, watched_prior
    from sqvae.cli.training import processes_of, watched
    from sqvae.experiment import resume as resume_run
    from sqvae.training import RunFolder

    if launched_elsewhere(devices or processes_of(run), nodes, []):
        return
    watch = watched_prior if is_prior(run) else watched
    watch(RunFolder(run), partial(resume_run, run, source=data, checkpoint=checkpoint, epochs=epochs))


@app.command(epilog="Example: sqvae evaluate runs/photos --split test")
def evaluate(
    run: Run,
    data: Data = None,
    split: Annotated[Split, typer.Option("--split", help="Which part of the data.")] = Split.test,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
    batch: Annotated[
        int | None, typer.Option("--batch", min=1, help="Pictures at a time. Default: as in training.")
    ] = None,
    no_rates: Annotated[bool, typer.Option("--no-rates", help="Leave out what pictures cost as files.")] = False,
) -> None:
    """Measure error, use of codes and likelihood on held-out pictures. Kept in RUN/results-SPLIT.json and .md."""
    import json

    from sqvae.cli import console
    from sqvae.cli.evaluation import evaluate_run, show

    with console.progress_bar() as progress:
        announce = (lambda text: None) if as_json else console.note
        result = evaluate_run(run, data, split.value, batch, progress, announce, rates=not no_rates)
    if as_json:
        print(json.dumps(result.record, indent=2))
        return
    show(result)


@app.command(epilog="Example: sqvae reconstruct runs/photos cat.jpg dog.jpg -o rebuilt")
def reconstruct(
    run: Run,
    inputs: Annotated[list[str], typer.Argument(metavar="PICTURES...", help="Pictures, folders, archives or arrays.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Where the pictures go.")],
    batch: Batch = 64,
    strict: Strict = False,
    overwrite: Overwrite = False,
    speaker: Speaker = None,
    audio: Audio = False,
) -> None:
    """Send pictures, or recordings, through their codes and back, and save what comes out."""
    from sqvae.cli import console
    from sqvae.cli.pictures import PictureFolder, check_apart
    from sqvae.data import count, stream
    from sqvae.experiment import load_tokenizer

    if not overwrite:
        check_apart(inputs, out)
    if is_of_speech(run, speaker=speaker, audio=audio):
        from sqvae.cli.speech import reconstruct_recordings

        reconstruct_recordings(run, inputs, out, speaker=speaker, audio=audio, strict=strict, overwrite=overwrite)
        return
    tokenizer = load_tokenizer(run)
    folder, seen = PictureFolder(out, overwrite=overwrite), 0
    with console.progress_bar() as progress:
        total = count(inputs, labels=tokenizer.preprocessing.labels)
        for names, pictures in stream(
            inputs,
            tokenizer.preprocessing,
            batch=batch,
            strict=strict,
            on_skip=lambda one: console.warning(f"left out: {one}"),
        ):
            folder.save(names, tokenizer.medium.images(tokenizer.reconstruct(pictures)))
            seen += len(names)
            progress("reconstructing", seen, total)
    if not seen:
        raise ValueError(f"none of the {tokenizer.medium.noun}s can be read: nothing has been written to {out}")
    console.out.print(f"{console.counted(seen, tokenizer.medium.noun)} in {out}")


@app.command(epilog="Example: sqvae encode runs/photos photos -o codes.safetensors")
def encode(
    run: Run,
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="Pictures or recordings, folders, archives, names of data.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The file of codes.")],
    batch: Batch = 64,
    strict: Strict = False,
) -> None:
    """Turn pictures, or recordings, into codes, in one file that describes itself. Memory stays flat, however many."""
    from sqvae.cli import console
    from sqvae.cli.pictures import check_target
    from sqvae.cli.training import is_unfinished
    from sqvae.codec import encode_to_file
    from sqvae.experiment import load_tokenizer

    check_target(out)
    of_speech = is_of_speech(run)
    if is_unfinished(run):
        console.warning(
            f"{run} is not trained to its end. When it goes on it becomes another model, which can't decode these "
            f"codes; to keep this one, copy {run / 'best'}"
        )
    if of_speech:
        from sqvae.cli.speech import encode_recordings

        encode_recordings(run, inputs, out, strict=strict)
        return
    tokenizer = load_tokenizer(run)
    with console.progress_bar() as progress:
        codes = encode_to_file(
            tokenizer,
            inputs,
            out,
            batch_size=batch,
            strict=strict,
            on_skip=lambda one: console.warning(f"left out: {one}"),
            progress=progress,
        )
    each = "x".join(map(str, codes.shape[1:]))
    console.out.print(
        f"{console.counted(len(codes), tokenizer.medium.noun)}, {each} codes each, below {codes.codebook_size}: "
        f"{out} ({out.stat().st_size:,} bytes)"
    )


@app.command(epilog="Example: sqvae decode runs/photos codes.safetensors -o decoded")
def decode(
    run: Run,
    codes: Annotated[Path, typer.Argument(metavar="CODES", help="A file that `sqvae encode` has written.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Where the pictures go.")],
    batch: Batch = 64,
    overwrite: Overwrite = False,
    speaker: Speaker = None,
    audio: Audio = False,
) -> None:
    """Turn codes back into pictures, or into log-mel frames and sound. Codes of another model are refused."""
    from sqvae.cli import console
    from sqvae.cli.pictures import PictureFolder
    from sqvae.codec import CodeFile, decode_file
    from sqvae.experiment import load_tokenizer

    if is_of_speech(run, speaker=speaker, audio=audio):
        from sqvae.cli.speech import decode_units

        decode_units(run, codes, out, speaker=speaker, audio=audio, overwrite=overwrite)
        return
    tokenizer = load_tokenizer(run)
    total, seen, folder = len(CodeFile.open(codes)), 0, PictureFolder(out, overwrite=overwrite)
    with console.progress_bar() as progress:
        for names, pictures in decode_file(tokenizer, codes, batch_size=batch):
            folder.save(names, tokenizer.medium.images(pictures))
            seen += len(names)
            progress("decoding", seen, total)
    console.out.print(f"{console.counted(seen, tokenizer.medium.noun)} in {out}")


@app.command(epilog="Example: sqvae abx runs/speech triphones.item --data recordings")
def abx(
    run: Run,
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="A list of items in the format of ZeroSpeech.")],
    data: Annotated[list[str], typer.Option("--data", metavar="DIR|NAME", help="Where their recordings are.")],
    mode: Annotated[
        list[str] | None, typer.Option("--mode", metavar="MODE", help="within or across speakers. Default: both.")
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="WHAT", help="vectors, codes, encodings or frames. Default: all."),
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Leave out items of recordings that are not there.")
    ] = False,
) -> None:
    """Test how well the units of a model of speech tell phones apart: the ABX error, of which 50% is chance."""
    from sqvae.cli.speech import report_abx

    report_abx(run, items, data, mode or [], on or [], allow_missing)


@app.command(epilog="Example: sqvae inspect runs/photos")
def inspect(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    data: Annotated[
        str | None, typer.Option("--data", metavar="DIR|NAME", help="Pictures to look at. Default: the run's own.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Where plots go. Default: RUN/inspection.")
    ] = None,
    codes: Annotated[int, typer.Option("--codes", min=1, max=1024, help="Codes to show one by one.")] = 64,
    pictures: Annotated[int, typer.Option("--pictures", min=1, help="Held-out pictures to look at, at most.")] = 2000,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw nothing: words only.")] = False,
) -> None:
    """Say what a run is, how it trained and which codes it uses, in plain words; and draw what its codes stand for."""
    from rich.markup import escape

    from sqvae.cli import console
    from sqvae.cli.inspection import Plots, inspect_run

    with console.progress_bar() as progress:
        plots = None if no_plots else Plots(out, data, codes, pictures, progress, console.note)
        sections = inspect_run(run, plots)
    for section in sections:
        console.out.print(f"[bold]{section.title}[/]")
        for line in section.lines:
            console.out.print(f"  {escape(line)}", soft_wrap=True)


@app.command(epilog="Example: sqvae reproduce figure-2 --scale smoke")
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Tables and figures: see `sqvae list reproductions`.")
    ] = None,
    scale: Annotated[
        Extent, typer.Option("--scale", help="smoke: a minute; short: hours; paper: as the paper has it, days.")
    ] = Extent.short,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=10, help="So many runs of each model.")] = 1,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ROW", help="A model, a data set, or such as k=128; may be repeated."),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Runs at a time. Default: one a core.")] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="DIR|NAME", help="Where the data sets are, or other data.")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Records, drawings and pages.")] = Path(
        "results"
    ),
    runs: Annotated[
        Path | None, typer.Option("--runs", metavar="DIR", help="The runs themselves. Default: runs in --out.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="The page in Markdown. Default: results.md in --out.")
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Train nothing: report what is finished.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs, and do nothing.")] = False,
) -> None:
    """Make the paper's tables and figures. What is finished is kept, and what was interrupted goes on."""
    from sqvae.cli.reproduction import Request, carry_out, show_plan, write_reports

    request = Request(
        names=names or [],
        scale=scale.value,
        seeds=seeds,
        only=only or [],
        jobs=jobs,
        data=data,
        out=out,
        runs=runs or out / "runs",
        page=page or out / "results.md",
    ).checked()
    if dry_run:
        show_plan(request)
    elif no_run:
        write_reports(request)
    elif code := carry_out(request):
        raise typer.Exit(code)


@app.command("list", epilog="Example: sqvae list recipes")
def list_things(kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """Show what there is: recipes, quantizers, data sets, or the paper's tables and figures."""
    from rich.markup import escape
    from rich.table import Table

    from sqvae.cli import console
    from sqvae.cli.listing import listing

    table = Table(box=None, show_header=False)
    for name, words in listing(kind.value):
        table.add_row(f"[bold]{name}[/]", escape(words))
    console.out.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit code. What goes wrong is said in one message, on standard error."""
    typed = sys.argv[1:] if arguments is None else list(arguments)
    typed_words.set(typed)
    try:
        app(args=typed)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Exception as failure:
        if is_launched() and "closed by peer" in str(failure):
            return 1  # another process has failed, and says why
        ours = type(failure).__module__.startswith("sqvae.")
        if "SQVAE_DEBUG" in os.environ or not (ours or isinstance(failure, ValueError | OSError | ModuleNotFoundError)):
            raise
        print(f"sqvae: {failure}", file=sys.stderr)
        return 1
    return 0
