"""The folders of this user: where data sets are found by name, and where what was made of them is kept."""

import os
from pathlib import Path


def cache_folder(given: str | Path | None = None) -> Path:
    """Where decoded pictures, and frames of recordings, are kept."""
    if given is not None:
        return Path(given)
    if chosen := os.environ.get("SQVAE_CACHE"):
        return Path(chosen)
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "sqvae"
    return Path.home() / ".cache" / "sqvae"


def data_folder() -> Path:
    """Where data sets are looked for by name: in the folder that ``SQVAE_DATA`` names, or if it is not set, in the
    folder ``data`` of the cache, which is ``~/.cache/sqvae/data`` unless ``SQVAE_CACHE`` names another cache."""
    chosen = os.environ.get("SQVAE_DATA")
    return Path(chosen).expanduser() if chosen else cache_folder() / "data"
