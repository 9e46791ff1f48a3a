"""How `make docs` builds the site: Markdown pages, the commands and the docstrings, and nothing that is loaded from outside."""

import sys
from datetime import UTC, datetime
from pathlib import Path

from netdp import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))  # the site's own few modules

project = "netdp"
author = "the netdp authors"
copyright = f"{datetime.now(UTC).year}, {author}. Apache-2.0"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "site_pages"]
exclude_patterns = ["_ext", "_static", "images", "**.ipynb_checkpoints"]
nitpicky = True
nitpick_ignore_regex = [("py:(class|data|exc)", ".*")]  # annotations name types of NumPy and of private modules
suppress_warnings = ["myst.header"]  # the page of errata is written by a program and begins its sections where it likes

myst_enable_extensions = ["deflist", "fieldlist", "colon_fence", "attrs_inline", "attrs_block"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

default_role = "code"
smartquotes = False  # two dashes before a flag are two dashes
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    name: name
    for name in (
        "ArrayLike",
        "npt.ArrayLike",
        "FloatArray",
        "IntArray",
        "Int32Array",
        "BoolArray",
        "NDArray",
        "Progress",
    )
}
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"netdp {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["reach.js"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5f6b",
        "color-brand-content": "#0b6e7c",
    },
    "dark_css_variables": {
        "color-brand-primary": "#5fc9d6",
        "color-brand-content": "#6fd3df",
    },
}
pygments_style = "a11y-high-contrast-light"  # comes with the theme
pygments_dark_style = "github-dark"
