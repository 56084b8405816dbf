"""Measures of what a model does to a whole set of data."""

from sqvae.metrics.abx import AbxResult, abx
from sqvae.metrics.comparison import Comparison, Confusion, Decibels, Levels, SquaredErrors
from sqvae.metrics.items import Item, read_items
from sqvae.metrics.reconstruction import ReconstructionTotals

__all__ = [
    "AbxResult",
    "Comparison",
    "Confusion",
    "Decibels",
    "Item",
    "Levels",
    "ReconstructionTotals",
    "SquaredErrors",
    "abx",
    "read_items",
]
