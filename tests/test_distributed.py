"""Moving averages over several processes are those of one process with the whole batch."""

import os
import sys

import pytest
import torch
from torch import distributed, multiprocessing

from sqvae import EMAVectorQuantizer

STEPS = 6


def batches() -> torch.Tensor:  # -> (STEPS, 8, 5, 4)
    return torch.randn(STEPS, 8, 5, 4, generator=torch.Generator().manual_seed(1))


def start() -> EMAVectorQuantizer:
    torch.manual_seed(0)
    return EMAVectorQuantizer(12, 4, decay=0.8, reset_every=3, reset_below=0.5)


def train_in_one_of(rank: int, processes: int, folder: str) -> None:
    torch.set_num_threads(1)
    if sys.platform == "linux":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the processes meet on this machine only
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=processes)
    try:
        quantizer = start()
        torch.manual_seed(2 + 100 * rank)  # each process has noise of its own
        for batch in batches():
            quantizer(batch.chunk(processes)[rank])
        torch.save(quantizer.state_dict(), f"{folder}/{rank}.pt")
    finally:
        distributed.destroy_process_group()


@pytest.mark.skipif(not distributed.is_available(), reason="torch was built without distributed training")
def test_two_processes_have_the_codebook_of_one(tmp_path):
    multiprocessing.spawn(train_in_one_of, (2, str(tmp_path)), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1))
    alone = start()
    torch.manual_seed(2)
    for batch in batches():
        alone(batch)
    for key, value in alone.state_dict().items():
        assert torch.equal(first[key], second[key]), key
        torch.testing.assert_close(first[key], value)
