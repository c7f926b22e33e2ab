"""Plots for the page of figures, as SVG: points and lines over a logarithmic scale, side by side; and bars."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

WIDTH, HEIGHT, MARGIN = 300, 260, 56
COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#8a6d1d")


@dataclass(frozen=True, slots=True)
class Series:
    """Points (x, y) under one name; y is above 0. A point may have a spread: the least and the largest y at its x."""

    name: str
    points: Sequence[tuple[float, float]]
    spreads: Sequence[tuple[float, float]] = ()

    @classmethod
    def of_samples(cls, name: str, samples: Sequence[tuple[float, Sequence[float]]]) -> Series:
        """The median of the samples at each x, with their spread."""
        points = [(x, statistics.median(values)) for x, values in samples]
        return cls(name, points, [(min(values), max(values)) for _, values in samples])


@dataclass(frozen=True, slots=True)
class Plot:
    """Series over a common x axis; y is drawn logarithmically, x as well if `x_scale` says so (then x is above 0)."""

    title: str
    x_name: str
    series: Sequence[Series]
    x_scale: Literal["linear", "logarithmic"] = "linear"

    @staticmethod
    def drawn(plots: Sequence[Plot]) -> str:
        """The plots side by side as one SVG document."""
        total = WIDTH * len(plots)
        parts = [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {HEIGHT}" font-family="sans-serif" '
                'font-size="11">'
            ),
            f'<rect width="{total}" height="{HEIGHT}" fill="#ffffff"/>',
        ]
        for number, plot in enumerate(plots):
            parts += [f'<g transform="translate({number * WIDTH} 0)">', *plot._elements(), "</g>"]
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _elements(self) -> list[str]:
        points = [point for series in self.series for point in series.points]
        heights = [y for _, y in points] + [y for series in self.series for spread in series.spreads for y in spread]
        lowest = math.floor(math.log10(min(heights)))
        highest = max(lowest + 1, math.ceil(math.log10(max(heights))))
        scaled: Callable[[float], float] = math.log10 if self.x_scale == "logarithmic" else float
        left, right = (scaled(end(x for x, _ in points)) for end in (min, max))

        def place(x: float, y: float) -> tuple[float, float]:
            across = (scaled(x) - left) / ((right - left) or 1)
            up = (math.log10(y) - lowest) / (highest - lowest)
            return MARGIN + across * (WIDTH - MARGIN - 20), HEIGHT - 40 - up * (HEIGHT - 70)

        elements = [f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-weight="bold">{escape(self.title)}</text>']
        for power in range(lowest, highest + 1):
            _, y = place(left, 10.0**power)
            elements += [
                f'<line x1="{MARGIN}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>',
                f'<text x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>',
            ]
        for x in sorted({x for x, _ in points}):
            elements.append(f'<text x="{place(x, 1)[0]:.1f}" y="{HEIGHT - 24}" text-anchor="middle">{x:g}</text>')
        elements.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(self.x_name)}</text>')
        for number, series in enumerate(self.series):
            colour = COLOURS[number % len(COLOURS)]
            places = [place(x, y) for x, y in series.points]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            elements.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
            for (x, _), (least, largest) in zip(series.points, series.spreads, strict=False):
                (across, low), (_, high) = place(x, least), place(x, largest)
                elements.append(
                    f'<line x1="{across:.1f}" x2="{across:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{colour}"/>'
                )
            elements += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in places]
            elements.append(
                f'<text x="{MARGIN + 6}" y="{40 + 14 * number}" fill="{colour}">{escape(series.name)}</text>'
            )
        return elements


def bars(values: Mapping[str, float], title: str) -> str:
    """A horizontal bar for each value from 0 to 1, with its name and number, as an SVG document."""
    step, left, length = 18, 210, 360
    height = 34 + step * len(values)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="640" height="{height}" fill="#ffffff"/>',
        f'<text x="{left}" y="18" font-weight="bold">{escape(title)}</text>',
    ]
    for place, (name, value) in enumerate(values.items()):
        y = 28 + step * place
        width = length * min(value, 1)
        parts += [
            f'<text x="{left - 8}" y="{y + 11}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{left}" y="{y}" width="{length}" height="13" fill="#eeeeee"/>',
            f'<rect x="{left}" y="{y}" width="{width:.1f}" height="13" fill="{COLOURS[0]}"/>',
            f'<text x="{left + width + 5:.1f}" y="{y + 11}">{value:.3f}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"
