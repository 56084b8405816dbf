"""Functions that the compiler takes as they are, instead of looking inside."""

from collections.abc import Callable
from typing import Any

import torch


def define_operator(
    name: str, signature: str, run: Callable[..., Any], allocate: Callable[..., Any], *, random: bool = False
) -> Callable[..., Any]:
    """Make a function an operator of torch, ``sqvae::name``, so that tracing finds neither loops nor caches in it.

    Arguments:
        signature: in torch's notation, without the name.
        run: what it does, on every device.
        allocate: the same arguments to outputs of the right shape, type and device, whatever they hold.
        random: it draws from torch's generator, so two equal calls must not be merged into one.
    """
    tags = (torch.Tag.pt2_compliant_tag, *([torch.Tag.nondeterministic_seeded] if random else []))
    qualified = f"sqvae::{name}"
    torch.library.define(qualified, signature, tags=tags)
    torch.library.impl(qualified, "CompositeExplicitAutograd", run)
    torch.library.register_fake(qualified, allocate)
    operator: Callable[..., Any] = getattr(torch.ops.sqvae, name)
    return operator
