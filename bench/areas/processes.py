"""What a process costs that is made, ends and is waited for, by what its parent has: posix_spawn takes the same time
however many descriptors that `exec` closes there are, and pages; fork grows with both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bench.commands import text_of
from bench.document import DOCS
from bench.figure import Figure, Goal
from bench.plot import Plot, Series

TITLE = "posix_spawn and fork by what the parent has"
PICTURE = "process-times.svg"
COMMAND = ("cargo", "run", "--quiet", "--release", "-p", "scalefs", "--example", "spawn_cost")
RUNS = 5
"""One sample each: other work during a run makes all its times larger, often by half."""
KINDS = {"close-on-exec": "descriptors that exec closes", "mapped pages": "mapped pages"}

Samples = tuple[float, ...]
Times = dict[str, list[tuple[int, Samples, Samples]]]
"""By kind: how many the parent has, and nanoseconds of posix_spawn and of fork, of each run."""

_HEAD = re.compile(r"^ *(?P<kind>" + "|".join(KINDS) + r") +spawn \(ns\)")
_ROW = re.compile(r"^ *(?P<count>\d+) +(?P<spawn>\d+) +(?P<fork>\d+) ")


def measure() -> list[Figure]:
    """The times by what the parent has, and posix_spawn's growth; draws the picture."""
    found = times_of([text_of(*COMMAND) for _ in range(RUNS)])
    (DOCS / PICTURE).write_text(picture(found))
    return list(figures_of(found))


def times_of(outputs: Sequence[str]) -> Times:
    """What runs of the example print. Raises RuntimeError if they do not print the same rows."""
    runs = [list(_rows(output)) for output in outputs]
    found: Times = {}
    for rows in zip(*runs, strict=False):
        found.setdefault(rows[0][0], []).append(
            (rows[0][1], tuple(row[2] for row in rows), tuple(row[3] for row in rows))
        )
    if len({tuple(row[:2] for row in run) for run in runs}) != 1:
        raise RuntimeError(f"`{' '.join(COMMAND)}` printed other rows in another run")
    return found


def _rows(output: str) -> Iterator[tuple[str, int, float, float]]:
    kind = ""
    for line in output.splitlines():
        if head := _HEAD.match(line):
            kind = KINDS[head["kind"]]
        elif kind and (row := _ROW.match(line)):
            yield kind, int(row["count"]), float(row["spawn"]), float(row["fork"])


def figures_of(found: Times) -> Iterator[Figure]:
    """Rows of the page. A ratio is one of two times of the same run."""
    command = " ".join(COMMAND)
    for kind, rows in found.items():
        for count, spawns, forks in rows:
            yield Figure(f"posix_spawn, exit and wait, {count:,} {kind}", "ns", spawns, command)
            yield Figure(f"fork, exit and wait, {count:,} {kind}", "ns", forks, command)
        (fewest, with_fewest, _), (most, with_most, _) = rows[0], rows[-1]
        ratios = tuple(ours / base for base, ours in zip(with_fewest, with_most, strict=True))
        name = f"posix_spawn with {most:,} {kind}, of its time with {fewest:,}"
        yield Figure(name, "", ratios, command, Goal("at_most", 1.1))


def picture(found: Times) -> str:
    """posix_spawn and fork against what the parent has, as SVG: medians, and from least to largest."""
    plots = [
        Plot(
            "posix_spawn and fork (ns)",
            kind,
            [
                Series.of_samples("fork", [(count, forks) for count, _, forks in rows]),
                Series.of_samples("posix_spawn", [(count, spawns) for count, spawns, _ in rows]),
            ],
            "logarithmic",
        )
        for kind, rows in found.items()
    ]
    return Plot.drawn(plots)
