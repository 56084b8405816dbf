"""The command for the page in the browser."""

import importlib.util
from typing import Annotated

import typer

from sqvae.cli.options import OtherData, Prior, Run
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
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser, or only print its address.")
    ] = True,
    data: OtherData = None,
    prior: Prior = None,
) -> None:
    """Explore a run in the browser: show reconstructions and codes of your files, and replace codes. Ctrl-C stops it.

    The page is available on this machine only, and sends no requests to other machines.
    """
    if importlib.util.find_spec("nicegui") is None:
        raise ModuleNotFoundError("the page needs NiceGUI: install it with pip install -e '.[explore]'")
    import webbrowser

    from sqvae.cli import console
    from sqvae.explore import free_socket, open_run, serve

    def started(address: str) -> None:
        console.out.print(f"The page of {run} is at {address} on this machine. Ctrl-C stops it.", soft_wrap=True)
        if open_browser:
            webbrowser.open(address)

    with console.progress_bar() as progress:
        explorer = open_run(run, data=data, prior=prior, progress=progress, announce=console.note, warn=console.warning)
    serve(explorer, free_socket(port), started)
