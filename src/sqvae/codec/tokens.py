"""Codes in a self-describing file, written and read as a stream.

The file has the safetensors format, so that any language with a reader for it can use the codes; or NumPy's .npz, if
its name ends in .npz (see `formats`):

- ``codes``: (N, h, w), in the smallest integer type for the codebook; with layers (N, h, w, layers);
- ``names``: UTF-8 bytes, the names of the N sources, each terminated by a zero byte;
- metadata: the format, the model's fingerprint, the codebook size, the shape of the images, and the number of layers
  if there are any.

Codes are written directly to the disk, and memory holds only the names of images.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from sqvae.codec.formats import (
    FAILURES,
    NPZ,
    check_range,
    check_whole_numbers,
    is_checked,
    opened,
    sources,
    to_npz,
    unreadable,
    versions_of,
    written_as,
)
from sqvae.codec.metadata import LARGEST, LAYERS, layers_of, text_of, whole_number_of, whole_numbers_of
from sqvae.codec.writing import CodeFileError, SafetensorsWriter
from sqvae.data import Preprocessing, Progress, Skipped, count, stream

KIND = "sqvae-codes"

CODE_AXES = {3: 3, 1: 2}
"""The number of axes of codes by that of an example: (N, h, w) for images (C, H, W), (N, n) for vectors (values,)."""

SHAPE = "picture_shape"
"""The entry of the metadata with (C, H, W)."""

LONGEST_NAME = 200
"""Maximum number of bytes of the name of a file or folder that is written for a source: most systems allow 255."""

CONVERSIONS = {NPZ: to_npz}
"""Formats of files of codes besides safetensors, by file extension."""

_TYPES: Sequence[tuple[int, torch.dtype, str]] = (
    (2**8, torch.uint8, "U8"),
    (2**16, torch.uint16, "U16"),
    (2**31, torch.int32, "I32"),
)


class Decoder(Protocol):
    """A model that turns codes into images or vectors: see `sqvae.load`."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the weights."""

    @property
    def codebook_size(self) -> int:
        """The number of codes, K."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(C, H, W) of an image, or (values,) of a vector."""

    @property
    def code_shape(self) -> tuple[int, ...]:
        """(h, w) of the codes of an image, or (n,) of those of a vector; with layers one axis more."""

    @property
    def layers(self) -> int | None:
        """The number of layers; None if codes have no axis of them."""

    def decode(self, codes: Tensor) -> Tensor:
        """(batch, h, w) -> (batch, C, H, W), in [0, 1]; or (batch, n) -> (batch, values)."""


class Coder(Protocol):
    """A model that turns images into codes and back: see `sqvae.load`."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the weights."""

    @property
    def codebook_size(self) -> int:
        """The number of codes, K."""

    @property
    def preprocessing(self) -> Preprocessing:
        """How images are converted to the model's input."""

    @property
    def code_shape(self) -> tuple[int, ...]:
        """(h, w) of the codes of an image, or (h, w, layers)."""

    @property
    def layers(self) -> int | None:
        """The number of layers; None if codes have no axis of them."""

    def encode(self, pictures: Tensor, *, layers: int | None = None) -> Tensor:
        """uint8 (batch, C, H, W) -> (batch, h, w), or (batch, h, w, layers)."""

    def decode(self, codes: Tensor) -> Tensor:
        """(batch, h, w) -> (batch, C, H, W), in [0, 1]."""


class CodeWriter(SafetensorsWriter):
    """Writes codes as a stream. The file appears under its name, complete, after the block.

    Arguments:
        path: the file to write.
        codebook_size: K.
        fingerprint: the model's fingerprint.
        shape: (C, H, W) of the images.
        layers: the number of layers; None if codes have no axis of them.
    """

    def __init__(
        self, path: Path, *, codebook_size: int, fingerprint: str, shape: tuple[int, ...], layers: int | None = None
    ) -> None:
        super().__init__(path)
        self.layers = layers
        self.fingerprint = fingerprint
        self.codebook_size = codebook_size
        self.shape = shape
        self.written = 0
        self._code_shape: tuple[int, ...] | None = None
        self._dtype, self._type_name = next((dtype, name) for most, dtype, name in _TYPES if codebook_size <= most)
        self._names: list[bytes] = []

    def write(self, names: Sequence[str], codes: Tensor) -> None:  # (batch, h, w)
        """Add the codes of some sources."""
        if len(names) != len(codes):
            raise ValueError(f"there must be one name per row of codes: got {len(names)} names and {len(codes)} rows")
        if self._code_shape not in (None, tuple(codes.shape[1:])):
            raise ValueError(f"codes must all have the shape {self._code_shape}, got {tuple(codes.shape[1:])}")
        self._code_shape = tuple(codes.shape[1:])
        self.put(codes.cpu().to(self._dtype).contiguous().numpy().tobytes())
        self._names += [name.encode("utf-8", "surrogateescape") for name in names]
        self.written += len(names)

    def finish(self) -> tuple[Mapping[str, str], Mapping[str, tuple[str, list[int]]]]:
        names = b"".join(name + b"\0" for name in self._names)
        self.put(names)
        metadata = {
            "format": versions_of(KIND)[0],
            "fingerprint": self.fingerprint,
            "codebook_size": str(self.codebook_size),
            SHAPE: json.dumps(list(self.shape)),
        }
        if self.layers is not None:
            metadata[LAYERS] = str(self.layers)
        shape = [self.written, *(self._code_shape or (0, 0))]
        return metadata, {"codes": (self._type_name, shape), "names": ("U8", [len(names)])}


@dataclass(frozen=True)
class CodeFile:
    """A file of codes, opened for reading. Codes are read from the disk when they are needed."""

    path: Path
    fingerprint: str
    codebook_size: int
    picture_shape: tuple[int, ...]
    shape: tuple[int, ...]
    """(N, h, w), or (N, h, w, layers)."""
    names: list[str] = field(repr=False)
    checked: bool = True
    """Whether it was verified by its checksum; files of earlier versions have none."""
    layers: int | None = None
    """The number of layers; None if codes have no axis of them."""

    @classmethod
    def open(cls, path: str | Path) -> "CodeFile":
        """Open a file and read its metadata."""
        path = Path(path).expanduser()
        try:
            with opened(path) as file:
                metadata = file.metadata
                if metadata.get("format") not in versions_of(KIND):
                    raise CodeFileError(f"{path} is not a file of codes: `sqvae encode` writes them")
                checked = is_checked(path, metadata, KIND)
                check_whole_numbers(file, "codes")
                shape, names = file.shape("codes"), file.words("names")
                size, pictures = (
                    whole_number_of(metadata, "codebook_size"),
                    whole_numbers_of(metadata, SHAPE, *CODE_AXES),
                )
                fingerprint = text_of(metadata, "fingerprint")
                layers = layers_of(metadata)
        except FileNotFoundError:
            raise CodeFileError(f"there is no file {path}") from None
        except FAILURES as failure:
            raise unreadable(path, "codes", failure) from failure
        axes = CODE_AXES[len(pictures)] + (layers is not None)
        if len(shape) != axes or len(names) != shape[0] or layers not in (None, shape[-1]):
            also = "" if layers is None else f", with an axis of {layers:,} layers"
            raise CodeFileError(
                f"{path} is damaged: there are {len(names):,} names and codes of the shape {shape}, but "
                f"expected (images, height, width), or (vectors, codes){also}. Encode them again"
            )
        return cls(path, fingerprint, size, pictures, shape, names, checked, layers)

    def __len__(self) -> int:
        return self.shape[0]

    def batches(self, size: int) -> Iterator[tuple[list[str], Tensor]]:  # -> names, (batch, h, w)
        """Yield the codes in order, in batches of a given size."""
        starts = range(0, len(self), size)
        with opened(self.path) as file:
            counts = [min(size, len(self) - start) for start in starts]
            for start, codes in zip(starts, file.rows("codes", counts), strict=True):
                check_range(codes, self.codebook_size, self.path)
                yield self.names[start : start + size], codes

    def codes(self) -> Tensor:  # -> (N, h, w)
        """All codes at once."""
        with opened(self.path) as file:
            return file.tensor("codes")

    def check_belongs_to(self, coder: Decoder) -> None:
        """Raise CodeFileError if the codes are from another model: they would decode to noise."""
        if self.fingerprint != coder.fingerprint:
            raise CodeFileError(
                f"{self.path} contains codes of another model: its fingerprint is {self.fingerprint}, but this model's "
                f"is {coder.fingerprint}. Decode with the run that encoded them, unless it was trained further "
                f"since; or encode the images again"
            )
        shape = tuple(coder.code_shape)
        if self.layers is not None and coder.layers is not None and self.layers <= coder.layers:
            shape = (*shape[:-1], self.layers)  # the first layers decode by themselves
        said = (self.shape[1:], self.codebook_size, self.picture_shape)
        expected = (shape, coder.codebook_size, tuple(coder.shape))
        if said != expected:
            there, wanted = (
                f"{_times(codes)} codes out of {size:,} for {_times(of)}" for codes, size, of in (said, expected)
            )
            raise CodeFileError(
                f"{self.path} was not written by `sqvae encode`: according to its metadata it contains {there} "
                f"(channels, height, width), but this model has {wanted}. Encode the images again"
            )


def encode_to_file(
    coder: Coder,
    inputs: str | Path | Sequence[str | Path],
    path: str | Path,
    *,
    batch_size: int = 64,
    layers: int | None = None,
    strict: bool = False,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    on_note: Callable[[str], None] = lambda note: None,
    progress: Progress | None = None,
) -> CodeFile:
    """Encode images, folders or archives of them, or datasets, to a file of codes.

    Images are read as they are needed, a few ahead, and codes are written as a stream, so a folder may be larger than
    memory.

    Arguments:
        coder: a trained model, from `sqvae.load`.
        inputs: anything that `sqvae.data.stream` takes, or a single input.
        path: the file to write, which is replaced if it exists. It ends in .safetensors, or in .npz for NumPy.
        batch_size: the number of images to encode at once.
        layers: of a model with layers, only the first of them; None: all.
        strict: raise an error for the first image that can't be read, instead of skipping it.
        on_skip: called with each image that is skipped.
        on_note: called with a sentence about files that are ignored.
        progress: called with the activity, the number of items done and the total number.
    """
    if not hasattr(coder, "preprocessing"):
        raise TypeError(
            f"encode_to_file is for tokenizers of images and label maps; got a {type(coder).__name__}. Encode "
            "recordings with sqvae.encode_speech_to_file"
        )
    _ = coder.code_shape  # which says that a file can't hold several levels of codes
    inputs = sources(inputs)
    path = Path(path).expanduser()
    preprocessing = coder.preprocessing
    total = count(inputs, labels=preprocessing.labels) if progress is not None else 0
    seen = 0

    def skip(skipped: Skipped) -> None:
        nonlocal seen
        seen += 1
        on_skip(skipped)

    with (
        written_as(path, CONVERSIONS) as target,
        CodeWriter(
            target,
            codebook_size=coder.codebook_size,
            fingerprint=coder.fingerprint,
            shape=preprocessing.shape,
            layers=coder.layers if layers is None else layers,
        ) as writer,
    ):
        for names, pictures in stream(
            inputs, preprocessing, batch=batch_size, strict=strict, on_skip=skip, on_note=on_note
        ):
            writer.write(names, coder.encode(pictures, layers=layers))
            seen += len(names)
            if progress is not None:
                progress("encoding", seen, total)
        if not writer.written:
            raise CodeFileError(f"none of the {seen} images can be read, so there is nothing to encode")
    return CodeFile.open(path)


def decode_file(
    coder: Decoder, path: str | Path | CodeFile, *, batch_size: int = 64
) -> Iterator[tuple[list[str], Tensor]]:  # -> names, (batch, C, H, W)
    """Decode a file of codes: yields images in [0, 1], in batches with their names.

    Raises an error for codes of another model, and for a damaged file.
    """
    file = path if isinstance(path, CodeFile) else CodeFile.open(path)
    file.check_belongs_to(coder)
    for names, codes in file.batches(batch_size):
        yield names, coder.decode(codes)


class NameTaker:
    """Makes unique names for decoded files: the source's name with another extension, never outside the folder.

    Arguments:
        ending: the extension, by default that of images.
    """

    def __init__(self, ending: str = ".png") -> None:
        self.ending = ending
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}
        """The last number used for each name, so that equal names are not tried one by one each time."""

    def take(self, name: str) -> str:
        """A name for the decoded file of a source."""
        parts = [_shortened(part) for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        clean = "/".join(parts) or "picture"
        stem, dot, suffix = clean.rpartition(".")
        plain = stem if dot and stem and not stem.endswith("/") and "/" not in suffix else clean
        number, candidate = self._last.get(clean, 0), plain + self.ending
        while candidate in self._taken:
            number += 1
            candidate = clean + self.ending if number == 1 else f"{clean}-{number}{self.ending}"
        self._last[clean] = number
        self._taken.add(candidate)
        return candidate


def _shortened(part: str) -> str:
    """A part of a path, shortened to a length that every system allows, without zero bytes."""
    content = part.replace("\0", "").encode("utf-8", "surrogateescape")
    if len(content) <= LONGEST_NAME:
        return part.replace("\0", "")
    stem, dot, ending = part.replace("\0", "").rpartition(".")
    ending = dot + ending if stem and len(ending) < 10 else ""
    return content[: LONGEST_NAME - len(ending.encode())].decode("utf-8", "ignore") + ending


def _times(shape: Sequence[int]) -> str:
    return " x ".join("far too many" if side > LARGEST else f"{side:,}" for side in shape)
