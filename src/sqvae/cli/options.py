"""What several commands take, and what a choice is among."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Precision(str, Enum):
    """Of mixed-precision training."""

    no = "no"
    bf16 = "bf16"
    fp16 = "fp16"


class Profile(str, Enum):
    """A set of settings."""

    paper = "paper"
    official = "official"


class Split(str, Enum):
    """A part of a data set."""

    train = "train"
    validation = "validation"
    test = "test"


class Kind(str, Enum):
    """What can be listed."""

    recipes = "recipes"
    quantizers = "quantizers"
    data = "data"
    reproductions = "reproductions"


class Extent(str, Enum):
    """How much of an experiment to carry out."""

    smoke = "smoke"
    short = "short"
    paper = "paper"


Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, a checkpoint's, or OWNER/NAME on the hub.")]
Data = Annotated[
    str | None, typer.Option("--data", metavar="DIR|NAME", help="A folder, a file, or a name of `list data`.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first picture or recording that can't be read.")]
Devices = Annotated[int | None, typer.Option("--devices", min=1, help="Processes on this machine: one a device.")]
Nodes = Annotated[int, typer.Option("--nodes", min=1, help="Machines; the command is run on each.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")]
Speaker = Annotated[
    str | None, typer.Option("--speaker", metavar="NAME", help="Of speech: the voice to speak with. Default: its own.")
]
Audio = Annotated[bool, typer.Option("--audio", help="Of speech: write sound too, by Griffin-Lim.")]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Pictures at a time.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one setting; may be repeated.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Of weights, order and noise.")]
Epochs = Annotated[int | None, typer.Option("--epochs", min=1)]
