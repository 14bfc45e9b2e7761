"""How Sphinx builds the site from the staged pages (stage.py)."""

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "build" / "docs" / "static"
sys.path.insert(0, str(ROOT / "python"))

project = "moelab"
author = "The moelab authors"
copyright = "The moelab authors, Apache License 2.0"
extensions = ["myst_parser", "sphinx_copybutton", "sphinx.ext.mathjax", "sphinx.ext.autodoc"]

# Markdown that code hosts read, too: no directive, anchors of headings as a code host makes them.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 6
myst_dmath_double_inline = True
highlight_language = "none"

# Neither the compiled part nor scikit-learn is needed for the docstrings.
autodoc_mock_imports = ["moelab._core", "sklearn"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"

html_theme = "pydata_sphinx_theme"
html_title = "moelab"
html_static_path = ["_static", str(STATIC)]
html_css_files = ["moelab.css"]
html_js_files = ["tables.js"]
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 9,
    "navigation_with_keys": True,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "article_header_end": [],
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_bar_text": "Search moelab",
}
# The first page, and a folder of one page, have no sidebar.
html_sidebars = {"index": [], "questions/index": []}

# One file of MathJax, which draws equations as SVG: no server, no fonts.
mathjax_path = "tex-svg.js"
STATIC.mkdir(parents=True, exist_ok=True)
shutil.copy(next(file for folder in map(Path, sys.path)
                 if (file := folder / "sphinx-mathjax-offline" / "static" / "mathjax" / "tex-svg.js").exists()), STATIC)


def keep_plain_names(app, exception):
    """Sphinx writes files that only a server or a developer needs."""
    if exception is None:
        for name in ("objects.inv", ".buildinfo"):
            (Path(app.outdir) / name).unlink(missing_ok=True)
        for file in Path(app.outdir).rglob("*.map"):
            file.unlink()


def setup(app):
    app.connect("build-finished", keep_plain_names)
