"""The application with which commands are registered, and functions they share. No heavy modules are imported here."""

import contextlib
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType
from typing import Annotated, Any

import typer

from sqvae.cli.groups import PlainGroup
from sqvae.files import UncheckedWarning

app = typer.Typer(
    name="sqvae",
    cls=PlainGroup,
    help="Discrete representations that use their whole codebook: encode images as tokens, and decode them.",
    epilog="Start with: sqvae train demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


command_line: ContextVar[list[str]] = ContextVar("command_line")
"""The arguments on the command line."""


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        from sqvae import __version__

        print(f"sqvae {__version__}")
        raise typer.Exit


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Within the block, SIGTERM raises `SystemExit`, so that incomplete files are removed before the process ends.

    By default, Python would end immediately and leave them behind. A second SIGTERM is ignored.
    """
    is_default = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    )
    if not is_default:
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def warnings_on_console() -> Iterator[None]:
    """Within the block, warnings about files are printed in the format of all other messages."""
    default = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        if issubclass(category, UncheckedWarning):
            from sqvae.cli import console

            console.warning(str(message))
        else:
            default(message, category, *rest)

    warnings.showwarning = show  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = default


def is_launched() -> bool:
    """Whether this process is one of several that sqvae, torchrun or `accelerate launch` has started."""
    return "LOCAL_RANK" in os.environ


def is_first_process() -> bool:
    """Whether this process prints messages; the others are silent."""
    return os.environ.get("RANK", "0") == "0"


def ran_in_processes(devices: int | None, nodes: int, extra: list[str]) -> bool:
    """Run the command in several processes if they are requested. Returns whether this was done."""
    if is_launched() or ((devices or 1) == 1 and nodes == 1):
        return False
    from sqvae.training import launch

    code = launch([*command_line.get(), *extra], devices or 1, nodes)
    if code:
        raise typer.Exit(code)
    return True
