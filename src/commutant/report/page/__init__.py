"""The HTML page of a run: one file that needs nothing else.

`pack` turns a run into tables in which every text, stack and finding stands once; `bundle` joins the page's own scripts
and styles; `write` renders the page and writes the file. What is drawn once and never changes (heat map, ranking) is
rendered here and readable without JavaScript; the scripts draw lists and tests from the packed tables.
"""

from commutant.report.page.write import render_html, write_html

__all__ = ["render_html", "write_html"]
