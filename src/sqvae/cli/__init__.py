"""The command line."""

from sqvae.cli.app import main

__all__ = ["main"]
