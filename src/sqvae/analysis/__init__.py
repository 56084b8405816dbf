"""Analyses of a trained model: its codes and their distances, training curves, and manipulated codes."""

from sqvae.analysis.abx import AbxOfRun, abx_of_run
from sqvae.analysis.code_space import code_colours, code_positions
from sqvae.analysis.curves import Curve, training_views
from sqvae.analysis.distances import code_distances
from sqvae.analysis.evaluation import EvaluatedRun, evaluate_run, measured_rows
from sqvae.analysis.frechet import BASELINES, SETS, Makers, frechet_distances, made_by, sets_of
from sqvae.analysis.inspection import inspect_run
from sqvae.analysis.rates import measure_rates
from sqvae.analysis.run_distances import RunDistances, measure_distances
from sqvae.analysis.sheets import save_interpolation, save_neighbours
from sqvae.tokenizers.manipulation import interpolated, nearest_codes, neighbour_table, neighbours

__all__ = [
    "BASELINES",
    "SETS",
    "AbxOfRun",
    "Curve",
    "EvaluatedRun",
    "Makers",
    "RunDistances",
    "abx_of_run",
    "code_colours",
    "code_distances",
    "code_positions",
    "evaluate_run",
    "frechet_distances",
    "inspect_run",
    "interpolated",
    "made_by",
    "measure_distances",
    "measure_rates",
    "measured_rows",
    "nearest_codes",
    "neighbour_table",
    "neighbours",
    "save_interpolation",
    "save_neighbours",
    "sets_of",
    "training_views",
]
