"""Shared by all tests."""

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
import torch

# The tensors here are small, and two threads that wait for each other on a busy machine are many times slower than one.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def _own_cache() -> Iterator[None]:
    """Decoded pictures of the tests, and of the processes that they start, stay out of the user's cache."""
    before = os.environ.get("SQVAE_CACHE")
    os.environ["SQVAE_CACHE"] = folder = tempfile.mkdtemp(prefix="sqvae-cache-")
    yield
    shutil.rmtree(folder, ignore_errors=True)
    if before is None:
        del os.environ["SQVAE_CACHE"]
    else:
        os.environ["SQVAE_CACHE"] = before
