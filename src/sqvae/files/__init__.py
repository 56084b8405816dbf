"""Atomic file writing and locks: a file appears complete under its name, or not at all."""

from sqvae.files.locking import BusyError, alone
from sqvae.files.writing import (
    UncheckedWarning,
    beside,
    check_ordinary,
    checksum_of,
    folder_within,
    remove_abandoned,
    sync,
    write_text,
    written,
)

__all__ = [
    "BusyError",
    "UncheckedWarning",
    "alone",
    "beside",
    "check_ordinary",
    "checksum_of",
    "folder_within",
    "remove_abandoned",
    "sync",
    "write_text",
    "written",
]
