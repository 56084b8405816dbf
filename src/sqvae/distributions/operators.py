"""Functions that the compiler treats as opaque operators."""

from collections.abc import Callable
from typing import Any

import torch


def define_operator(
    name: str, signature: str, run: Callable[..., Any], allocate: Callable[..., Any], *, random: bool = False
) -> Callable[..., Any]:
    """Register a function as a torch operator, ``sqvae::name``, so that tracing does not look inside it.

    Arguments:
        name: the operator's name.
        signature: its signature in torch's notation, without the name.
        run: the implementation, for every device.
        allocate: takes the same arguments and returns outputs of the right shape, type and device, with any values.
        random: it draws from torch's generator, so two equal calls must not be merged into one.
    """
    tags = (torch.Tag.pt2_compliant_tag, *([torch.Tag.nondeterministic_seeded] if random else []))
    qualified = f"sqvae::{name}"
    torch.library.define(qualified, signature, tags=tags)
    torch.library.impl(qualified, "CompositeExplicitAutograd", run)
    torch.library.register_fake(qualified, allocate)
    operator: Callable[..., Any] = getattr(torch.ops.sqvae, name)
    return operator
