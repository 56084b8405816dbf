"""The command that opens a run in the browser."""

import importlib.util
from typing import Annotated

import typer

from sqvae.cli.options import HeldOut, Prior, Run
from sqvae.cli.root import app


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
    from sqvae.explore import free_socket, open_run, serve

    def started(address: str) -> None:
        console.out.print(f"{run} is at {address} on this machine; Ctrl-C stops it", soft_wrap=True)
        if opened:
            webbrowser.open(address)

    with console.progress_bar() as progress:
        explorer = open_run(run, data=data, prior=prior, progress=progress, announce=console.note, warn=console.warning)
    serve(explorer, free_socket(port), started)
