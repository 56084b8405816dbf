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
    from sqvae.cli import console
    from sqvae.config import ConfigurationError
    from sqvae.export import export_run

    formats = [name for name, wanted in (("onnx", onnx), ("torch", program)) if wanted]
    if not formats and not pretrained:
        raise ConfigurationError("say what to export: --onnx, --torch, --pretrained, or several of them")
    exported = export_run(run, out, formats, pretrained=pretrained, overwrite=overwrite, announce=console.note)
    for file in exported.files:
        console.out.print(f"{out / file.name}: {file.signature}, {file.bytes:,} bytes", soft_wrap=True)
    for file in exported.files:
        if file.comparison is None:
            console.warning(
                f"{file.name} was not compared with the library: that takes {file.runner}, which is not installed "
                f"(pip install {file.runner})"
            )
        else:
            console.note(file.comparison)
    for sentence in exported.left_out:
        console.warning(sentence)
    if formats:
        console.note(f"{out / 'export.json'} says how to use them without this package")
    if pretrained:
        console.out.print(f"{out}: configuration, weights and a model card (README.md)", soft_wrap=True)
