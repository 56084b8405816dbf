"""Images to codes, and codes to images, in files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqvae.codec import UNCHECKED, CodeFile, encode_to_file
from sqvae.codec import decode_file as decoded
from sqvae.data import Progress, Skipped, count, stream
from sqvae.inference.coding import Encoded
from sqvae.inference.folders import PictureFolder, Saved
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.runs import Announce


def encode_files(
    tokenizer: ImageTokenizer, inputs: Sequence[str], path: Path, *, batch: int, **options: Any
) -> Encoded:
    """Encode images to a file of codes: see :func:`sqvae.inference.encode`."""
    tokenizer.check_one_level("a file of codes holds")
    codes = encode_to_file(tokenizer, inputs, path, batch_size=batch, **options)
    return Encoded(path, len(codes), tokenizer.medium.noun, codes.codebook_size, tuple(codes.shape[1:]))


def decode_file(
    tokenizer: ImageTokenizer,
    codes: Path,
    path: Path,
    *,
    batch: int,
    overwrite: bool,
    announce: Announce,
    progress: Progress | None,
) -> Saved:
    """Decode a file of codes to images in a folder: see :func:`sqvae.inference.decode`."""
    tokenizer.check_one_level("a file of codes holds")
    file, folder = CodeFile.open(codes), PictureFolder(path, overwrite=overwrite)
    if not file.checked:
        announce(UNCHECKED.format(codes))
    for names, pictures in decoded(tokenizer, file, batch_size=batch):
        folder.save(names, tokenizer.medium.images(pictures))
        if progress is not None:
            progress("decoding", folder.saved, len(file))
    return Saved(path, folder.saved, tokenizer.medium.noun)


def reconstruct_files(
    tokenizer: ImageTokenizer,
    inputs: Sequence[str],
    path: Path,
    *,
    batch: int,
    layers: int | None,
    strict: bool,
    overwrite: bool,
    on_skip: Callable[[Skipped], None],
    on_note: Callable[[str], None],
    progress: Progress | None,
    levels: int | None = None,
) -> Saved:
    """Send images through a model and save what comes out in a folder: see :func:`sqvae.inference.reconstruct`."""
    folder, noun = PictureFolder(path, overwrite=overwrite), tokenizer.medium.noun
    total = count(inputs, labels=tokenizer.preprocessing.labels) if progress is not None else 0
    for names, pictures in stream(
        inputs, tokenizer.preprocessing, batch=batch, strict=strict, on_skip=on_skip, on_note=on_note
    ):
        again = tokenizer.reconstruct(pictures, layers=layers, levels=levels)
        folder.save(names, tokenizer.medium.images(again))
        if progress is not None:
            progress("reconstructing", folder.saved, total)
    if not folder.saved:
        raise ValueError(f"none of the {noun}s can be read: nothing has been written to {path}")
    return Saved(path, folder.saved, noun)
