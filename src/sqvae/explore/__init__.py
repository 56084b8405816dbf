"""A trained run in the browser: look at examples through their codes, change codes, see what becomes of it."""

from sqvae.explore.explorer import Explorer, explorer_of
from sqvae.explore.opening import open_run
from sqvae.explore.server import free_socket, serve

__all__ = ["Explorer", "explorer_of", "free_socket", "open_run", "serve"]
