"""Analyses of a trained model: its codes and their distances, training curves, and manipulated codes."""

from sqvae.analysis.code_space import code_colours, code_positions
from sqvae.analysis.curves import Curve, training_views
from sqvae.analysis.distances import code_distances
from sqvae.analysis.frechet import BASELINES, SETS, Makers, frechet_distances, made_by, sets_of
from sqvae.analysis.manipulation import interpolated, nearest_codes, neighbour_table, neighbours

__all__ = [
    "BASELINES",
    "SETS",
    "Curve",
    "Makers",
    "code_colours",
    "code_distances",
    "code_positions",
    "frechet_distances",
    "interpolated",
    "made_by",
    "nearest_codes",
    "neighbour_table",
    "neighbours",
    "sets_of",
    "training_views",
]
