"""Compressed codes in a file, written and read as a stream.

The size of a code depends on its probability: see `expectations`. Decoding gives the same codes on any machine, with
any number of threads and any batch size: see `frequencies`. The file format is described in `frames`.

Memory holds the images of one frame, a few hundred, on both sides.
"""

import hashlib
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from sqvae.codec import frames
from sqvae.codec.expectations import Adaptive, Expectation, Histogram, Learned
from sqvae.codec.frames import Body, Frame, Header
from sqvae.codec.frequencies import Integers
from sqvae.codec.layers import AdaptiveLayers
from sqvae.codec.range_coding import RangeSource, range_encode
from sqvae.codec.writing import CodeFileError, DamageError, StreamedFile
from sqvae.distributions.checks import check_size

_AGAIN = "Get another copy of it, or compress the images again"


@dataclass
class CompressedSize:
    """The size of a file, by what the bytes are used for."""

    pictures: int = 0
    codes: int = 0
    payload: int = 0
    """Number of bytes of the range coder."""
    names: int = 0
    """Number of bytes of names."""
    header: int = 0
    """Number of all other bytes: file type, shapes, checksums and listed positions."""
    uncertain: int = 0
    """Number of codes whose probabilities were too close to a rounding boundary and were not used."""
    ideal_bits: float = 0.0
    """Number of bits of an ideal coder, with the probabilities before rounding."""

    @property
    def total(self) -> int:
        """Number of bytes of the file."""
        return self.payload + self.names + self.header

    @property
    def overhead(self) -> float:
        """The excess of the payload over the ideal size, relative to the ideal size.

        It is negative if a prior fits so badly that codes are less probable than the coder can represent, 1 in 2^24.
        """
        return 8 * self.payload / self.ideal_bits - 1 if self.ideal_bits else 0.0


class CompressedWriter(StreamedFile):
    """Compresses codes as a stream. The file appears under its name, complete, after the block.

    Arguments:
        path: the file to write.
        expectation: the probabilities of codes; reading the file requires the same.
        fingerprint: the fingerprint of the model that the codes belong to.
        names: store the names of the sources; without them images are numbered.
        together: maximum number of images that are coded together; decoding needs memory for the same number.
    """

    def __init__(
        self,
        path: Path,
        expectation: Expectation,
        *,
        fingerprint: str,
        names: bool = True,
        together: int = frames.MOST_PICTURES,
    ) -> None:
        super().__init__(path)
        check_size(together, "together")
        self.expectation = expectation
        self.size = CompressedSize()
        self._print = _print(expectation, fingerprint)
        self._named = names
        self._together = together
        self._pending: list[tuple[str, Tensor]] = []
        self._crc: int | None = None
        self._seen = np.zeros(expectation.codebook_size, dtype=np.int64)

    def write(self, names: Sequence[str], codes: Tensor) -> None:  # (batch, h, w)
        """Add the codes of some sources. Their shapes may differ between calls."""
        self._check(names, codes)
        positions = codes.shape[1:].numel()
        most = min(self._together, frames.room(positions)) if positions else 0
        for name, own in zip(names, codes.detach().cpu().long(), strict=True):
            if self._pending and (len(self._pending) >= most or self._pending[0][1].shape != own.shape):
                self._flush()
            self._pending.append((name, own))

    def complete(self, file: BinaryIO) -> None:
        if self._crc is None:
            self._flush(alone=True)
            return
        self._flush()
        self._put_header(frames.last_frame(self._crc))

    def _check(self, names: Sequence[str], codes: Tensor) -> None:
        if len(names) != len(codes):
            raise ValueError(f"there must be one name per row of codes: got {len(names)} names and {len(codes)} rows")
        if codes.ndim != 3 or codes.is_floating_point():
            raise ValueError(f"codes must be integers (batch, h, w), got {codes.dtype} {tuple(codes.shape)}")
        if len(codes) and not 1 <= codes[0].numel() <= frames.MOST_IN_PICTURE:
            raise ValueError(
                f"an image to compress must have 1 to {frames.MOST_IN_PICTURE:,} codes, got {codes[0].numel():,}"
            )
        if codes.numel() and not 0 <= int(codes.min()) <= int(codes.max()) < self.expectation.codebook_size:
            raise ValueError(
                f"codes must lie between 0 and {self.expectation.codebook_size - 1}, got {int(codes.min())} to "
                f"{int(codes.max())}: use the prior or histogram of this codebook"
            )
        longest = max((len(name.encode("utf-8", "surrogateescape")) for name in names), default=0)
        if self._named and longest > frames.LONGEST_NAME:
            raise CodeFileError(
                f"a name has {longest:,} bytes, more than {frames.LONGEST_NAME:,}: rename it, or leave names out"
            )

    def _flush(self, *, alone: bool = False) -> None:
        """Write a frame of the pending images; `alone` if it is the only frame of the file."""
        if self._crc is None:
            header = Header(self.expectation.kind, self._named, alone, self._print).to_bytes()
            self._crc = zlib.crc32(header)
            self._put_header(header)
        body, codes = self._body() if self._pending else (b"", b"")
        written, self._crc = frames.frame(body, codes, self._crc, alone=alone)
        self.put(written)
        self.size.header += len(written) - len(body)
        self._pending.clear()

    def _put_header(self, content: bytes) -> None:
        self.put(content)
        self.size.header += len(content)

    def _body(self) -> tuple[bytes, bytes]:
        codes = torch.stack([own for _, own in self._pending])
        left, right, uncertain, bits = self.expectation.intervals(codes, self._seen)
        payload = range_encode(left.ravel(), right.ravel()).ljust(frames.least_payload(codes.numel()), b"\0")
        names = frames.pack_names([name for name, _ in self._pending]) if self._named else b""
        listed = np.flatnonzero(uncertain.ravel()).tolist()
        body = Body(len(codes), (codes.shape[1], codes.shape[2]), names, listed, payload).to_bytes(named=self._named)
        self._seen += _count(codes, self.expectation)
        self.size.pictures += len(codes)
        self.size.codes += codes.numel()
        self.size.payload += len(payload)
        self.size.names += len(names)
        self.size.header += len(body) - len(payload) - len(names)
        self.size.uncertain += len(listed)
        self.size.ideal_bits += bits
        return body, _as_bytes(codes)


@dataclass(frozen=True)
class CompressedFile:
    """A file of compressed codes, opened for reading and verified. Its codes stay on the disk."""

    path: Path
    expectation: Expectation = field(repr=False)
    header: Header
    pictures: int

    @staticmethod
    def kind_of(path: str | Path) -> int:
        """The `kind` of the expectation that a file was compressed with."""
        with _opened(Path(path)) as file:
            return _header(Path(path), file.read(frames.HEADER)).kind

    @classmethod
    def open(
        cls,
        path: str | Path,
        expectation: Expectation,
        *,
        fingerprint: str,
        shapes: Collection[tuple[int, int]] = (),
    ) -> "CompressedFile":
        """Verify the whole file, without decoding it.

        Arguments:
            path: the file.
            expectation: the same as for compression.
            fingerprint: the fingerprint of the model that decodes the codes.
            shapes: (h, w) that images may have; any by default.
        """
        path = Path(path)
        with _opened(path) as file:
            header = _header(path, file.read(frames.HEADER))
            _check_belongs(path, header, expectation, fingerprint)
            try:
                read = frames.read_frames(file, _size(file), header)
                pictures = sum(_pictures(path, frame, header, shapes) for frame in read)
            except DamageError as damage:
                raise CodeFileError(f"{path} is damaged: {damage}. {_AGAIN}") from damage
        return cls(path, expectation, header, pictures)

    def __len__(self) -> int:
        return self.pictures

    def batches(self) -> Iterator[tuple[list[str], Tensor]]:  # -> names, (batch, h, w)
        """Yield the codes in order, in the groups in which they were compressed; each has a single shape."""
        seen = np.zeros(self.expectation.codebook_size, dtype=np.int64)
        before = 0
        with _opened(self.path) as file:
            file.seek(frames.HEADER)
            try:
                for frame in frames.read_frames(file, _size(file), self.header):
                    if frame.body:
                        names, codes = self._decoded(frame, seen, before)
                        seen += _count(codes, self.expectation)
                        before += len(codes)
                        yield names, codes
            except DamageError as damage:
                raise CodeFileError(f"{self.path} is damaged: {damage}. {_AGAIN}") from damage

    def _decoded(self, frame: Frame, seen: Integers, before: int) -> tuple[list[str], Tensor]:
        body = Body.from_bytes(frame.body, named=self.header.named)
        height, width = body.shape
        numbers = map(str, range(before, before + body.pictures))
        names = frames.unpack_names(body.names, body.pictures) if self.header.named else list(numbers)
        uncertain = np.zeros((height * width, body.pictures), dtype=np.bool_)
        uncertain.ravel()[body.uncertain] = True
        codes = self.expectation.decode(RangeSource(body.payload), body.pictures, body.shape, uncertain, seen)
        if not frame.holds(_as_bytes(codes)):
            raise CodeFileError(
                f"{self.path} does not decode to the codes that were compressed. The file is not damaged, so "
                f"{self.expectation.description} gives other probabilities on this machine: decode it with the "
                f"version of sqvae and torch that compressed it, or compress the images again"
            )
        return names, codes


def _print(expectation: Expectation, fingerprint: str) -> bytes:
    """A short hash of everything that both sides must share."""
    shared = f"{fingerprint}\n{expectation.codebook_size}\n{expectation.kind}\n{expectation.identity}"
    return hashlib.sha256(shared.encode()).digest()[: frames.PRINT]


def _header(path: Path, data: bytes) -> Header:
    magic = len(frames.MAGIC)
    if len(data) < frames.HEADER or data[:magic] != frames.MAGIC:
        raise CodeFileError(f"{path} is not a file of compressed codes: `sqvae compress` writes them")
    version = data[magic] >> 4
    if version != frames.VERSION:
        raise CodeFileError(
            f"{path} has version {version} of the format, but this sqvae reads version {frames.VERSION}: decode it "
            f"with the sqvae that wrote it, if it is not damaged"
        )
    return Header.from_bytes(data)


def _check_belongs(path: Path, header: Header, expectation: Expectation, fingerprint: str) -> None:
    kinds = {kind.kind: kind.description for kind in (Adaptive, Histogram, Learned, AdaptiveLayers)}
    if header.kind != expectation.kind:
        raise CodeFileError(
            f"{path} was compressed with {kinds.get(header.kind, 'something unknown')}, and can't be read with "
            f"{expectation.description}: decode it with what it was compressed with"
        )
    if header.fingerprint != _print(expectation, fingerprint):
        raise CodeFileError(
            f"{path} contains codes of another model, or was compressed with another prior or histogram. Decode it "
            f"with the run that compressed it, unless that was trained further since; or compress the images again"
        )


def _pictures(path: Path, frame: Frame, header: Header, shapes: Collection[tuple[int, int]]) -> int:
    """The number of images of a frame. A file without images has one frame without a body."""
    if header.alone and not frame.body and frame.holds(b""):
        return 0
    body = Body.from_bytes(frame.body, named=header.named)
    if shapes and body.shape not in shapes:
        expected = " or ".join(f"{height} x {width}" for height, width in shapes)
        raise CodeFileError(
            f"{path} contains images of {body.shape[0]} x {body.shape[1]} codes, but this model's have {expected}: "
            f"decode it with the run that compressed it"
        )
    return body.pictures


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise CodeFileError(f"there is no file {path}") from None
    except OSError as failure:
        raise CodeFileError(f"{path} can't be read: {failure.strerror or failure}") from failure


def _size(file: BinaryIO) -> int:
    at = file.tell()
    size = file.seek(0, 2)
    file.seek(at)
    return size


def _as_bytes(codes: Tensor) -> bytes:
    return codes.numpy().astype("<u2").tobytes()


def _count(codes: Tensor, expectation: Expectation) -> Integers:
    return np.bincount(codes.flatten().numpy(), minlength=expectation.codebook_size)
