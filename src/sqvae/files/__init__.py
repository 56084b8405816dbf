"""Files: whatever this package writes appears whole under its name, or not at all."""

from sqvae.files.writing import (
    beside,
    check_ordinary,
    folder_within,
    remove_abandoned,
    sync,
    write_text,
    written,
)

__all__ = ["beside", "check_ordinary", "folder_within", "remove_abandoned", "sync", "write_text", "written"]
