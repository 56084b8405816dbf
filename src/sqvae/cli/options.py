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

    recipe = "recipe"
    any_budget = "any-budget"
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


Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run's folder, a checkpoint's, or hf:OWNER/NAME on the hub.")
]
Data = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR|NAME", help="A folder, a file, or a name that `sqvae list data` shows."),
]
HeldOut = Annotated[
    str | None, typer.Option("--data", metavar="DIR|NAME", help="Other data. Default: what the run was trained on.")
]
Pictures = Annotated[list[str], typer.Argument(metavar="PICTURES", help="Pictures, folders, archives or arrays.")]
Inputs = Annotated[
    list[str],
    typer.Argument(metavar="INPUT", help="Pictures or recordings, folders, archives, names of data sets."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first picture or recording that can't be read.")]
Devices = Annotated[
    int | None, typer.Option("--devices", metavar="N", min=1, help="Processes on this machine, one for each device.")
]
Nodes = Annotated[int, typer.Option("--nodes", metavar="N", min=1, help="Machines; the command is run on each.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")]
Speaker = Annotated[
    str | None,
    typer.Option("--speaker", metavar="NAME", help="Of speech: the voice to speak with. Default: the recording's own."),
]
Audio = Annotated[bool, typer.Option("--audio", help="Of speech: write sound as well as frames, by Griffin-Lim.")]
Batch = Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Pictures that are computed at a time.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting by its name; may be repeated.")
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="Of the first weights, the order of the data, and the noise.")
]
Epochs = Annotated[
    int | None,
    typer.Option("--epochs", metavar="N", min=1, help="How many epochs to train for."),
]
Steps = Annotated[int | None, typer.Option("--steps", metavar="N", min=1, help="Instead: how many steps to train for.")]
Minutes = Annotated[
    float | None,
    typer.Option("--minutes", metavar="M", min=0.05, help="Instead: about how many minutes to train for, here."),
]
Prior = Annotated[
    Path | None, typer.Option("--prior", metavar="DIR", help="The folder of the prior. Default: RUN/prior.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON, and nothing else.")]
