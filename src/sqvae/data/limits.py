"""How much one file may ask for: a few bytes may claim to be all memory.

The limits are the same for folders, archives and the page, and hold for each picture or recording by itself. What is
beyond them is left out with the reason, which names the variable of the environment that raises them.
"""

import os
from dataclasses import dataclass
from zipfile import ZipFile


@dataclass(frozen=True)
class Limit:
    """The most that there may be of something."""

    variable: str
    """Of the environment, which sets another."""
    usual: int
    unit: int
    words: str
    """What the number counts, in units."""

    @property
    def most(self) -> int:
        """Of what is counted."""
        given = os.environ.get(self.variable)
        if given is None:
            return self.usual * self.unit
        try:
            value = float(given)
        except ValueError:
            value = 0.0
        if not 0 < value < 1e9:
            raise ValueError(f"{self.variable} must be a number of {self.words} above 0, got {given!r}")
        return int(value * self.unit)

    def check(self, number: int, what: str) -> None:
        """Raise if there is more.

        Arguments:
            what: has so many, in words.
        """
        if number > self.most:
            raise ValueError(
                f"{what}, and {self.most / self.unit:,.4g} {self.words} are the limit: make it smaller, or set "
                f"{self.variable} in the environment to a larger number of {self.words}"
            )


PIXELS = Limit("SQVAE_MOST_MEGAPIXELS", 64, 10**6, "megapixels")
"""Of a picture."""

BYTES = Limit("SQVAE_MOST_MEGABYTES", 512, 2**20, "megabytes")
"""Of a file of an archive, unpacked."""


def check_pixels(width: int, height: int) -> None:
    """Raise if a picture would have too many pixels, before it is decoded."""
    PIXELS.check(width * height, f"it has {width:,} x {height:,} pixels")


def read_member(archive: ZipFile, name: str) -> bytes:
    """A file of an archive, unpacked into memory; it can't become more than it says beforehand."""
    entry = archive.getinfo(name)
    BYTES.check(entry.file_size, f"it has {entry.file_size:,} bytes once it is unpacked")
    return archive.read(entry)
