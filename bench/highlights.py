"""The dozen figures that matter, of which the page of figures begins: what each says, and what others have there.

A figure is named by its area and its name in docs/benchmarks.json; what is not measured yet is left out of the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.figure import Figure, number


@dataclass(frozen=True, slots=True)
class Highlight:
    """A figure of an area, in words, and its peer: the same quantity elsewhere with its source, or (`limit`) another
    figure of the area that it cannot pass."""

    area: str
    figure: str
    words: str
    peer: str = ""
    limit: str = ""


PAPER = "*The Scalable Commutativity Rule*"

HIGHLIGHTS = (
    Highlight("demo", "from the command to the heat map", "`make demo`, again: from the command to the heat map"),
    Highlight("analyze", "posix18, all pairs", "when do the 171 pairs of 18 POSIX calls commute?"),
    Highlight("triples", "posix18, all triples", "and the 1,140 triples?"),
    Highlight(
        "campaign",
        "all pairs with tests",
        "a test for every way in which a pair commutes",
    ),
    Highlight(
        "campaign",
        "run on tmpfs with --repeats 1, whole command",
        "all of them on Linux, in both orders, every access recorded",
        f"8 minutes: 13,664 tests made and run, with those on sv6 ({PAPER}, section 6.1)",
    ),
    Highlight("campaign", "run on tmpfs with --repeats 3, wrong results", "tests on which Linux and the model differ"),
    Highlight(
        "windows",
        "2 virtual machines on 2 cores, recorded and judged",
        "windows on Linux, recorded and judged",
        limit="2 virtual machines on 2 cores, without recording (the limit)",
    ),
    Highlight(
        "names",
        "shared lines with name and both stacks, 3228 tests of posix18 on tmpfs",
        "shared lines with a name and both stacks",
    ),
    Highlight(
        "names",
        "verdicts that two campaigns agree on, 3228 tests of posix18 on tmpfs",
        "verdicts that two boots of one kernel agree on",
    ),
    Highlight("scalefs", "stat, of tmpfs's time", "ScaleFS: stat", "1 is Linux's tmpfs, which enters the kernel"),
    Highlight("scalefs", "open+close, of tmpfs's time", "ScaleFS: open and close", "the same"),
    Highlight("scalefs", "create+unlink, of tmpfs's time", "ScaleFS: create and unlink", "the same"),
    Highlight("scalefs", "rename, of tmpfs's time", "ScaleFS: rename", "the same"),
    Highlight(
        "locks",
        "largest error of a prediction",
        "lock view: the farthest that a foretold gain was from the measured one, of 13 programs",
    ),
    Highlight("report", "one run of 25,000 tests, page", "the HTML page of a run of 25,000 tests"),
)


def rows(areas: Mapping[str, Any]) -> Iterator[str]:
    """A row of the page's first table for each highlight that has been measured."""
    for highlight in HIGHLIGHTS:
        area = areas.get(highlight.area, {"figures": []})
        figures = {figure["name"]: Figure.from_json(figure) for figure in area["figures"]}
        if highlight.figure in figures:
            figure = figures[highlight.figure]
            peer = highlight.peer
            if highlight.limit in figures:
                limit = figures[highlight.limit]
                peer = f"{number(limit.median)} {limit.unit} without recording: the limit"
            made = f"`make bench-{highlight.area}`, {area['date']}, {area['machine'].get('commit', '')[:7]}"
            value = f"{number(figure.median)} {figure.unit}".strip()
            yield f"| {highlight.words} | **{value}** | {figure.goal_text} | {peer} | {made} |"
