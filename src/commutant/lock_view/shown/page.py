"""The study as an HTML page: one file that needs nothing else, with a picture of all locks.

The page carries no script and asks the browser for nothing that is not in it; what it shows of a lock opens in place.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from commutant.lock_view.shown.table import start_up_text, summary
from commutant.lock_view.study.classes import LockClass, LockStudy
from commutant.lock_view.study.verdict import verdict
from commutant.lock_view.study.warning import ContentionWarning, warnings
from commutant.lock_view.study.what_if import THREADS, Prediction, predictions
from commutant.support import plural, safe_text

WIDTH, HEIGHT = 720, 360
_LEFT, _TOP, _RIGHT, _BOTTOM = 72, 12, 16, 44
_FIELDS_SHOWN, _FRAMES_SHOWN = 8, 8
_LABEL_LETTERS, _LETTER_WIDTH, _LINE_HEIGHT = 36, 6.5, 14.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A lock in the picture: to the right the longer it is held, higher the more of its pairs are independent."""

    place: int
    name: str
    x: float
    y: float
    radius: float
    title: str
    label: str
    """What stands next to it: nothing where other names are in the way."""

    @property
    def anchor(self) -> str:
        """The side of the label that lies at `label_x`: it stays within the picture."""
        return "end" if self.x > WIDTH / 2 else "start"

    @property
    def label_x(self) -> float:
        """Where the label begins or ends."""
        return self.x + (self.radius if self.anchor == "end" else -self.radius)


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A class of locks on the page."""

    place: int
    lock: LockClass
    compared: int
    predictions: list[Prediction]


def render_page(study: LockStudy, classes: Sequence[LockClass], title: str) -> str:
    """The page as text; `title` says what was recorded."""
    style = _text("locks.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(safe_text=safe_text, plural=plural)
    shown = [
        Shown(
            place,
            one,
            one.total(lambda lock: lock.field_pairs),
            predictions(one, study.record, hand_overs=study.hand_overs),
        )
        for place, one in enumerate(classes)
    ]
    dots, ticks = _picture(classes)
    return environment.from_string(_text("locks.html.j2")).render(
        title=title,
        study=study,
        record=study.record,
        shown=shown,
        warnings=[(warning, _place(warning, classes)) for warning in warnings(study)],
        dots=dots,
        ticks=ticks,
        heights=[Tick(_y(percent), f"{percent} %") for percent in (0, 25, 50, 75, 100)],
        width=WIDTH,
        height=HEIGHT,
        left=_LEFT,
        right=WIDTH - _RIGHT,
        bottom=HEIGHT - _BOTTOM,
        top=_TOP,
        threads=THREADS,
        fields_shown=_FIELDS_SHOWN,
        frames_shown=_FRAMES_SHOWN,
        verdict=verdict(study).text,
        summary=summary(study),
        start_up=start_up_text(study.record),
        style=Markup(style),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
    )


def _place(warning: ContentionWarning, classes: Sequence[LockClass]) -> int | None:
    return next((place for place, one in enumerate(classes) if one is warning.lock), None)


def _picture(classes: Sequence[LockClass]) -> tuple[list[Dot], list[Tick]]:
    """Dots of the locks of which sections were compared, and the marks of the logarithmic axis of time held."""
    known = [(place, one, one.independence_percent()) for place, one in enumerate(classes) if one.hold_instructions]
    placed = [(place, one, share) for place, one, share in known if share is not None]
    if not placed:
        return [], []
    powers = [math.log10(one.hold_instructions) for _, one, _ in placed]
    low, high = math.floor(min(powers)), max(math.ceil(max(powers)), math.floor(min(powers)) + 1)

    def x(instructions: float) -> float:
        return _LEFT + (math.log10(instructions) - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    taken: list[tuple[float, float, float]] = []
    dots = [
        Dot(
            place,
            one.name,
            x(one.hold_instructions),
            _y(share),
            min(14.0, 3.0 + math.log10(one.acquired)),
            f"{safe_text(one.name)}: held for {plural(one.hold_instructions, 'instruction')}, "
            f"{share:.1f} % independent, {plural(one.acquired, 'acquire')}",
            _label(one.name, x(one.hold_instructions), _y(share), taken),
        )
        for place, one, share in placed
    ]
    return dots, [Tick(x(10.0**power), _power(power)) for power in range(low, high + 1)]


def _label(name: str, x: float, y: float, taken: list[tuple[float, float, float]]) -> str:
    """The name, shortened, if no other stands there; `taken` are those that do, as left, right and height."""
    label = name if len(name) <= _LABEL_LETTERS else name[: _LABEL_LETTERS - 1] + "…"
    width = _LETTER_WIDTH * len(label)
    left = x - width if x > WIDTH / 2 else x
    if any(abs(y - height) < _LINE_HEIGHT and left < right and start < left + width for start, right, height in taken):
        return ""
    taken.append((left, left + width, y))
    return label


def _y(percent: float) -> float:
    return HEIGHT - _BOTTOM - percent / 100 * (HEIGHT - _TOP - _BOTTOM)


def _power(power: int) -> str:
    names = {0: "1", 1: "10", 2: "100", 3: "1 k", 4: "10 k", 5: "100 k", 6: "1 M", 7: "10 M", 8: "100 M", 9: "1 G"}
    return names.get(power, f"{10 ** (power - 9):,} G")


@cache
def _text(name: str) -> str:
    return resources.files("commutant.lock_view.shown").joinpath("templates", name).read_text(encoding="utf-8")
