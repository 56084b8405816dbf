"""The commands about priors: train them, sample, change codes on purpose, compress."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sqvae.cli.launch import is_first_process
from sqvae.cli.options import (
    Audio,
    Batch,
    Data,
    Devices,
    Epochs,
    Nodes,
    Overwrite,
    Run,
    Seed,
    Settings,
    Speaker,
    Strict,
)
from sqvae.cli.root import app, launched_elsewhere

Prior = Annotated[
    Path | None, typer.Option("--prior-run", metavar="DIR", help="The prior's folder. Default: RUN/prior.")
]
Pictures = Annotated[list[str], typer.Argument(metavar="PICTURES...", help="Pictures, folders, archives or arrays.")]


@app.command("train-prior", epilog="Example: sqvae train-prior runs/photos --prior pixelsnail")
def train_prior(
    run: Run,
    prior: Annotated[str, typer.Option("--prior", metavar="NAME", help="pixelcnn or pixelsnail.")] = "pixelcnn",
    given: Annotated[
        str | None,
        typer.Option("--given", metavar="RUN", help="A coarser model of the same pictures, whose codes are given."),
    ] = None,
    by_class: Annotated[bool, typer.Option("--by-class", help="Give the class of each picture, too.")] = False,
    until_nll: Annotated[
        float | None,
        typer.Option("--until-nll", metavar="X", help="Stop at X nats per code on the validation set."),
    ] = None,
    data: Data = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="The prior's folder. Default: RUN/prior.")
    ] = None,
    seed: Seed = None,
    epochs: Epochs = None,
    devices: Devices = None,
    nodes: Nodes = 1,
) -> None:
    """Learn how likely a model's codes are, one after the other: then it can sample, and compress."""
    from sqvae.cli import console
    from sqvae.cli.priors import asked_for, watched_prior
    from sqvae.experiment import train
    from sqvae.training import RunFolder

    experiment, folder = asked_for(
        run, out, prior, given, by_class, until_nll, data, settings or [], seed=seed, epochs=epochs
    )
    if launched_elsewhere(devices, nodes, []):
        return
    if is_first_process():
        console.note(f"training {experiment.prior.name} over the codes of {run} in {folder}")
    watched_prior(RunFolder(folder), partial(train, experiment, folder))


@app.command(epilog="Example: sqvae sample runs/photos -n 64 -o samples.png")
def sample(
    run: Run,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE|DIR", help="One picture of all (.png), or a folder of each.")
    ],
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="How many.")] = 16,
    temperature: Annotated[float, typer.Option("--temperature", min=0, help="Below 1: likelier, less various.")] = 1.0,
    top_k: Annotated[int | None, typer.Option("--top-k", min=1, help="Choose among so many likeliest codes.")] = None,
    top_p: Annotated[
        float | None, typer.Option("--top-p", help="Choose among the likeliest codes of this share, at most 1.")
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="NAME", help="Of a prior that knows classes; may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same samples.")] = 0,
    length: Annotated[
        float | None, typer.Option("--seconds", min=0.1, help="Of speech: how long each is. Default: 3.")
    ] = None,
    prior: Prior = None,
    batch: Batch = 64,
    overwrite: Overwrite = False,
    speaker: Speaker = None,
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
        list[int] | None, typer.Option("-k", min=1, help="Which neighbour; may be repeated. Default: 3, 5 and 10.")
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
    first: Annotated[str, typer.Argument(metavar="PICTURE")],
    second: Annotated[str, typer.Argument(metavar="PICTURE")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The picture (.png).")],
    steps: Annotated[int, typer.Option("--steps", min=2, max=64, help="Pictures in a row, both ends included.")] = 9,
    overwrite: Overwrite = False,
) -> None:
    """Go from one picture to another, straight through the space that codes lie in, by the nearest codes."""
    from sqvae.cli.manipulation import show_interpolation

    show_interpolation(run, first, second, out, steps, overwrite=overwrite)


@app.command(epilog="Example: sqvae fid runs/photos --of reconstruction --of samples")
def fid(
    run: Run,
    of: Annotated[
        list[str] | None,
        typer.Option("--of", metavar="SET", help="See below; may be repeated. Default: all but samples-..."),
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            "--features", metavar="NAME", help="inception-2015-12-05, or random-convolutions: cheap, but no FID."
        ),
    ] = "inception-2015-12-05",
    weights: Annotated[
        Path | None, typer.Option("--weights", metavar="FILE", help="Of the Inception network. Default: fetched once.")
    ] = None,
    pictures: Annotated[
        int | None, typer.Option("--pictures", min=2, help="Compare so many pictures. Default: the whole test set.")
    ] = None,
    data: Data = None,
    prior: Prior = None,
    seed: Annotated[int, typer.Option("--seed", help="Of samples and interpolations.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Measure how far what a model makes is from real pictures: the Frechet inception distance.

    The sets are: reconstruction; samples, of its prior; samples-histogram and samples-uniform, of codes drawn one by
    one; neighbor-3, neighbor-5 and neighbor-10; interpolation. Kept in RUN/distances-test.json.
    """
    from sqvae.cli.distances import Asked, report_distances

    report_distances(run, Asked(of or [], features, weights, pictures, data, prior, seed), as_json=as_json)


@app.command(epilog="Example: sqvae compress runs/photos photos -o photos.sqz")
def compress(
    run: Run,
    inputs: Pictures,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The compressed file (.sqz).")],
    prior: Prior = None,
    no_prior: Annotated[bool, typer.Option("--no-prior", help="By the codes that came before, even so.")] = False,
    no_names: Annotated[bool, typer.Option("--no-names", help="Leave the pictures' names out.")] = False,
    batch: Batch = 64,
    strict: Strict = False,
    overwrite: Overwrite = False,
) -> None:
    """Compress pictures to their codes, and those by what the prior, or the codes' histogram, expects."""
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
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Where the pictures go.")],
    prior: Prior = None,
    batch: Batch = 64,
    overwrite: Overwrite = False,
) -> None:
    """Restore pictures from a compressed file: their codes exactly, whatever the machine."""
    from sqvae.cli.compression import decompress_pictures

    decompress_pictures(run, prior, file, out, batch=batch, overwrite=overwrite)
