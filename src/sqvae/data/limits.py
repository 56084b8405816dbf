"""Limits on the size of single files: a few bytes may claim to need all memory.

The same limits hold for folders, archives and the explore page, for each image or recording. Files beyond them are
skipped, with a reason that names the environment variable that raises the limit.
"""

import os
from dataclasses import dataclass
from zipfile import ZipFile


@dataclass(frozen=True)
class Limit:
    """The maximum of some quantity."""

    variable: str
    """The environment variable that changes the limit."""
    usual: int
    unit: int
    words: str
    """The unit in words."""

    @property
    def most(self) -> int:
        """The limit, in single pixels or bytes."""
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
        """Raise ValueError if a number exceeds the limit.

        Arguments:
            number: the number to check.
            what: the start of the error message, which states the number.
        """
        if number > self.most:
            raise ValueError(
                f"{what}, but the limit is {self.most / self.unit:,.4g} {self.words}: make it smaller, or set the "
                f"environment variable {self.variable} to a larger number of {self.words}"
            )


PIXELS = Limit("SQVAE_MOST_MEGAPIXELS", 64, 10**6, "megapixels")
"""The maximum number of pixels of an image."""

BYTES = Limit("SQVAE_MOST_MEGABYTES", 512, 2**20, "megabytes")
"""The maximum size of a file of an archive, unpacked."""


def check_pixels(width: int, height: int) -> None:
    """Raise ValueError if an image has too many pixels, before it is decoded."""
    PIXELS.check(width * height, f"it has {width:,} x {height:,} pixels")


def read_member(archive: ZipFile, name: str) -> bytes:
    """A file of an archive, unpacked into memory. It can't become larger than the archive says."""
    entry = archive.getinfo(name)
    BYTES.check(entry.file_size, f"it has {entry.file_size:,} bytes when unpacked")
    return archive.read(entry)
