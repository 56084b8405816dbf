"""Measures of what a model does to a whole set of data."""

from sqvae.metrics.comparison import Comparison, Confusion, Levels, SquaredErrors
from sqvae.metrics.reconstruction import ReconstructionTotals

__all__ = ["Comparison", "Confusion", "Levels", "ReconstructionTotals", "SquaredErrors"]
