"""A history as a page: a table over all runs, and for each run what it shares most, what changed, and what moved."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from commutant.remedy.history import History
from commutant.support import safe_text

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff }
body { margin: 0 auto; max-width: 70rem; padding: 1rem }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: .15rem .8rem; text-align: left }
th { border-bottom: 2px solid #555 } td { border-bottom: 1px solid #ddd; overflow-wrap: anywhere }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } .quiet { color: #555 }
.came td, .more td { background: #fdecea } .went td, .fewer td { background: #e8f4ea } nav a { margin-right: 1rem }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #181818 } a { color: #9cf } .quiet { color: #aaa }
.came td, .more td { background: #4a2320 } .went td, .fewer td { background: #1f3d25 } td { border-color: #444 } }
"""


def history_page(shown: History, labels: Sequence[str], limit: int) -> str:
    """The page, with the `limit` variables that changed most; no script, and nothing from elsewhere."""
    source = resources.files("commutant.remedy").joinpath("templates/history.html.j2").read_text()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    readable = replace(shown, causes=tuple(replace(one, name=safe_text(one.name)) for one in shown.causes))
    return environment.from_string(source).render(
        shown=readable,
        labels=[safe_text(label) for label in labels],
        most=limit,
        style=Markup(_STYLE),
        style_hash=base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode(),
    )
