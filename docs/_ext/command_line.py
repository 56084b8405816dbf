"""The page of commands, from what `sqvae --help` knows: nothing about a command is written twice."""

from typing import Any

import typer
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

import sqvae.cli  # noqa: F401 - which defines the commands
from sqvae.cli.root import app as command_line

PAGE = "commands"


def described(name: str, command: Any) -> str:
    """A section on one command."""
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join(["sqvae", name, *(_name(argument) for argument in arguments), "[OPTIONS]" if options else ""])
    rows = [f"| `{_name(one)}` | {_cell(one.help)} |" for one in [*arguments, *options]]
    table = ["| | |", "|---|---|", *rows] if rows else []
    example = [f"{command.epilog.replace('Example: ', 'Example: `')}`"] if command.epilog else []
    return "\n".join([f"## `sqvae {name}`", "", command.help, "", f"    {usage.strip()}", "", *table, "", *example, ""])


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    takes = parameter.metavar or ("" if isinstance(parameter.default, bool) else "X")
    return f"{names} {takes}".strip().replace("|", "\\|")


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


def add_commands(app: Sphinx, page: str, source: list[str]) -> None:
    if page == PAGE:
        group: Any = typer.main.get_command(command_line)
        source[0] += "\n".join(described(name, command) for name, command in sorted(group.commands.items()))


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("source-read", add_commands)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
