"""The order in which help shows the commands, which is that of use, and how it shows what they take."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

GROUPS: Mapping[str, Sequence[str]] = {
    "Train": ("train", "resume", "list"),
    "Look": ("evaluate", "inspect", "explore", "report"),
    "Codes": ("encode", "decode", "reconstruct", "compress", "decompress"),
    "Generate": ("train-prior", "sample", "interpolate", "neighbors", "fid"),
    "Share": ("export",),
    "Speech": ("abx",),
    "The paper": ("reproduce",),
}
"""Commands by what they are for."""


class Plain(TyperCommand):
    """A command whose help names no types: a flag takes nothing, and a name says what is to be put there."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]


class PlainGroup(TyperGroup):
    """The same for all commands together."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))


def _plain(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _nothing
        elif parameter.is_flag:
            parameter.metavar = ""
    return parameters


def _nothing(ctx: Any) -> None:
    """What is shown of an argument beside its name."""


def arrange(app: typer.Typer) -> None:
    """Put the commands in order and in groups."""
    group_of = {name: group for group, names in GROUPS.items() for name in names}
    order = list(group_of)
    for command in app.registered_commands:
        command.cls = Plain
        command.help = _unwrapped(inspect.getdoc(command.callback) or "")
        command.rich_help_panel = group_of[name_of(command)]
    app.registered_commands.sort(key=lambda command: order.index(name_of(command)))


def _unwrapped(text: str) -> str:
    """Paragraphs without the line breaks that they have in the source: terminals have others."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def name_of(command: Any) -> str:
    """What a registered command is called."""
    return str(command.name or command.callback.__name__)
