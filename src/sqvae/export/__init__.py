"""Tokenizers as files that run without this package."""

from sqvae.export.exporting import Exported, ExportError, Written, export
from sqvae.export.runs import export_run

__all__ = ["ExportError", "Exported", "Written", "export", "export_run"]
