"""Measures of what a model does to a whole set of data."""

from sqvae.metrics.reconstruction import ReconstructionTotals

__all__ = ["ReconstructionTotals"]
