"""Pages about runs, each in one file that needs no other."""

from sqvae.pages.writing import write_run_page

__all__ = ["write_run_page"]
