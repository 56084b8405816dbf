"""Reports: tables, plots, pages and sentences about runs and their results."""

from sqvae.reports.atlas import save_atlas
from sqvae.reports.codebook import save_distances, save_use
from sqvae.reports.curves import save_curves
from sqvae.reports.drawing import Drawings
from sqvae.reports.grid import Caption, save_pairs, save_rows
from sqvae.reports.rates import save_rates
from sqvae.reports.report import Claim, Picture, Report, html_page, markdown_page
from sqvae.reports.results import error_of, results_page, rows_of
from sqvae.reports.spectra import save_spectra
from sqvae.reports.summary import Section, summarize
from sqvae.reports.tables import Table, mean_and_deviation

__all__ = [
    "Caption",
    "Claim",
    "Drawings",
    "Picture",
    "Report",
    "Section",
    "Table",
    "error_of",
    "html_page",
    "markdown_page",
    "mean_and_deviation",
    "results_page",
    "rows_of",
    "save_atlas",
    "save_curves",
    "save_distances",
    "save_pairs",
    "save_rates",
    "save_rows",
    "save_spectra",
    "save_use",
    "summarize",
]
