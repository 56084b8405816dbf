"""The command line."""

import sqvae.cli.generative  # noqa: F401 - whose commands belong to the application
from sqvae.cli.app import main

__all__ = ["main"]
