"""The documentation as a site: `make docs`, or `sphinx-build -W --keep-going -b html docs docs/_build/html`.

What it shows is in this folder and in docstrings. Nothing in it asks another host for anything.
"""

import sys
from pathlib import Path

from sqvae import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "sqvae"
author = "The sqvae engineers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "offline_math"]
# Each table and figure is also a file of its own, for pages to include; results.md holds them all.
exclude_patterns = ["_build", "results/*.md", "vectors-digits.md"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

add_module_names = False
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "show-inheritance": True,
    "no-value": True,  # of dictionaries it would be a page of addresses
    "exclude-members": "extra_repr",
}
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True
napoleon_custom_sections = [("Arguments", "params_style")]

html_theme = "furo"
html_title = "sqvae"
html_static_path = ["_static"]
html_css_files = ["sqvae.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
