"""Commands for training, evaluation and codes, and the entry point of the command line.

A command parses its arguments, calls the library, and prints the result. Commands import heavy modules only when they
run, so that help is shown without delay.
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
    Download,
    Epochs,
    Inputs,
    Json,
    Layers,
    Listing,
    LocalRun,
    Minutes,
    Nodes,
    OtherData,
    OutputFolder,
    Overwrite,
    Precision,
    Profile,
    Run,
    Scale,
    Seed,
    Settings,
    Speaker,
    Split,
    Steps,
    Strict,
    TokenPattern,
)
from sqvae.cli.root import (
    app,
    command_line,
    ended_by_sigterm,
    is_first_process,
    is_launched,
    ran_in_processes,
    warnings_on_console,
)
from sqvae.files import claims_end_here


@app.command(epilog="Example: sqvae train --data photos -o runs/photos --epochs 50")
def train(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A name from `sqvae list recipes`. Leave it out for your own data."),
    ] = None,
    data: Data = None,
    settings: Settings = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="RUN", help="The folder of the run. Default: a new folder in runs/."),
    ] = None,
    seed: Seed = None,
    epochs: Epochs = None,
    steps: Steps = None,
    minutes: Minutes = None,
    devices: Devices = None,
    nodes: Nodes = 1,
    precision: Annotated[
        Precision | None,
        typer.Option(
            "--precision", metavar="no|bf16|fp16", help="Mixed precision, on GPUs that support it. Default: no."
        ),
    ] = None,
    compile_model: Annotated[
        bool,
        typer.Option(
            "--compile", help="Compile the model before training. Steps are faster, which pays off in long runs."
        ),
    ] = False,
    profile: Annotated[
        Profile,
        typer.Option(
            "--profile",
            metavar="recipe|any-budget|paper|official",
            help="The settings of the recipe, of the schedule for any number of steps, of the paper, or of its "
            "authors' code.",
        ),
    ] = Profile.recipe,
    strict: Strict = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the settings and the expected duration, without training.")
    ] = False,
) -> None:
    """Train a model. Ctrl-C saves a checkpoint, and `sqvae resume` continues from it.

    The folder of the run contains the settings, the checkpoints, the log and the plots.
    """
    from sqvae.cli import console
    from sqvae.cli.training import show_forecast, show_kind_of_data, train_with_progress
    from sqvae.runs import check_length, experiment_for, new_folder
    from sqvae.runs import train as train_run
    from sqvae.training import RunFolder

    if out is not None and is_first_process() and not dry_run:
        RunFolder(out).check_new()  # before the data is inspected, which can take long
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
        show_kind_of_data(taken_as, experiment.data.source)
        show_forecast(experiment, minutes)
        return
    folder = out or new_folder(experiment)
    if ran_in_processes(devices, nodes, ["--out", str(folder)] if out is None else []):
        return
    if is_first_process():
        show_kind_of_data(taken_as, experiment.data.source)
        console.note(f"training {experiment.recipe} in {folder}")
    train_with_progress(RunFolder(folder), partial(train_run, experiment, folder, minutes=minutes, taken_as=taken_as))


@app.command(epilog="Example: sqvae resume runs/photos")
def resume(
    run: LocalRun,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DIR|NAME", help="The present location of the data, if it has moved."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", metavar="N", min=1, help="The total number of epochs, with those already done."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", metavar="N", min=1, help="The total number of steps, with those already done."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change training.epochs, .steps, .until, .log_every or .checkpoint_minutes. Other settings are fixed.",
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="NAME", help="The checkpoint: last, or previous for the one before it. Default: last."
        ),
    ] = None,
    devices: Devices = None,
    nodes: Nodes = 1,
) -> None:
    """Resume a run from its last checkpoint. The weights are the same as if it had never stopped."""
    from sqvae.cli.training import train_prior_with_progress, train_with_progress
    from sqvae.runs import check_length, is_prior, processes_of
    from sqvae.runs import resume as resume_run
    from sqvae.training import RunFolder

    if ran_in_processes(devices or processes_of(run), nodes, []):
        return
    check_length(epochs, steps, None)
    changes = [*([] if steps is None else [f"training.steps={steps}"]), *(settings or [])]
    train_run = train_prior_with_progress if is_prior(run) else train_with_progress
    work = partial(resume_run, run, source=data, checkpoint=checkpoint, epochs=epochs, settings=changes)
    train_run(RunFolder(run), work)


@app.command(epilog="Example: sqvae evaluate runs/photos --split test")
def evaluate(
    run: Run,
    data: OtherData = None,
    split: Annotated[
        Split, typer.Option("--split", metavar="train|validation|test", help="The part of the data to evaluate on.")
    ] = Split.test,
    as_json: Json = False,
    batch: Annotated[
        int | None,
        typer.Option("--batch", metavar="N", min=1, help="The batch size. Default: that of the training."),
    ] = None,
    no_rates: Annotated[
        bool, typer.Option("--no-rates", help="Skip the comparison of bits per pixel with JPEG and WebP.")
    ] = False,
) -> None:
    """Measure reconstruction error, codebook usage and likelihood on held-out data.

    The results are saved in the folder of the run as results-SPLIT.json, .md and .png.
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
    out: OutputFolder,
    batch: Batch = 64,
    layers: Layers = None,
    strict: Strict = False,
    overwrite: Overwrite = False,
    speaker: Speaker = None,
    audio: Audio = False,
    levels: Annotated[
        int | None,
        typer.Option(
            "--levels",
            metavar="N",
            min=1,
            help="For models with several levels of codes: decode the coarsest N only. Default: all.",
        ),
    ] = None,
) -> None:
    """Encode and decode images, recordings or vectors, and save the reconstructions."""
    from sqvae.cli import console
    from sqvae.cli.results import show_saved
    from sqvae.cli.skipped import SkippedFiles
    from sqvae.inference import noun_of
    from sqvae.inference import reconstruct as reconstructed

    with SkippedFiles(noun_of(run)) as skipped, console.progress_bar() as progress:
        saved = reconstructed(
            run,
            inputs,
            out,
            batch=batch,
            layers=layers,
            strict=strict,
            overwrite=overwrite,
            speaker=speaker,
            audio=audio,
            levels=levels,
            on_skip=skipped,
            on_note=skipped.note,
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
            "-o", "--out", metavar="FILE", help="The file of codes: .safetensors or .npz, or .txt for speech."
        ),
    ],
    batch: Batch = 64,
    layers: Layers = None,
    strict: Strict = False,
    overwrite: Overwrite = False,
) -> None:
    """Encode images, recordings or vectors into one file of codes.

    The file also describes the model and the inputs. The memory use does not depend on the number of inputs.
    """
    from sqvae.cli import console
    from sqvae.cli.skipped import SkippedFiles
    from sqvae.data.wording import counted
    from sqvae.inference import encode as encoded
    from sqvae.inference import noun_of

    with SkippedFiles(noun_of(run)) as skipped, console.progress_bar() as progress:
        codes = encoded(
            run,
            inputs,
            out,
            batch=batch,
            layers=layers,
            strict=strict,
            overwrite=overwrite,
            on_skip=skipped,
            on_note=skipped.note,
            warn=console.warning,
            progress=progress,
        )
    each = f"{'x'.join(map(str, codes.shape))} code{'' if codes.shape == (1,) else 's'} each,"
    if codes.codes_per_second:
        each = f"{codes.seconds / 60:.1f} minutes, {codes.codes_per_second:g} codes per second"
    console.out.print(
        f"{counted(codes.number, codes.noun)}, {each} below {codes.codebook_size}: "
        f"{out} ({out.stat().st_size:,} bytes)",
        soft_wrap=codes.codes_per_second > 0,
    )


@app.command(epilog="Example: sqvae decode runs/photos codes.safetensors -o decoded")
def decode(
    run: Run,
    codes: Annotated[Path, typer.Argument(metavar="CODES", help="A file of codes from `sqvae encode`.")],
    out: OutputFolder,
    batch: Batch = 64,
    overwrite: Overwrite = False,
    speaker: Speaker = None,
    audio: Audio = False,
) -> None:
    """Decode a file of codes into images, log-mel frames or vectors. Codes of another model are refused."""
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


@app.command(epilog="Example: sqvae tokens codes.safetensors -o ids.jsonl --pattern delayed")
def tokens(
    codes: Annotated[Path, typer.Argument(metavar="CODES", help="A file of codes from `sqvae encode`.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The table to write (.jsonl).")],
    pattern: Annotated[
        TokenPattern,
        typer.Option(
            "--pattern",
            metavar="flat|delayed",
            help="The order of the ids: layer after layer at each position, or one step later for each layer.",
        ),
    ] = TokenPattern.flat,
    overwrite: Overwrite = False,
) -> None:
    """Write codes as token ids for training language models: a table with one row for each example.

    Each layer of codes has ids of its own, and one more id stands for no code. Codes can be restored exactly.
    """
    from sqvae.cli import console
    from sqvae.inference import write_tokens

    with console.progress_bar() as progress:
        file = write_tokens(codes, out, pattern=pattern.value, overwrite=overwrite, progress=progress)
    vocabulary = file.vocabulary
    layers = "" if vocabulary.layers is None else f" in each of {vocabulary.layers} layers"
    console.out.print(
        f"{out}: the codes of {codes} as token ids below {vocabulary.size:,}: {vocabulary.codebook_size:,} codes"
        f"{layers}, and {vocabulary.pad:,} for no code",
        soft_wrap=True,
    )


@app.command(epilog="Example: sqvae abx runs/speech triphones.item --data recordings")
def abx(
    run: Run,
    items: Annotated[
        Path, typer.Argument(metavar="ITEMS", help="A list of items in the format of the ZeroSpeech challenge.")
    ],
    data: Annotated[
        list[str],
        typer.Option("--data", metavar="DIR|NAME", help="The recordings of the items. This option may be repeated."),
    ],
    mode: Annotated[
        list[str] | None,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="The test: within or across speakers. This option may be repeated. Default: both.",
        ),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on",
            metavar="WHAT",
            help="The representation: vectors, codes, encodings or frames. This option may be repeated. Default: all.",
        ),
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Skip items whose recording is missing.")
    ] = False,
) -> None:
    """Measure how well the units of a speech model distinguish phones: the ABX error, where 50% is chance level."""
    from rich.table import Table

    from sqvae.analysis import abx_of_run
    from sqvae.cli import console
    from sqvae.cli.skipped import SkippedFiles
    from sqvae.modalities.speech.abx import REPRESENTATIONS

    with console.progress_bar() as progress, SkippedFiles("recording") as skipped:
        found = abx_of_run(
            run,
            items,
            data,
            modes=mode or (),
            representations=on or (),
            allow_missing=allow_missing,
            on_skip=skipped,
            progress=progress,
        )
    table = Table(
        "representation",
        "mode",
        "error",
        "triples",
        title=f"ABX, {found.items:,} items of {items.name}; 50% is chance level",
    )
    for (one_mode, name), result in found.results.items():
        table.add_row(REPRESENTATIONS[name].description, one_mode, f"{100 * result.error:.2f}%", f"{result.triples:,}")
    console.out.print(table)
    if found.missing:
        console.note(f"{found.missing:,} items were skipped because their recordings are missing")
    if found.too_short:
        console.note(f"up to {found.too_short:,} items were skipped because they are shorter than a code")


@app.command(epilog="Example: sqvae inspect runs/photos")
def inspect(
    run: LocalRun,
    data: OtherData = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="The folder for plots. Default: RUN/inspection.")
    ] = None,
    codes: Annotated[
        int,
        typer.Option("--codes", metavar="N", min=1, max=1024, help="The largest number of codes to show one by one."),
    ] = 64,
    pictures: Annotated[
        int, typer.Option("--pictures", metavar="N", min=1, help="The largest number of held-out examples to use.")
    ] = 2000,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Print the text only, without plots.")] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace existing plots in a folder outside the run. Plots inside the run are always replaced.",
        ),
    ] = False,
) -> None:
    """Describe the model of a run, its training and its codebook usage, and plot the meaning of its codes."""
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
        typer.Argument(metavar="NAME", help="Tables and figures from `sqvae list reproductions`."),
    ] = None,
    scale: Annotated[
        Scale,
        typer.Option(
            "--scale",
            metavar="smoke|short|paper",
            help="The scale of the experiments: smoke takes a minute, short takes hours, and paper takes days.",
        ),
    ] = Scale.short,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", metavar="N", min=1, max=10, help="The number of runs of each model, each with its own seed."
        ),
    ] = 1,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="ROW",
            help="Only these runs, by a model, a data set, or a tag such as k=128. This option may be repeated.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="The number of simultaneous runs. Default: one for each core."),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="DIR|NAME", help="The folder of the data sets, or other data.")
    ] = None,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="The folder for records, figures and pages.")
    ] = Path("results"),
    runs: Annotated[
        Path | None,
        typer.Option("--runs", metavar="DIR", help="The folder for the runs themselves. Default: runs in --out."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="The page in Markdown. Default: results.md in --out.")
    ] = None,
    download: Download = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Report the finished runs, without training.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs, without training.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a page of the same name that this command has not written.")
    ] = False,
) -> None:
    """Reproduce tables and figures of the paper, with a page that compares them with the paper's numbers.

    Finished runs are kept, and interrupted runs are resumed.
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
    kind: Annotated[
        Listing, typer.Argument(metavar="WHAT", help="The list to show: recipes, quantizers, data or reproductions.")
    ],
) -> None:
    """List recipes, quantizers, data sets, or tables and figures of the paper."""
    from rich.markup import escape
    from rich.table import Table

    from sqvae.cli import console
    from sqvae.paper.listing import listed

    table = Table(box=None, show_header=False)
    for name, description in listed(kind.value):
        table.add_row(f"[bold]{name}[/]", escape(description))
    console.out.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit code. An error is printed as one message on standard error."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    command_line.set(given)
    try:
        with ended_by_sigterm(), warnings_on_console(), claims_end_here():
            app(args=given, prog_name="sqvae")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Exception as failure:
        if is_launched() and "closed by peer" in str(failure):
            return 1  # another process has failed, and prints the reason
        ours = type(failure).__module__.startswith("sqvae.")
        if "SQVAE_DEBUG" in os.environ or not (ours or isinstance(failure, ValueError | OSError | ModuleNotFoundError)):
            raise
        from sqvae.reports.wording import as_typed

        print(f"sqvae: {as_typed(str(failure))}", file=sys.stderr)
        return 1
    return 0
