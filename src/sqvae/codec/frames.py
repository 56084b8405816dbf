r"""The bytes of a file of compressed codes.

A file is ``sqz``, a byte of version and flags, four bytes of fingerprint, and frames, each of which holds some pictures
of one shape. Numbers are varints: seven bits a byte, the lowest first, a high bit where more follow.

- frame: length of its body (left out of a file's only frame, which goes to the end), two checks, body;
- body: ``2 * pictures + (1 where positions are listed)``, height, width; names, where the file has them: the length of
  what follows, and deflated the length and bytes of each; how many positions are listed, and the distance of each to
  the one before, where there are any; and what the range coder wrote, with zeros up to a byte every 1024 codes;
- after the last of several frames a length of 0, and a first check.

The first check is 16 bits of a CRC over all bytes so far, and holds before anything is evaluated. The second is 32 bits
of the same CRC taken on over the frame's codes: it finds what was decoded otherwise than it was encoded.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from sqvae.codec.aside import DamageError

MAGIC = b"sqz"
VERSION = 1
PRINT = 4
HEADER = len(MAGIC) + 1 + PRINT

MOST_PICTURES = 256
MOST_TOGETHER = 1 << 16
"""Codes in a frame of several pictures."""
MOST_IN_PICTURE = 1 << 20
MOST_IN_BYTE = 1 << 10
"""Codes that a byte of payload may stand for, so that no short file makes a long job; zeros at the end fill it up."""
LONGEST_NAME = (1 << 16) - 1
"""Bytes."""

_LONGEST_NAMES = MOST_PICTURES * (LONGEST_NAME + 3)
_LONGEST_PAYLOAD = 3 * MOST_IN_PICTURE + 8
_LONGEST_BODY = _LONGEST_NAMES + 2 * _LONGEST_PAYLOAD
_EARLY, _LATE = 2, 4


def room(positions: int) -> int:
    """How many pictures of so many codes may share a frame."""
    return max(1, min(MOST_PICTURES, MOST_TOGETHER // positions))


def least_payload(codes: int) -> int:
    """How many bytes so many codes must have, however likely they are."""
    return -(-codes // MOST_IN_BYTE)


@dataclass(frozen=True)
class Header:
    """How a file begins."""

    kind: int
    """Of the expectation."""
    named: bool
    alone: bool
    """There is one frame only."""
    fingerprint: bytes

    def to_bytes(self) -> bytes:
        flags = VERSION << 4 | self.alone << 3 | self.named << 2 | self.kind
        return MAGIC + bytes([flags]) + self.fingerprint

    @classmethod
    def from_bytes(cls, data: bytes) -> "Header":
        """The caller has seen to length, magic and version."""
        flags = data[len(MAGIC)]
        return cls(flags & 3, bool(flags & 4), bool(flags & 8), data[len(MAGIC) + 1 :])


def varint(number: int) -> bytes:
    """A number of any size, small ones in one byte."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


class Cursor:
    """Reads bytes from the front, and never beyond the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def number(self) -> int:
        """A varint of at most 35 bits."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise DamageError("it holds a number that is too long")

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise DamageError("it ends too early")
        self._at += count
        return self._data[self._at - count : self._at]


@dataclass(frozen=True)
class Body:
    """What a frame holds."""

    pictures: int
    shape: tuple[int, int]
    names: bytes
    """As they are in the file."""
    uncertain: Sequence[int]
    """Positions in the order of coding, from the first to the last."""
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
        """Sizes are held against what is possible before anything is made of them."""
        cursor = Cursor(data)
        first, height, width = cursor.number(), cursor.number(), cursor.number()
        pictures, positions = first >> 1, height * width
        if not (1 <= positions <= MOST_IN_PICTURE and 1 <= pictures <= room(positions)):
            raise DamageError(f"it claims {pictures:,} pictures of {height:,} x {width:,} codes in one frame")
        names = cursor.take(cursor.number()) if named else b""
        uncertain = _uncertain(cursor, pictures * positions) if first & 1 else []
        if cursor.left > 3 * pictures * positions + 8:
            raise DamageError("it has more bytes than its codes can take")
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
    """Names as a frame holds them."""
    raw = [name.encode("utf-8", "surrogateescape") for name in names]
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(b"".join(varint(len(name)) + name for name in raw)) + packer.flush()


def unpack_names(packed: bytes, count: int) -> list[str]:
    """So many names from a frame's bytes, however much those claim to hold."""
    unpacker = zlib.decompressobj(wbits=-15)
    try:
        cursor = Cursor(unpacker.decompress(packed, _LONGEST_NAMES))
    except zlib.error as failure:
        raise DamageError("its names can't be read") from failure
    names = [cursor.take(cursor.number()) for _ in range(count)]
    if cursor.left or not unpacker.eof or unpacker.unused_data:
        raise DamageError("it has more names than pictures")
    return [name.decode("utf-8", "surrogateescape") for name in names]


@dataclass(frozen=True)
class Frame:
    """A frame as it was read: its first check holds."""

    body: bytes
    crc: int
    late: int

    def holds(self, codes: bytes) -> bool:
        """Whether these are the codes that were encoded."""
        return zlib.crc32(codes, self.crc) == self.late


def frame(body: bytes, codes: bytes, crc: int, *, alone: bool) -> tuple[bytes, int]:
    """A frame's bytes, and the CRC to go on with; `crc` is what the frame before it gave, or the header's."""
    length = b"" if alone else varint(len(body))
    crc = zlib.crc32(length + body, crc)
    return length + _early(crc) + zlib.crc32(codes, crc).to_bytes(_LATE, "little") + body, crc


def last_frame(crc: int) -> bytes:
    """What comes after several frames."""
    return b"\0" + _early(zlib.crc32(b"\0", crc))


def read_frames(file: BinaryIO, size: int, header: Header) -> Iterator[Frame]:
    """The frames of a file of so many bytes, whose header has been read; none is read before it is asked for."""
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
            raise DamageError("its bytes are not those that were written")
        if not over:
            yield Frame(body, crc, int.from_bytes(late, "little"))
        if over or header.alone:
            break
    if file.read(1):
        raise DamageError("something follows its end")


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
