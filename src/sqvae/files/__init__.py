"""Atomic file writing and locks: a file appears complete under its name, or not at all."""

from sqvae.files.locking import BusyError, alone
from sqvae.files.targets import check_all_free, check_free, check_ours, claim, claims_end_here
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
    "check_all_free",
    "check_free",
    "check_ordinary",
    "check_ours",
    "checksum_of",
    "claim",
    "claims_end_here",
    "folder_within",
    "remove_abandoned",
    "sync",
    "write_text",
    "written",
]
