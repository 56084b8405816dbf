r"""The binary format of files of compressed codes.

A file consists of ``sqz``, a byte of version and flags, four bytes of fingerprint, and frames, each of which contains
images of one shape. Numbers are varints: seven bits per byte, the lowest first, with a high bit if more follow.

- frame: length of its body (omitted in a file with a single frame, which extends to the end), two checks, body;
- body: ``2 * pictures + (1 if positions are listed)``, height, width; if the file has names: the length of what
  follows, and, deflated, the length and bytes of each name; if positions are listed: their number, and the distance
  of each to the one before; and the output of the range coder, padded with zeros to at least a byte per 1024 codes;
- after the last of several frames a length of 0, and a first check.

The first check is 16 bits of a CRC over all bytes so far, which is verified before anything is evaluated. The second is
32 bits of the same CRC continued over the frame's codes: it detects codes that were decoded incorrectly.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from sqvae.codec.writing import DamageError

MAGIC = b"sqz"
VERSION = 1
PRINT = 4
HEADER = len(MAGIC) + 1 + PRINT

MOST_PICTURES = 256
MOST_TOGETHER = 1 << 16
"""Maximum number of codes in a frame of several images."""
MOST_IN_PICTURE = 1 << 20
MOST_IN_BYTE = 1 << 10
"""Maximum number of codes per byte of payload, so that a short file can't take long to decode; zeros are appended."""
LONGEST_NAME = (1 << 16) - 1
"""Maximum number of bytes of a name."""

_LONGEST_NAMES = MOST_PICTURES * (LONGEST_NAME + 3)
_LONGEST_PAYLOAD = 3 * MOST_IN_PICTURE + 8
_LONGEST_BODY = _LONGEST_NAMES + 2 * _LONGEST_PAYLOAD
_EARLY, _LATE = 2, 4


def room(positions: int) -> int:
    """Maximum number of images in a frame, for a number of codes per image."""
    return max(1, min(MOST_PICTURES, MOST_TOGETHER // positions))


def least_payload(codes: int) -> int:
    """Minimum number of bytes for a number of codes, however probable they are."""
    return -(-codes // MOST_IN_BYTE)


@dataclass(frozen=True)
class Header:
    """The header of a file."""

    kind: int
    """The kind of the expectation."""
    named: bool
    alone: bool
    """Whether there is only one frame."""
    fingerprint: bytes

    def to_bytes(self) -> bytes:
        flags = VERSION << 4 | self.alone << 3 | self.named << 2 | self.kind
        return MAGIC + bytes([flags]) + self.fingerprint

    @classmethod
    def from_bytes(cls, data: bytes) -> "Header":
        """Parse a header. The caller has checked length, magic and version."""
        flags = data[len(MAGIC)]
        return cls(flags & 3, bool(flags & 4), bool(flags & 8), data[len(MAGIC) + 1 :])


def varint(number: int) -> bytes:
    """Encode a number of any size; small ones take one byte."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


class Cursor:
    """Reads bytes sequentially, and never beyond the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def number(self) -> int:
        """Read a varint of at most 35 bits."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise DamageError("it contains a number that is too long")

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise DamageError("it ends too early")
        self._at += count
        return self._data[self._at - count : self._at]


@dataclass(frozen=True)
class Body:
    """The content of a frame."""

    pictures: int
    shape: tuple[int, int]
    names: bytes
    """The names as stored in the file."""
    uncertain: Sequence[int]
    """Positions in the order of coding, ascending."""
    payload: bytes

    def to_bytes(self, *, named: bool) -> bytes:
        head = b"".join(map(varint, (self.pictures << 1 | bool(self.uncertain), *self.shape)))
        names = varint(len(self.names)) + self.names if named else b""
        return head + names + self._listed() + self.payload

    def _listed(self) -> bytes:
        if not self.uncertain:
            return b""
        before = [-1, *self.uncertain[:-1]]
        gaps = (own - other for own, other in zip(self.uncertain, before, strict=True))
        return varint(len(self.uncertain)) + b"".join(map(varint, gaps))

    @classmethod
    def from_bytes(cls, data: bytes, *, named: bool) -> "Body":
        """Parse a body. Sizes are checked before memory is allocated."""
        cursor = Cursor(data)
        first, height, width = cursor.number(), cursor.number(), cursor.number()
        pictures, positions = first >> 1, height * width
        if not (1 <= positions <= MOST_IN_PICTURE and 1 <= pictures <= room(positions)):
            raise DamageError(f"it claims {pictures:,} images of {height:,} x {width:,} codes in one frame")
        names = cursor.take(cursor.number()) if named else b""
        uncertain = _uncertain(cursor, pictures * positions) if first & 1 else []
        if cursor.left > 3 * pictures * positions + 8:
            raise DamageError("it has more bytes than its codes can need")
        if cursor.left < least_payload(pictures * positions):
            raise DamageError(f"it claims {pictures * positions:,} codes in {cursor.left:,} bytes")
        return cls(pictures, (height, width), names, uncertain, cursor.take(cursor.left))


def _uncertain(cursor: Cursor, codes: int) -> list[int]:
    count, position, found = cursor.number(), -1, []
    for _ in range(count):
        gap = cursor.number()
        position += gap
        if gap == 0 or position >= codes:
            raise DamageError("it lists positions that don't exist")
        found.append(position)
    return found


def pack_names(names: Sequence[str]) -> bytes:
    """Names as they are stored in a frame."""
    raw = [name.encode("utf-8", "surrogateescape") for name in names]
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(b"".join(varint(len(name)) + name for name in raw)) + packer.flush()


def unpack_names(packed: bytes, count: int) -> list[str]:
    """Read a number of names from a frame, with limited memory."""
    unpacker = zlib.decompressobj(wbits=-15)
    try:
        cursor = Cursor(unpacker.decompress(packed, _LONGEST_NAMES))
    except zlib.error as failure:
        raise DamageError("its names can't be read") from failure
    names = [cursor.take(cursor.number()) for _ in range(count)]
    if cursor.left or not unpacker.eof or unpacker.unused_data:
        raise DamageError("it has more names than images")
    return [name.decode("utf-8", "surrogateescape") for name in names]


@dataclass(frozen=True)
class Frame:
    """A frame that was read and whose first check is correct."""

    body: bytes
    crc: int
    late: int

    def holds(self, codes: bytes) -> bool:
        """Whether these are the codes that were encoded."""
        return zlib.crc32(codes, self.crc) == self.late


def frame(body: bytes, codes: bytes, crc: int, *, alone: bool) -> tuple[bytes, int]:
    """The bytes of a frame, and the new CRC; `crc` is that of the previous frame, or of the header."""
    length = b"" if alone else varint(len(body))
    crc = zlib.crc32(length + body, crc)
    return length + _early(crc) + zlib.crc32(codes, crc).to_bytes(_LATE, "little") + body, crc


def last_frame(crc: int) -> bytes:
    """The bytes after the last of several frames."""
    return b"\0" + _early(zlib.crc32(b"\0", crc))


def read_frames(file: BinaryIO, size: int, header: Header) -> Iterator[Frame]:
    """Yield the frames of a file of a given size, after its header. Frames are read one at a time."""
    crc = zlib.crc32(header.to_bytes())
    while True:
        remaining = size - file.tell()
        length = b"" if header.alone else _length(file)
        expected = remaining - _EARLY - _LATE if header.alone else Cursor(length).number()
        over = length == b"\0"
        if not 0 <= expected <= min(remaining, _LONGEST_BODY):
            raise DamageError("it ends too early" if expected > remaining or expected < 0 else "a part is too long")
        early, late = _read(file, _EARLY), b"" if over else _read(file, _LATE)
        body = _read(file, expected)
        crc = zlib.crc32(length + body, crc)
        if early != _early(crc):
            raise DamageError("its checksum does not match")
        if not over:
            yield Frame(body, crc, int.from_bytes(late, "little"))
        if over or header.alone:
            break
    if file.read(1):
        raise DamageError("there are bytes after its end")


def _early(crc: int) -> bytes:
    return (crc & 0xFFFF).to_bytes(_EARLY, "little")


def _length(file: BinaryIO) -> bytes:
    data = b""
    while not data or (data[-1] > 127 and len(data) < 5):
        data += _read(file, 1)
    return data


def _read(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise DamageError("it ends too early")
    return data
