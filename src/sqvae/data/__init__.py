"""Data, as tensors."""

from sqvae.data.digits import digits

__all__ = ["digits"]
