"""A run's model in a folder, for a hub or for programs that run elsewhere."""

from collections.abc import Collection
from pathlib import Path

from sqvae.config import ConfigurationError
from sqvae.export.exporting import Exported, ExportError, export
from sqvae.files import claim, remove_abandoned
from sqvae.runs import Announce
from sqvae.tokenizers import load
from sqvae.training.checkpoints import WEIGHTS


def export_run(
    run: str | Path,
    path: str | Path,
    formats: Collection[str] = (),
    *,
    pretrained: bool = False,
    overwrite: bool = False,
    announce: Announce = print,
) -> Exported:
    """Export a run's model: as programs, as a model for hubs, or both.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        path: of the folder that the files go to.
        formats: of programs: ``"onnx"``, ``"torch"``.
        pretrained: whether to write configuration, weights and a model card.
        overwrite: whether files may be replaced.
        announce: takes a sentence before what takes long.

    Returns:
        The programs that were written, with how they compare with the library.
    """
    if not formats and not pretrained:
        raise ConfigurationError("say what to export: `formats=`, `pretrained=True`, or both")
    path = Path(path)
    claim(path)
    tokenizer = load(run, device="cpu")
    if formats and not tokenizer.is_discrete:
        raise ExportError(
            f"{run} has a continuous latent ({tokenizer.experiment.quantizer.name}), and no codes that programs could "
            "give and take. `pretrained=True` exports it as a model"
        )
    if formats:
        tokenizer.check_one_level("programs give and take")
    if pretrained:
        _check_apart(Path(run), path)
        _check_free(path, overwrite)
    exported = Exported((), ())
    if formats:
        announce("tracing and comparing takes up to a minute")
        exported = export(tokenizer, path, formats, overwrite=overwrite)
    if pretrained:
        tokenizer.save_pretrained(path)
    return exported


def _check_apart(run: Path, path: Path) -> None:
    if run.resolve() in (path.resolve(), *path.resolve().parents):
        raise ExportError(
            f"`path={path}` lies in {run} itself, whose checkpoints it might replace: choose another folder"
        )


def _check_free(path: Path, overwrite: bool) -> None:
    remove_abandoned(path)  # by an export that was killed
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        if not overwrite:
            raise ExportError(
                f"{path} is there already, and is left as it is. Choose another folder with `path=`, or pass "
                "`overwrite=True`"
            )
        if not (path / WEIGHTS).exists():  # whose README.md would be replaced, too
            raise ExportError(
                f"{path} holds something else than a model, and is not replaced: choose another with `path=`"
            )
