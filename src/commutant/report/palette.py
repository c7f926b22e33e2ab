"""The colours of the heat map, once for terminal and page.

A sequential scale from yellow to brown: lightness falls evenly, so that it reads the same with any colour vision and in
a grey print. On a dark page the order of lightness is turned round, so that more conflicts always stand out more. Level
0 (conflict-free) has no colour of its own: good news is quiet.
"""

from __future__ import annotations

from commutant.report.heat import COLOUR_STEPS

LIGHT = ("#ffffff", "#fff3c4", "#fed976", "#fd9a3c", "#d9480f", "#7f2704")
"""Backgrounds of the levels on a light page, and in terminals."""

DARK = ("#16181d", "#3b2a12", "#6b3f0c", "#a8590a", "#ee8a2a", "#ffd58a")
"""Backgrounds of the levels on a dark page."""

assert len(LIGHT) == len(DARK) == COLOUR_STEPS


def text_colour(background: str) -> str:
    """Black or white, whichever has the higher contrast on the background (WCAG 2 relative luminance)."""
    return max(("#000000", "#ffffff"), key=lambda colour: contrast(colour, background))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2 between two colours given as `#rrggbb`, from 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
