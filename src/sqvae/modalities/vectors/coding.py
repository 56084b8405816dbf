"""Vectors to ids, and ids to vectors, in files."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from sqvae.codec import CONVERSIONS, UNCHECKED, CodeFile, CodeWriter, decode_file, written_as
from sqvae.codec.writing import PlainFile
from sqvae.data import Progress, Skipped
from sqvae.files import check_free, written
from sqvae.inference.coding import Encoded
from sqvae.inference.folders import Saved
from sqvae.modalities.vectors.files import READERS, VectorRows, read_vectors
from sqvae.modalities.vectors.tokenizer import VectorTokenizer
from sqvae.runs import Announce


def to_csv(source: Path, path: Path) -> None:
    """Convert a file of codes to a table of text: a row for each vector, its name first and then its codes."""
    file = CodeFile.open(source)
    layers = [""] if file.layers is None else [f"_layer_{layer}" for layer in range(file.layers)]
    with PlainFile(path) as out:
        out.put(_line(["name", *(f"code_{place}{layer}" for place in range(file.shape[1]) for layer in layers)]))
        for names, codes in file.batches(4096):
            for name, row in zip(names, codes.flatten(1).tolist(), strict=True):
                out.put(_line([name, *map(str, row)]))


def _line(cells: Sequence[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode("utf-8", "surrogateescape")


ENDINGS = {**CONVERSIONS, ".csv": to_csv}
"""Formats of files of ids besides safetensors, by file extension."""


def encode_files(
    tokenizer: VectorTokenizer,
    inputs: Sequence[str],
    path: Path,
    *,
    batch: int,
    layers: int | None,
    strict: bool,
    on_skip: Callable[[Skipped], None],
    on_note: Callable[[str], None],
    progress: Progress | None,
) -> Encoded:
    """Encode files of vectors to a file of ids, with the names of the rows: see :func:`sqvae.inference.encode`."""
    sources = [_source(one) for one in inputs]
    number = 0
    with (
        written_as(path, ENDINGS) as target,
        CodeWriter(
            target,
            codebook_size=tokenizer.codebook_size,
            fingerprint=tokenizer.fingerprint,
            shape=tokenizer.shape,
            layers=tokenizer.layers if layers is None else layers,
        ) as writer,
    ):
        for names, vectors in _batches(sources, batch):
            writer.write(names, tokenizer.encode(vectors, layers=layers))
            number += len(names)
            if progress is not None:
                progress("encoding", number, max(number, sum(len(one) for _, one in sources)))
    shape = tokenizer.code_shape if layers is None else (*tokenizer.map_shape, layers)
    return Encoded(path, number, "vector", tokenizer.codebook_size, shape)


def _source(path: str) -> tuple[Path, VectorRows]:
    return Path(path), read_vectors(path)


def _batches(sources: Sequence[tuple[Path, VectorRows]], size: int) -> Iterator[tuple[list[str], Tensor]]:
    """Names and rows, a few at a time. With several files, the file comes before the name."""
    for path, rows in sources:
        before = f"{path.name}/" if len(sources) > 1 else ""
        for start in range(0, len(rows), size):
            names = [before + name for name in rows.names[start : start + size]]
            yield names, rows.rows[start : start + size]


def decode_to_file(
    tokenizer: VectorTokenizer,
    codes: Path,
    path: Path,
    *,
    batch: int,
    overwrite: bool,
    announce: Announce,
    progress: Progress | None,
) -> Saved:
    """Decode a file of ids to a file of vectors: see :func:`sqvae.inference.decode`."""
    target = _target(path, overwrite)
    file = CodeFile.open(codes)
    if not file.checked:
        announce(UNCHECKED.format(codes))
    names: list[str] = []
    rows = []
    for some, vectors in decode_file(tokenizer, file, batch_size=batch):
        names += some
        rows.append(vectors.cpu().numpy())
        if progress is not None:
            progress("decoding", len(names), len(file))
    _write(target, names, np.concatenate(rows) if rows else np.empty((0, *tokenizer.shape), np.float32))
    return Saved(target, len(names), "vector")


def reconstruct_to_file(
    tokenizer: VectorTokenizer,
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
) -> Saved:
    """Send vectors through a model and save what comes out: see :func:`sqvae.inference.reconstruct`."""
    target = _target(path, overwrite)
    names: list[str] = []
    rows = []
    for some, vectors in _batches([_source(one) for one in inputs], batch):
        names += some
        rows.append(tokenizer.reconstruct(vectors, layers=layers).cpu().numpy())
        if progress is not None:
            progress("reconstructing", len(names), len(names))
    _write(target, names, np.concatenate(rows))
    return Saved(target, len(names), "vector")


def _target(path: Path, overwrite: bool) -> Path:
    """The file that vectors go to: as it is named, or in the folder that is named."""
    if path.suffix.lower() in READERS and path.suffix.lower() != ".npz":
        raise ValueError(f"`path={path}`: vectors are written with their names, as .npz")
    target = path if path.suffix.lower() == ".npz" else path / "vectors.npz"
    check_free(target, overwrite)
    return target


def _write(path: Path, names: Sequence[str], rows: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written(path) as aside, aside.open("wb") as file:
        np.savez(file, vectors=rows, names=np.array(names, dtype=str))
