r"""One batch over several processes: the only module that calls `torch.distributed`.

Data-parallel training with W processes equals training in one process with the whole batch, up to rounding, if

- process r holds the r-th contiguous slice of the batch, and all slices are equally large;
- all processes have the same seed, so that each can compute its own part of one stream of noise;
- gradients are averaged over processes, as `torch.nn.parallel.DistributedDataParallel` does.

A loss that is a mean over samples needs nothing else. Anything that depends on the batch in another way uses the sums
of this module. With one process, these functions cost nothing and change nothing.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed

from sqvae.distributions.operators import define_operator


def processes() -> tuple[int, int]:
    """The rank of this process and the number of processes: (0, 1) unless a process group was initialised."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def sum_over_processes(values: Tensor) -> Tensor:
    r"""The sum over all processes, returned in each of them. Differentiable. Every process must call it.

    With :math:`S = \sum_r s_r` and a loss :math:`L_q(S, \dots)` in each process q, the backward pass sums gradients
    over processes, and so gives process r the derivative of all losses with respect to its own summand,

    .. math:: \sum_q \frac{\partial L_q}{\partial S} = \frac{\partial}{\partial s_r} \sum_q L_q.

    Each process propagates it to the parameters. The average of that over processes is
    :math:`\frac1W \sum_r \frac{\partial \sum_q L_q}{\partial s_r} \frac{\partial s_r}{\partial \theta}`: exactly the
    gradient of the global loss :math:`\frac1W \sum_q L_q`.
    """
    _, number = processes()
    if number == 1:
        return values
    total: Tensor = _sum_operator(values)
    return total


def mean_over_processes(values: Tensor) -> Tensor:
    """The mean over all processes, returned in each of them. Differentiable. Every process must call it."""
    _, number = processes()
    return values if number == 1 else sum_over_processes(values) / number


def stack_over_processes(values: Tensor) -> Tensor:  # (...) -> (number, ...)
    """The values of all processes, stacked, in each of them. Differentiable. All shapes must be equal."""
    rank, number = processes()
    own = values.unsqueeze(0)
    if number == 1:
        return own
    before, after = (own.new_zeros(others, *values.shape) for others in (rank, number - 1 - rank))
    return sum_over_processes(torch.cat((before, own, after)))


def same_on_all_processes(values: Tensor) -> Tensor:
    """The values of the first process, returned in every process."""
    rank, _ = processes()
    return sum_over_processes(values if rank == 0 else torch.zeros_like(values))


def own_rows(draw: Callable[[int], Tensor], rows: int) -> Tensor:
    """This process's part of a random draw for the whole batch.

    Every process draws all rows and keeps its own slice, so that the generators stay in step.

    Arguments:
        draw: takes a number of rows and returns random values, (rows, ...).
        rows: the number of rows of this process.
    """
    rank, number = processes()
    return draw(rows) if number == 1 else draw(number * rows)[rank * rows : (rank + 1) * rows]


def own_normal_like(values: Tensor) -> Tensor:  # (N, ...) -> (N, ...)
    """Standard normal noise for this process's rows, like `torch.randn_like` for the whole batch."""
    return own_rows(
        lambda rows: torch.randn(rows, *values.shape[1:], dtype=values.dtype, device=values.device), values.shape[0]
    )


def own_uniform(rows: int, device: torch.device) -> Tensor:  # -> (rows,)
    """Uniform random numbers for this process's rows of the whole batch."""
    return own_rows(lambda number: torch.rand(number, device=device), rows)


def _sum(values: Tensor) -> Tensor:
    total = values.clone(memory_format=torch.contiguous_format)
    distributed.all_reduce(total)
    return total


def _differentiate_sum(_ctx: Any, gradient: Tensor) -> Tensor:
    return sum_over_processes(gradient)


_sum_operator = define_operator(
    "sum_over_processes",
    "(Tensor values) -> Tensor",
    _sum,
    lambda values: torch.empty_like(values, memory_format=torch.contiguous_format),
)
torch.library.register_autograd("sqvae::sum_over_processes", _differentiate_sum)
