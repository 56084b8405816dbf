"""Metrics of a model on a whole dataset."""

from sqvae.metrics.abx import AbxResult, abx
from sqvae.metrics.comparison import Comparison, Confusion, Decibels, Levels, SquaredErrors
from sqvae.metrics.frechet import (
    FEATURES,
    FeatureNetwork,
    FeatureStatistics,
    RandomConvolutions,
    distance_name,
    feature_network,
    frechet_distance,
    frechet_notes,
)
from sqvae.metrics.inception import Inception
from sqvae.metrics.inception_weights import INCEPTION, InceptionWeightsError, find_inception
from sqvae.metrics.items import Item, read_items
from sqvae.metrics.measures import MEASURES, Measure
from sqvae.metrics.reconstruction import ReconstructionTotals

__all__ = [
    "FEATURES",
    "INCEPTION",
    "MEASURES",
    "AbxResult",
    "Comparison",
    "Confusion",
    "Decibels",
    "FeatureNetwork",
    "FeatureStatistics",
    "Inception",
    "InceptionWeightsError",
    "Item",
    "Levels",
    "Measure",
    "RandomConvolutions",
    "ReconstructionTotals",
    "SquaredErrors",
    "abx",
    "distance_name",
    "feature_network",
    "find_inception",
    "frechet_distance",
    "frechet_notes",
    "read_items",
]
