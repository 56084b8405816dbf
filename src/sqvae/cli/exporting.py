"""The command that makes a tokenizer portable: a folder for the hub, ONNX files, programs of torch.export."""

from pathlib import Path
from typing import Annotated

import typer

from sqvae.cli.options import Overwrite, Run
from sqvae.cli.root import app


@app.command(epilog="Example: sqvae export runs/photos --onnx -o exported")
def export(
    run: Run,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The folder that the files go to.")],
    onnx: Annotated[
        bool, typer.Option("--onnx", help=r"encoder.onnx and decoder.onnx; needs: pip install -e '.\[export]'")
    ] = False,
    program: Annotated[bool, typer.Option("--torch", help="encoder.pt2 and decoder.pt2, of torch.export.")] = False,
    pretrained: Annotated[
        bool, typer.Option("--pretrained", help="Configuration, weights and a model card, as hubs want them.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Take a model elsewhere: onto a hub, or into programs that run without this package.

    ONNX files and programs of torch.export take batches and pictures of any size. They are compared with the library
    before they get their names.
    """
    from sqvae.cli.run_export import Wanted, carry_out

    carry_out(run, out, Wanted(onnx=onnx, torch=program, pretrained=pretrained), overwrite=overwrite)
