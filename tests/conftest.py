"""Shared by all tests."""

import pytest
import torch

# The tensors here are small, and two threads that wait for each other on a busy machine are many times slower than one.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)
