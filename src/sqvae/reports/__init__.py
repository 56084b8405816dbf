"""Reports: records read into words, tables and pictures."""

from sqvae.reports.curves import save_curves
from sqvae.reports.drawing import Drawings
from sqvae.reports.grid import save_pairs
from sqvae.reports.results import results_page, rows_of
from sqvae.reports.summary import Section, summarize

__all__ = ["Drawings", "Section", "results_page", "rows_of", "save_curves", "save_pairs", "summarize"]
