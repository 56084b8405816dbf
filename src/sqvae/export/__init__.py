"""Tokenizers as files that run without this package."""

from sqvae.export.exporting import ExportError, Written, export

__all__ = ["ExportError", "Written", "export"]
