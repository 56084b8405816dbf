"""Write the page of commands in the documentation from the help texts.

Usage: ``python -m sqvae.cli.reference docs/commands.md``
"""

import re
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import typer

import sqvae.cli  # noqa: F401 - importing it registers the commands
from sqvae.cli.groups import GROUPS
from sqvae.cli.root import app

GENERATOR = "make commands-docs"

INTRODUCTION = (
    "The help texts of all commands, as printed by `sqvae COMMAND --help`. "
    f"Written by `{GENERATOR}`; do not edit. "
    "A RUN is the folder of a training run. Arguments in brackets are optional."
)


def commands_page() -> str:
    """The page in Markdown."""
    group: Any = typer.main.get_command(app)
    parts = ["# Commands", INTRODUCTION, *(_contents(group))]
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        for name in names:
            parts += _described(name, group.commands[name])
    return "\n\n".join(parts) + "\n"


def _contents(group: Any) -> list[str]:
    rows = [
        f"| {title} | [`{name}`](#sqvae-{name}) | {_cell(_paragraphs(group.commands[name].help)[0])} |"
        for title, names in GROUPS.items()
        for name in names
    ]
    return ["\n".join(["| | | |", "|---|---|---|", *rows])]


def _described(name: str, command: Any) -> list[str]:
    """The section about one command."""
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join(["sqvae", name, *map(_placeholder, arguments), *(["[OPTIONS]"] if options else [])])
    rows = [f"| `{_cell(_name(one))}` | {_cell(_description(one))} |" for one in [*arguments, *options]]
    example = command.epilog.removeprefix("Example: ")
    return [
        f"### `sqvae {name}`",
        *_paragraphs(command.help),
        f"    {usage}",
        "\n".join(["| | |", "|---|---|", *rows]),
        f"Example: `{example}`",
    ]


def _paragraphs(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def _placeholder(argument: Any) -> str:
    """The placeholder of an argument in the usage line."""
    name = f"{argument.metavar}..." if argument.nargs == -1 else str(argument.metavar)
    return name if argument.required else f"[{name}]"


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return _placeholder(parameter)
    names = ", ".join(sorted([*parameter.opts, *parameter.secondary_opts], key=len))
    return names if parameter.is_flag else f"{names} {parameter.metavar}"


def _description(parameter: Any) -> str:
    """The help text of an argument or option, with its default value."""
    text, default = parameter.help or "", parameter.default
    if parameter.required and parameter.param_type_name == "option":
        return f"{text} Required."
    if default is None or isinstance(default, bool) or callable(default) or default in ([], ()):
        return text
    return f"{text} Default: {default.value if isinstance(default, Enum) else default}."


def _cell(text: str) -> str:
    """A text for a cell of a table, without terminal markup and with escaped table markup."""
    return re.sub(r"\\(?=\[)", "", text).replace("|", "\\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(commands_page(), encoding="utf-8")
