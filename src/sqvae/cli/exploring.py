"""The command that opens a run in the browser."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqvae.cli.options import HeldOut, Prior, Run
from sqvae.cli.root import app

if TYPE_CHECKING:
    from sqvae.runs import Generator


@app.command(epilog="Example: sqvae explore runs/photos")
def explore(
    run: Run,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=1, max=65535, help="The port of the page. Default: a free one near 8500."
        ),
    ] = None,
    opened: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser, or only say where it is.")
    ] = True,
    data: HeldOut = None,
    prior: Prior = None,
) -> None:
    """Look at a run in the browser: drop a picture, see its codes, change them. Ctrl-C stops it.

    The page is for this machine only, and asks nothing of any other.
    """
    if importlib.util.find_spec("nicegui") is None:
        raise ModuleNotFoundError("the page needs NiceGUI: install it with pip install -e '.[explore]'")
    import webbrowser

    from sqvae.cli import console
    from sqvae.explore import explorer_of, free_socket, serve
    from sqvae.tokenizers import load

    def started(address: str) -> None:
        console.out.print(f"{run} is at {address} on this machine; Ctrl-C stops it", soft_wrap=True)
        if opened:
            webbrowser.open(address)

    tokenizer = load(run)
    held_out, missing = _held_out(run, tokenizer, data) if tokenizer.is_discrete else (None, "")
    explorer = explorer_of(run, tokenizer, _prior(run, prior), held_out, missing)
    serve(explorer, free_socket(port), started)


def _prior(run: Path, folder: Path | None) -> "Generator | None":
    """The run's prior; a reason why not, where it is there but of no use."""
    from sqvae.cli import console
    from sqvae.cli.compression import has_prior
    from sqvae.runs import load_generator
    from sqvae.training import CheckpointError

    if not has_prior(run, folder):
        return None
    try:
        return load_generator(run, folder)
    except CheckpointError as failure:
        if folder is not None:
            raise
        console.warning(f"without the prior: {failure}")
        return None


def _held_out(run: Path, tokenizer: Any, data: str | None) -> tuple[Any, str]:
    """Examples that the model was not trained on; or none, and why."""
    from sqvae.cli import console
    from sqvae.cli.evaluation import data_of

    try:
        with console.progress_bar() as progress:
            prepared = data_of(run, tokenizer, data, progress, console.note)[1]
    except (OSError, ValueError, ImportError) as failure:
        if data is not None:
            raise
        return None, str(failure)
    return prepared.part("validation"), ""
