"""The pages as a site with search: `make site`. The repository is the source folder, so that links mean what they mean
there; a link to a file that is no page leads to a copy of it. docs/index.md is the one list of pages.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

project = "Commutant"
html_title = "Commutant"
html_theme = "furo"
templates_path = ["templates"]
html_additional_pages = {"index": "redirect.html"}
html_copy_source = False
html_show_copyright = False

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md"]
myst_heading_anchors = 4
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]
"""Blocks of JSON with an ellipsis are not highlighted; all else that is warned of ends the build."""

SECTION = re.compile(r"^## ([^:\n]+).*\n((?:(?!^## ).*\n?)*)", re.MULTILINE)
PAGE = re.compile(r"\]\(([^)#]+)\.md\)")


def _add_contents(_: Sphinx, page: str, source: list[str]) -> None:
    """Appends to the index a table of contents for the sidebar: a caption for each heading, its links as entries."""
    if page == root_doc:
        for caption, text in SECTION.findall(source[0]):
            links = "\n".join(link[2:] if link.startswith("../") else f"/docs/{link}" for link in PAGE.findall(text))
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{links}\n```\n"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _add_contents)
