"""The order and the groups of the commands in help, and the format of their arguments and options."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

GROUPS: Mapping[str, Sequence[str]] = {
    "Train": ("train", "resume", "list"),
    "Evaluate": ("evaluate", "inspect", "explore", "report"),
    "Codes": ("encode", "decode", "tokens", "reconstruct", "compress", "decompress"),
    "Generate": ("train-prior", "sample", "interpolate", "neighbors", "fid"),
    "Export": ("export",),
    "Speech": ("abx",),
    "The paper": ("reproduce",),
}
"""The commands by their purpose."""


class PlainCommand(TyperCommand):
    """A command whose help shows no types, because the placeholders of its arguments and options are clear."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]


class PlainGroup(TyperGroup):
    """A group of commands whose help shows no types."""

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
    """An empty type, for the help of an argument."""


def arrange(app: typer.Typer) -> None:
    """Sort the commands and assign them to their groups."""
    group_of = {name: group for group, names in GROUPS.items() for name in names}
    order = list(group_of)
    for command in app.registered_commands:
        command.cls = PlainCommand
        command.help = _unwrapped(inspect.getdoc(command.callback) or "")
        command.rich_help_panel = group_of[name_of(command)]
    app.registered_commands.sort(key=lambda command: order.index(name_of(command)))


def _unwrapped(text: str) -> str:
    """The paragraphs of a docstring without its line breaks, because terminals have other widths."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def name_of(command: Any) -> str:
    """The name of a registered command."""
    return str(command.name or command.callback.__name__)
