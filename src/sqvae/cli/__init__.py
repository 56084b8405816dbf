"""The command line."""

import sqvae.cli.exploring
import sqvae.cli.exporting
import sqvae.cli.generative
import sqvae.cli.reporting  # noqa: F401 - importing these modules registers their commands
from sqvae.cli.app import main
from sqvae.cli.groups import arrange
from sqvae.cli.root import app

arrange(app)

__all__ = ["main"]
