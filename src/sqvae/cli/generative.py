"""Commands for priors, samples, manipulated codes and compression."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sqvae.cli.options import (
    Audio,
    Batch,
    Devices,
    Download,
    Epochs,
    Images,
    Json,
    Layers,
    Minutes,
    Nodes,
    OtherData,
    OutputFolder,
    OutputImage,
    Overwrite,
    Prior,
    Run,
    SampleSeed,
    Seed,
    Settings,
    Steps,
    Strict,
)
from sqvae.cli.root import app, is_first_process, ran_in_processes


@app.command("train-prior", epilog="Example: sqvae train-prior runs/photos --network pixelsnail")
def train_prior(
    run: Run,
    network: Annotated[
        str,
        typer.Option(
            "--network", metavar="NAME", help="The network: pixelcnn, or pixelsnail, which is better and slower."
        ),
    ] = "pixelcnn",
    given: Annotated[
        str | None,
        typer.Option(
            "--given",
            metavar="RUN",
            help="A coarser model of the same images, on whose codes the prior is conditioned.",
        ),
    ] = None,
    by_class: Annotated[
        bool,
        typer.Option(
            "--by-class", help="Condition the prior on the class of each image, to sample from a class later."
        ),
    ] = False,
    until_nll: Annotated[
        float | None,
        typer.Option(
            "--until-nll",
            metavar="X",
            help="Stop when the negative log-likelihood on the validation set reaches X nats per code.",
        ),
    ] = None,
    data: OtherData = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="The folder for the prior. Default: RUN/prior.")
    ] = None,
    seed: Seed = None,
    epochs: Epochs = None,
    steps: Steps = None,
    minutes: Minutes = None,
    devices: Devices = None,
    nodes: Nodes = 1,
) -> None:
    """Train an autoregressive prior over the codes of a model, for samples and for compression."""
    from sqvae.cli import console
    from sqvae.cli.training import train_prior_with_progress
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
            f"{run} is not trained to its end. If it is resumed, its codes change, and this prior no longer fits them"
        )
    if ran_in_processes(devices, nodes, []):
        return
    if is_first_process():
        console.note(f"training {experiment.prior.name} over the codes of {run} in {folder}")
    train_prior_with_progress(RunFolder(folder), partial(train, experiment, folder, minutes=minutes))


@app.command(epilog="Example: sqvae sample runs/photos -n 64 -o samples.png")
def sample(
    run: Run,
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE|DIR",
            help="An image of all samples (.png), or a folder for one file per sample.",
        ),
    ],
    number: Annotated[int, typer.Option("-n", "--number", metavar="N", min=1, help="The number of samples.")] = 16,
    temperature: Annotated[
        float,
        typer.Option(
            "--temperature", metavar="X", min=0, help="The temperature. Below 1, samples are likelier and less diverse."
        ),
    ] = 1.0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="N", min=1, help="Sample each code from the N likeliest.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            "--top-p", metavar="X", help="Sample each code from the likeliest with a total probability of X, at most 1."
        ),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--class",
            metavar="NAME",
            help="Sample from this class, if the prior knows classes. This option may be repeated.",
        ),
    ] = None,
    seed: SampleSeed = 0,
    length: Annotated[
        float | None,
        typer.Option(
            "--seconds", metavar="X", min=0.1, help="For speech: the duration of each sample in seconds. Default: 3."
        ),
    ] = None,
    prior: Prior = None,
    batch: Batch = 64,
    overwrite: Overwrite = False,
    speaker: Annotated[
        str | None,
        typer.Option(
            "--speaker",
            metavar="NAME",
            help="For speech: the voice of the output. Default: the first that the model knows.",
        ),
    ] = None,
    audio: Audio = False,
) -> None:
    """Sample new images or utterances from a model and its prior."""
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
    inputs: Images,
    out: OutputImage,
    k: Annotated[
        list[int] | None,
        typer.Option(
            "-k",
            metavar="N",
            min=1,
            help="The rank of the neighbour. This option may be repeated. Default: 3, 5 and 10.",
        ),
    ] = None,
    strict: Strict = False,
    overwrite: Overwrite = False,
) -> None:
    """Replace every code of an image by its k-th nearest code, and decode the result.

    If near codes have similar meanings, the images change little.
    """
    from sqvae.analysis import save_neighbours
    from sqvae.cli import console
    from sqvae.cli.skipped import SkippedFiles
    from sqvae.inference import noun_of

    ks = k or [3, 5, 10]
    with SkippedFiles(noun_of(run)) as skipped:
        save_neighbours(run, inputs, out, ks, strict=strict, overwrite=overwrite, on_skip=skipped, on_note=skipped.note)
    ranks = ", ".join(map(str, ks))
    console.out.print(f"{out}: from top to bottom, originals, reconstructions, and codes replaced by neighbour {ranks}")


@app.command(epilog="Example: sqvae interpolate runs/photos cat.jpg dog.jpg -o between.png")
def interpolate(
    run: Run,
    first: Annotated[str, typer.Argument(metavar="FROM", help="The first image.")],
    second: Annotated[str, typer.Argument(metavar="TO", help="The last image.")],
    out: OutputImage,
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", min=2, max=64, help="The number of images, including both ends.")
    ] = 9,
    overwrite: Overwrite = False,
) -> None:
    """Interpolate between the encodings of two images in equal steps, and decode the nearest codes."""
    from sqvae.analysis import save_interpolation
    from sqvae.cli import console

    save_interpolation(run, first, second, out, steps, overwrite=overwrite, on_note=console.note)
    console.out.print(f"{out}: {first}, an interpolation of {steps} images, and {second}", soft_wrap=True)


@app.command(epilog="Example: sqvae fid runs/photos --of reconstruction --of samples")
def fid(
    run: Run,
    of: Annotated[
        list[str] | None,
        typer.Option(
            "--of",
            metavar="SET",
            help="A set to measure, see above. This option may be repeated. Default: all sets except samples-...",
        ),
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            "--features",
            metavar="NAME",
            help="The features for the comparison. With random-convolutions it is fast, but not an FID.",
        ),
    ] = "inception-2015-12-05",
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights", metavar="FILE", help="The weights of the Inception network. Default: those downloaded before."
        ),
    ] = None,
    download: Download = False,
    pictures: Annotated[
        int | None,
        typer.Option(
            "--pictures", metavar="N", min=2, help="The number of images to compare. Default: the whole test set."
        ),
    ] = None,
    data: OtherData = None,
    prior: Prior = None,
    seed: SampleSeed = 0,
    as_json: Json = False,
) -> None:
    """Measure the Fréchet inception distance (FID) between images of a model and real images.

    The sets are: reconstruction; samples, from the prior; samples-histogram and samples-uniform, from independent
    codes; neighbor-3, neighbor-5 and neighbor-10; interpolation. The results are saved in RUN/distances-test.json.
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
    inputs: Images,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The compressed file (.sqz).")],
    prior: Prior = None,
    no_prior: Annotated[
        bool, typer.Option("--no-prior", help="Use adaptive frequencies of codes instead of the prior.")
    ] = False,
    no_names: Annotated[
        bool, typer.Option("--no-names", help="Leave out the names of the images, which are then numbered.")
    ] = False,
    layers: Layers = None,
    batch: Batch = 64,
    strict: Strict = False,
    overwrite: Overwrite = False,
) -> None:
    """Compress images into a small file of entropy-coded codes. A prior makes the file smaller.

    Decompression restores the codes exactly, and the images as the model reconstructs them.
    """
    from sqvae.cli import console
    from sqvae.cli.skipped import SkippedFiles
    from sqvae.data.wording import counted
    from sqvae.inference import compress as compressed

    with SkippedFiles("image") as skipped, console.progress_bar() as progress:
        made = compressed(
            run,
            inputs,
            out,
            prior=prior,
            learned=not no_prior,
            layers=layers,
            names=not no_names,
            batch=batch,
            strict=strict,
            overwrite=overwrite,
            on_skip=skipped,
            on_note=skipped.note,
            progress=progress,
        )
    console.out.print(
        f"{counted(made.number, made.noun)} in {out}: {made.bytes:,} bytes, "
        f"{made.bits_per_pixel:.4f} bits per pixel; codes take {made.bits_per_code:.3f} bits each by {made.by}",
        soft_wrap=True,
    )
    if not made.prior_pays:
        console.warning(
            f"without the prior, the codes of this file would take only {made.bits_per_code_without_prior:.3f} bits "
            f"each: compress with --no-prior, or train the prior longer"
        )


@app.command(epilog="Example: sqvae decompress runs/photos photos.sqz -o restored")
def decompress(
    run: Run,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file from `sqvae compress`.")],
    out: OutputFolder,
    prior: Prior = None,
    layers: Layers = None,
    batch: Batch = 64,
    overwrite: Overwrite = False,
) -> None:
    """Restore images from a compressed file. Their codes are restored exactly, on every machine."""
    from sqvae.cli import console
    from sqvae.cli.results import show_saved
    from sqvae.inference import decompress as decompressed

    with console.progress_bar() as progress:
        saved = decompressed(
            run, file, out, prior=prior, layers=layers, batch=batch, overwrite=overwrite, progress=progress
        )
    show_saved(saved)
