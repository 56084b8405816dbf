"""The application that commands belong to, and what they share. Nothing heavy is imported here."""

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
    help="Discrete representations that use their whole codebook: pictures to tokens, and back.",
    epilog="Start with: sqvae train demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


typed_words: ContextVar[list[str]] = ContextVar("typed")
"""What stood on the command line."""


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
    """Within the block, SIGTERM ends the process as an error does: what is half written is removed on the way out.

    Python's own answer to SIGTERM is to end at once, and leave everything lying about. A second one changes nothing.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    )
    if not is_ours:
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
def warnings_in_words() -> Iterator[None]:
    """Within the block, a warning about a file is said as everything else is, and not as Python shows its own."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        if issubclass(category, UncheckedWarning):
            from sqvae.cli import console

            console.warning(str(message))
        else:
            usual(message, category, *rest)

    warnings.showwarning = show  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = usual


def is_launched() -> bool:
    """Whether this process is already one of several, started by us, torchrun or `accelerate launch`."""
    return "LOCAL_RANK" in os.environ


def is_first_process() -> bool:
    """Whether this process talks to the person."""
    return os.environ.get("RANK", "0") == "0"


def launched_elsewhere(devices: int | None, nodes: int, extra: list[str]) -> bool:
    """Start several processes if they are asked for; True when they have done the work."""
    if is_launched() or ((devices or 1) == 1 and nodes == 1):
        return False
    from sqvae.training import launch

    code = launch([*typed_words.get(), *extra], devices or 1, nodes)
    if code:
        raise typer.Exit(code)
    return True
