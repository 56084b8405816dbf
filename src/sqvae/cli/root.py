"""The application that commands belong to, and what they share. Nothing heavy is imported here."""

import contextlib
import signal
import threading
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from sqvae.cli.groups import PlainGroup
from sqvae.cli.launch import is_launched, launch
from sqvae.files import BusyError, UncheckedWarning, alone

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


_claims: ContextVar[contextlib.ExitStack] = ContextVar("claims")


@contextlib.contextmanager
def claims_end_here() -> Iterator[None]:
    """What is claimed within the block is free after it."""
    with contextlib.ExitStack() as stack:
        token = _claims.set(stack)
        try:
            yield
        finally:
            _claims.reset(token)


def claim(target: Path) -> None:
    """Keep other commands from writing to a file or folder until this one ends; raise if another does."""
    stack = _claims.get(None)
    if stack is None:  # no command, but a program that uses the same functions
        return
    try:
        stack.enter_context(alone(target))
    except BusyError as busy:
        raise BusyError(f"can't write {target}: {busy.strerror} with -o") from None


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


def is_of_speech(run: Path, *, speaker: str | None = None, audio: bool = False) -> bool:
    """Whether a run is a model of speech; raises if it isn't, and is asked for a voice."""
    from sqvae.config import ConfigurationError
    from sqvae.tokenizers import kind_of

    kind = kind_of(run)
    if kind != "speech" and (speaker is not None or audio):
        raise ConfigurationError(f"--speaker and --audio are of models of speech, and {run} is one of {kind}")
    return kind == "speech"


def launched_elsewhere(devices: int | None, nodes: int, extra: list[str]) -> bool:
    """Start several processes if they are asked for; True when they have done the work."""
    if is_launched() or ((devices or 1) == 1 and nodes == 1):
        return False
    code = launch([*typed_words.get(), *extra], devices or 1, nodes)
    if code:
        raise typer.Exit(code)
    return True
