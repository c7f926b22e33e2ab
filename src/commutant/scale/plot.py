"""The throughput per core against the number of cores, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from commutant.scale.scaling import HALF, ScaleDocument

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 480, 300, 52, 16, 34, 44
_LONGEST_NAME = 32
_BLUE, _GREY, _RED = "#1b6ca8", "#999999", "#c8553d"


def picture(document: ScaleDocument, *, links: bool = False) -> str:
    """One document: predicted throughput per core, of one without transfers, with what the constants move it; a point
    says by its title what the busiest line is. With `links` it leads to `#cores-8` and the like."""
    return "\n".join(_lines(document, links=links)) + "\n"


def _lines(document: ScaleDocument, *, links: bool) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="11">'
    )
    yield f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    heading = f"{_short(document.benchmark)}: predicted throughput per core"
    yield f'<text x="{_LEFT}" y="18" font-size="13">{escape(heading)}</text>'
    most = max((step.cores for step in document.steps), default=1)

    def x(cores: int) -> float:
        part = math.log2(cores) / max(1.0, math.log2(most))
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * part

    def y(per_core: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - min(1.0, per_core))

    for part in (0.0, 0.25, HALF, 0.75, 1.0):
        dash = ' stroke-dasharray="4 3"' if part == HALF else ""
        yield _line((_LEFT, y(part)), (_WIDTH - _RIGHT, y(part)), f'stroke="{_GREY}" stroke-width="0.5"{dash}')
        yield f'<text x="{_LEFT - 6}" y="{y(part) + 4:.1f}" text-anchor="end">{part:.2f}</text>'
    for step in document.steps:
        yield f'<text x="{x(step.cores):.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{step.cores}</text>'
    yield f'<text x="{_WIDTH / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">cores</text>'
    points = " ".join(f"{x(step.cores):.1f},{y(step.predicted.per_core):.1f}" for step in document.steps)
    yield f'<polyline points="{points}" fill="none" stroke="{_BLUE}" stroke-width="1.5"/>'
    for step in document.steps:
        predicted = step.predicted
        values = [value for interval in predicted.sensitivity for value in (interval.halved, interval.doubled)]
        at = x(step.cores)
        yield _line((at, y(min(values))), (at, y(max(values))), f'stroke="{_BLUE}" stroke-width="1"')
        colour = _RED if predicted.per_core < HALF else _BLUE
        title = (
            f"{step.cores} cores: {predicted.per_core:.3f}, {step.transfers:.4f} transfers, "
            f"{step.maintenance + step.after_maintenance:.4f} by maintenance; "
            f"busiest: {predicted.busiest_line or 'none'}"
        )
        begin, end = (f'<a href="#cores-{step.cores}">', "</a>") if links else ("", "")
        yield (
            f'{begin}<circle cx="{at:.1f}" cy="{y(predicted.per_core):.1f}" r="{5 if links else 3}" fill="{colour}">'
            f"<title>{escape(title)}</title></circle>{end}"
        )
    yield "</svg>"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _line(start: tuple[float, float], end: tuple[float, float], style: str) -> str:
    return f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" {style}/>'
