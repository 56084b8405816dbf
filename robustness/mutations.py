"""Bytes altered at random, in the ways in which files go wrong or are made to: the same number gives the same bytes."""

import random
from collections.abc import Callable, Sequence

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF)
"""Numbers at which sizes overflow, change their sign, or are all that there is."""

TEXTS = (
    b"-1",
    b"1e400",
    b"9" * 400,
    b"null",
    b"NaN",
    b"[[[[[[[[",
    b'"',
    b"{}",
    b"\x00",
    b"../../x",
    b"\xff\xfe",
    b"true",
)
"""Words that a reader of text may stumble over."""


def mutated(whole: bytes, name: str, number: int) -> bytes:
    """The bytes after one to three alterations.

    Arguments:
        name, number: of the mutation; the same two give the same one.
    """
    generator = random.Random(f"{name} {number}")
    content = bytearray(whole)
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        if not content:
            break
        generator.choice(ALTERATIONS)(content, generator)
    return bytes(content)


def _flip(content: bytearray, generator: random.Random) -> None:
    content[_place(content, generator)] ^= 1 << generator.randrange(8)


def _byte(content: bytearray, generator: random.Random) -> None:
    content[_place(content, generator)] = generator.randrange(256)


def _number(content: bytearray, generator: random.Random) -> None:
    """A number of some bytes, in either order of them."""
    start, size = _place(content, generator), generator.choice((1, 2, 4, 8))
    value = generator.choice(INTERESTING) % (1 << (8 * size))
    content[start : start + size] = value.to_bytes(size, generator.choice(("little", "big")))


def _text(content: bytearray, generator: random.Random) -> None:
    start = _place(content, generator)
    content[start : start + generator.randrange(4)] = generator.choice(TEXTS)


def _noise(content: bytearray, generator: random.Random) -> None:
    start = _place(content, generator)
    size = generator.randrange(1, 1 + min(len(content) - start, generator.choice((8, 64, 4096))))
    content[start : start + size] = generator.randbytes(size)


def _cut(content: bytearray, generator: random.Random) -> None:
    del content[_place(content, generator) :]


def _remove(content: bytearray, generator: random.Random) -> None:
    start = _place(content, generator)
    del content[start : start + generator.choice((1, 2, 16, 256))]


def _repeat(content: bytearray, generator: random.Random) -> None:
    start = _place(content, generator)
    piece = content[start : start + generator.choice((1, 8, 512))]
    content[start:start] = piece * generator.choice((1, 2, 50))


def _move(content: bytearray, generator: random.Random) -> None:
    start = _place(content, generator)
    piece = content[start : start + generator.choice((4, 64, 1024))]
    del content[start : start + len(piece)]
    target = generator.randrange(len(content) + 1)
    content[target:target] = piece


def _append(content: bytearray, generator: random.Random) -> None:
    content += generator.randbytes(generator.choice((1, 16, 1024)))


ALTERATIONS: Sequence[Callable[[bytearray, random.Random], None]] = (
    *(_flip, _byte, _number, _number, _text, _noise),
    *(_cut, _remove, _repeat, _move, _append),
)


def _place(content: bytearray, generator: random.Random) -> int:
    """Anywhere; half of the time near the beginning or the end, where headers are."""
    near = min(len(content), 256)
    choice = generator.random()
    if choice < 0.35:
        return generator.randrange(near)
    return len(content) - 1 - generator.randrange(near) if choice < 0.5 else generator.randrange(len(content))
