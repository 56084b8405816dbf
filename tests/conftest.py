"""Shared by all tests: determinism, and where real data lies."""

import os
from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def mnist() -> Path:
    """The folder of MNIST's four official files."""
    root = Path(os.environ.get("SQVAE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (root / "mnist").is_dir():
        pytest.skip(f"no folder mnist in {root}: set SQVAE_DATA to the folder of data sets to run this test")
    return root / "mnist"
