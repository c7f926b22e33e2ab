"""The page's table of programs in a tree of `scalefs run`, next to tmpfs and to a mount, from the figures of area
`programs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.areas.programs import OF_MOUNT, OF_TMPFS
from bench.figure import Figure, number

TREE = "tree: "
HEAD = """
## Programs on ScaleFS
What calls and programs take in a tree of `scalefs run`, of what they take on tmpfs, by processor time; and of what they
take in a mount of `scalefs mount`, by the clock, since another process does the work there. In brackets the quartiles.
[The guide](guides/programs.md) says what runs where.
"""


def section(area: Mapping[str, Any] | None) -> list[str]:
    """Lines of Markdown; none where no tree was measured."""
    return [] if area is None else list(_lines(area))


def _lines(area: Mapping[str, Any]) -> Iterator[str]:
    figures = {figure["name"]: Figure.from_json(figure) for figure in area["figures"]}
    names = [name for name in figures if name.startswith(TREE) and name.endswith(OF_TMPFS)]
    if not names:
        return
    yield HEAD
    yield f"Measured on {area['date']} at commit {area['machine']['commit'][:7]} by `make bench-programs`."
    yield ""
    yield "| what | ns in a tree | of tmpfs's time | goal | of the time in a mount |"
    yield "| --- | --- | --- | --- | --- |"
    for name in names:
        what = name.removesuffix(OF_TMPFS)
        mounted = figures.get(what + OF_MOUNT)
        in_mount = "" if mounted is None else _spread(mounted)
        time = f"{figures[what].median:,.0f}"
        row = (what.removeprefix(TREE), time, _spread(figures[name]), figures[name].goal_text, in_mount)
        yield f"| {' | '.join(row)} |"


def _spread(figure: Figure) -> str:
    low, high = min(figure.samples), max(figure.samples)
    return f"**{number(figure.median)}** [{number(low)}, {number(high)}]"
