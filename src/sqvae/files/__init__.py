"""Files: whatever this package writes appears whole under its name, or not at all."""

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
    "UncheckedWarning",
    "beside",
    "check_ordinary",
    "checksum_of",
    "folder_within",
    "remove_abandoned",
    "sync",
    "write_text",
    "written",
]
