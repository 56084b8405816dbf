"""Images drawn from a model and its prior, in files."""

import math
from pathlib import Path

import torch
from torch import Tensor

from sqvae.data import Progress
from sqvae.data.decoding import is_picture_name
from sqvae.files import check_all_free, check_free
from sqvae.inference import Choices
from sqvae.inference.folders import PictureFolder, Saved
from sqvae.inference.images import load_image_model
from sqvae.reports.grid import Caption, save_rows
from sqvae.runs import load_generator


def sample_files(
    run: str | Path,
    prior: str | Path | None,
    path: Path,
    choices: Choices,
    *,
    overwrite: bool,
    progress: Progress | None,
) -> Saved:
    """Draw images and save them: see :func:`sqvae.inference.sample_to_files`."""
    together = path.suffix.lower() == ".png"
    if together:
        check_free(path, overwrite)
    elif is_picture_name(path.name):
        raise ValueError(f"`path={path}`: all samples together are a .png, and each by itself goes to a folder")
    else:
        check_all_free((path / f"{name}.png" for name in choices.names), overwrite)
    tokenizer = load_image_model(run)
    if tokenizer.is_discrete:
        codes = choices.drawn(load_generator(run, prior), progress=progress)
    else:
        codes = choices.normal(tokenizer)
    folder = None if together else PictureFolder(path, overwrite=overwrite)
    shown: list[Tensor] = []
    classes: list[tuple[str, str]] = []
    for first, some in zip(range(0, len(codes), choices.batch), codes.split(choices.batch), strict=True):
        pictures = tokenizer.decode(some)
        if folder is None:
            shown.append(tokenizer.medium.shown_output(pictures).cpu())
            classes += tokenizer.medium.classes_in(pictures)
        else:
            folder.save(choices.names[first : first + len(some)], tokenizer.medium.images(pictures))
    if together:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A sheet of pictures is one to use as it is; colours of classes mean nothing without their names.
        caption = Caption(classes=tuple(dict.fromkeys(classes))) if classes else None
        save_rows(path, [torch.cat(shown)], math.ceil(math.sqrt(len(codes))), caption)
    return Saved(path, len(codes), "sample")
