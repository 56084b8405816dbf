"""The command that writes a page about a run."""

from pathlib import Path
from typing import Annotated

import typer

from sqvae.cli.options import LocalRun, OtherData, Overwrite, Prior
from sqvae.cli.root import app


@app.command(epilog="Example: sqvae report runs/photos -o report.html")
def report(
    run: LocalRun,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The page to write (.html).")],
    data: OtherData = None,
    prior: Prior = None,
    examples: Annotated[
        int, typer.Option("--examples", metavar="N", min=1, max=64, help="The number of held-out examples to show.")
    ] = 8,
    overwrite: Overwrite = False,
) -> None:
    """Write a page about a run as a single HTML file: examples, codebook, training curves, measures and samples."""
    from sqvae.cli import console
    from sqvae.pages import write_run_page

    with console.progress_bar() as progress:
        missing = write_run_page(
            run,
            out,
            data=data,
            prior=prior,
            examples=examples,
            overwrite=overwrite,
            progress=progress,
            announce=console.note,
        )
    for line in missing:
        console.note(f"not on the page: {line}")
    console.out.print(f"{out} ({out.stat().st_size:,} bytes): open it in any browser", soft_wrap=True)
