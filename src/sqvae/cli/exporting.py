"""The command that exports a model: a folder for the hub, ONNX files, or programs of torch.export."""

from typing import Annotated

import typer

from sqvae.cli.options import OutputFolder, Overwrite, Run
from sqvae.cli.root import app


@app.command(epilog="Example: sqvae export runs/photos --onnx -o exported")
def export(
    run: Run,
    out: OutputFolder,
    onnx: Annotated[
        bool,
        typer.Option("--onnx", help=r"Write encoder.onnx and decoder.onnx. This needs: pip install -e '.\[export]'"),
    ] = False,
    program: Annotated[
        bool, typer.Option("--torch", help="Write encoder.pt2 and decoder.pt2 with torch.export.")
    ] = False,
    pretrained: Annotated[
        bool, typer.Option("--pretrained", help="Write the configuration, the weights and a model card for the hub.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Export a model for the hub, or as programs that run without this package.

    ONNX files and programs of torch.export accept batches and images of any size. Their outputs are compared with those
    of the library before the files get their final names.
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
                f"{file.name} was not compared with the library: this needs {file.runner}, which is not installed "
                f"(pip install {file.runner})"
            )
        else:
            console.note(file.comparison)
    for sentence in exported.left_out:
        console.warning(sentence)
    if formats:
        console.note(f"{out / 'export.json'} describes how to use them without this package")
    if pretrained:
        console.out.print(f"{out}: configuration, weights and a model card (README.md)", soft_wrap=True)
