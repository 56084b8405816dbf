"""What `sqvae export` puts together."""

from dataclasses import dataclass
from pathlib import Path

from sqvae.cli import console
from sqvae.cli.root import claim
from sqvae.config import ConfigurationError
from sqvae.export import ExportError, Written, export
from sqvae.files import remove_abandoned
from sqvae.tokenizers import Tokenizer, load
from sqvae.training.checkpoints import WEIGHTS


@dataclass(frozen=True)
class Wanted:
    """What to write."""

    onnx: bool
    torch: bool
    pretrained: bool

    @property
    def formats(self) -> list[str]:
        """The formats of programs, by name."""
        return [name for name in ("onnx", "torch") if getattr(self, name)]


def carry_out(run: Path, out: Path, wanted: Wanted, *, overwrite: bool) -> None:
    """Write what is wanted, and say what it is and how it was checked."""
    if not wanted.formats and not wanted.pretrained:
        raise ConfigurationError("say what to export: --onnx, --torch, --pretrained, or several of them")
    claim(out)
    tokenizer: Tokenizer = load(run, device="cpu")
    if wanted.formats and not tokenizer.is_discrete:
        raise ExportError(
            f"{run} has a continuous latent ({tokenizer.experiment.quantizer.name}), and no codes that programs could "
            "give and take. --pretrained exports it as a model"
        )
    if wanted.pretrained:
        _check_apart(run, out)
        _check_free(out, overwrite)
    if wanted.formats:
        _programs(tokenizer, out, wanted.formats, overwrite)
    if wanted.pretrained:
        tokenizer.save_pretrained(out)
        console.out.print(f"{out}: configuration, weights and a model card (README.md)", soft_wrap=True)


def _check_apart(run: Path, out: Path) -> None:
    if run.resolve() in (out.resolve(), *out.resolve().parents):
        raise ExportError(f"-o {out} lies in {run} itself, whose checkpoints it might replace: choose another folder")


def _check_free(out: Path, overwrite: bool) -> None:
    remove_abandoned(out)  # by an export that was killed
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not overwrite:
            raise ExportError(
                f"{out} is there already, and is left as it is. Choose another folder with -o, or pass --overwrite"
            )
        if not (out / WEIGHTS).exists():  # whose README.md would be replaced, too
            raise ExportError(f"{out} holds something else than a model, and is not replaced: choose another with -o")


def _programs(tokenizer: Tokenizer, out: Path, formats: list[str], overwrite: bool) -> None:
    console.note("tracing and comparing takes up to a minute")
    exported = export(tokenizer, out, formats, overwrite=overwrite)
    for written in exported.files:
        console.out.print(_line(out, written), soft_wrap=True)
    for written in exported.files:
        if written.agreement is None:
            console.warning(
                f"{written.name} was not compared with the library: that takes {written.runner}, which is not "
                f"installed (pip install {written.runner})"
            )
        else:
            console.note(_compared(written))
    for sentence in exported.left_out:
        console.warning(sentence)
    console.note(f"{out / 'export.json'} says how to use them without this package")


def _line(out: Path, written: Written) -> str:
    half = written.half
    given = ", ".join(f"{slot.name} ({', '.join(map(str, slot.shape))})" for slot in half.inputs)
    made = f"{half.output.name} ({', '.join(map(str, half.output.shape))})"
    return f"{out / written.name}: {given} to {made}, {written.bytes:,} bytes"


def _compared(written: Written) -> str:
    found, half = written.agreement, written.half
    assert found is not None
    shapes = ", ".join("x".join(map(str, shape)) for shape in found.shapes)
    if half.name == "decoder":
        result = f"all {found.outputs:,} values within {found.error:.1g}"
        if found.ties:
            result += f", but for {found.ties:,} pixels whose class is another, of two that are as likely"
    elif found.ties:
        result = f"{found.ties:,} of {found.outputs:,} codes are others, each on the border of two"
    else:
        result = f"all {found.outputs:,} codes are the same"
    return f"{written.name} in {written.runner} against the library, on {half.inputs[0].name} of {shapes}: {result}"
