"""Pages about runs, each a single HTML file that loads no other files."""

from sqvae.pages.writing import write_run_page

__all__ = ["write_run_page"]
