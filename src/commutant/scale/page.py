"""The scaling as an HTML page: one file that needs nothing else, with the plot of throughput per core.

A point of the plot leads to the variables at its number of cores, and a variable opens the two stacks that pass it on.
The page carries no script and asks the browser for nothing that is not in it.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from commutant.scale.constants import NAMES
from commutant.scale.plot import picture
from commutant.scale.scaling import ScaleDocument
from commutant.scale.show import conditions_in_words, stop_in_words
from commutant.support import plural, safe_text


def page(document: ScaleDocument) -> str:
    """The page as text."""
    style = _text("scale.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(safe_text=safe_text, plural=plural)
    return environment.from_string(_text("scale.html.j2")).render(
        document=document,
        conditions=conditions_in_words(document),
        stop=stop_in_words(document),
        plot=Markup(picture(document, links=True)),
        constants=[(name, getattr(document.constants, name)) for name in NAMES],
        style=Markup(style),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
    )


@cache
def _text(name: str) -> str:
    return resources.files("commutant.scale").joinpath("templates", name).read_text(encoding="utf-8")
