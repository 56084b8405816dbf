"""The page of `sqvae explore`: examples with codes that can be replaced, the codebook, training curves and samples."""

from sqvae.explore.explorer import Explorer, explorer_of
from sqvae.explore.opening import open_run
from sqvae.explore.server import free_socket, serve

__all__ = ["Explorer", "explorer_of", "free_socket", "open_run", "serve"]
