"""What a process costs that is made, ends and is waited for, by what its parent has: posix_spawn takes the same time
however many descriptors that `exec` closes there are, and pages; fork grows with both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.commands import text_of
from bench.document import DOCS
from bench.figure import Figure, Goal
from bench.plot import Plot, Series

TITLE = "posix_spawn and fork by what the parent has"
PICTURE = "process-times.svg"
COMMAND = ("cargo", "run", "--quiet", "--release", "-p", "scalefs", "--example", "spawn_cost")
KINDS = {"close-on-exec": "descriptors that exec closes", "mapped pages": "mapped pages"}

Times = dict[str, list[tuple[int, float, float]]]
"""By kind: how many the parent has, and nanoseconds of posix_spawn and of fork."""

_HEAD = re.compile(r"^ *(?P<kind>" + "|".join(KINDS) + r") +spawn \(ns\)")
_ROW = re.compile(r"^ *(?P<count>\d+) +(?P<spawn>\d+) +(?P<fork>\d+) ")


def measure() -> list[Figure]:
    """The times by what the parent has, and posix_spawn's growth; draws the picture."""
    found = times_of(text_of(*COMMAND))
    (DOCS / PICTURE).write_text(picture(found))
    return list(figures_of(found))


def times_of(output: str) -> Times:
    """What the example prints."""
    found: Times = {}
    kind = ""
    for line in output.splitlines():
        if head := _HEAD.match(line):
            kind = KINDS[head["kind"]]
        elif kind and (row := _ROW.match(line)):
            found.setdefault(kind, []).append((int(row["count"]), float(row["spawn"]), float(row["fork"])))
    return found


def figures_of(found: Times) -> Iterator[Figure]:
    """Rows of the page."""
    command = " ".join(COMMAND)
    for kind, rows in found.items():
        for count, spawn, fork in rows:
            yield Figure(f"posix_spawn, exit and wait, {count:,} {kind}", "ns", (spawn,), command)
            yield Figure(f"fork, exit and wait, {count:,} {kind}", "ns", (fork,), command)
        spawns = [spawn for _, spawn, _ in rows]
        name = f"posix_spawn with {rows[-1][0]:,} {kind}, of its time with {rows[0][0]:,}"
        yield Figure(name, "", (spawns[-1] / spawns[0],), command, Goal("at_most", 1.1))


def picture(found: Times) -> str:
    """posix_spawn and fork against what the parent has, as SVG."""
    plots = [
        Plot(
            "posix_spawn and fork (ns)",
            kind,
            [
                Series("fork", [(count, fork) for count, _, fork in rows]),
                Series("posix_spawn", [(count, spawn) for count, spawn, _ in rows]),
            ],
            "logarithmic",
        )
        for kind, rows in found.items()
    ]
    return Plot.drawn(plots)
