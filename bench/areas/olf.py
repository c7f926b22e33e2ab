"""What a move between lists or maps of crate `olf` costs beside other ways: ratios of times of one run, by turns."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bench.commands import text_of
from bench.figure import Figure, Goal

TITLE = "Moves between lists and maps"
COMMAND = ("cargo", "run", "--quiet", "--release", "-p", "olf", "--example", "cost")
RUNS = 3

RATIOS = (
    ("move, lists of 2", "remove, then insert", 0.9),
    ("move, lists of 10", "remove, then insert", 0.9),
    ("move, lists of 100", "remove, then insert", 1.0),
    ("move, lists of 2", "closure", None),
    ("move, lists of 10", "closure", None),
    ("move, lists of 100", "closure", None),
    ("move, lists of 2", "two Mutex<BTreeMap>", None),
    ("move, lists of 10", "two Mutex<BTreeMap>", None),
    ("move, lists of 100", "two Mutex<BTreeMap>", None),
    ("move, maps of 2048", "two Mutex<HashMap>", 0.8),
)
"""What is measured, what `move_to` is held against, and the goal for the ratio."""

Times = dict[tuple[str, str], float]


def measure() -> list[Figure]:
    """The times of `move_to`, and its ratios to other ways."""
    return figures_of([times_of(text_of(*COMMAND)) for _ in range(RUNS)])


def times_of(output: str) -> Times:
    """Nanoseconds by what is measured and by the way, as the example prints them."""
    rows = [json.loads(line) for line in output.splitlines()]
    return {(row["what"], row["way"]): row["ns"] for row in rows}


def figures_of(runs: Sequence[Times]) -> list[Figure]:
    """The figures of some runs."""
    command = " ".join(COMMAND)
    whats = dict.fromkeys(what for what, _, _ in RATIOS)
    times = [Figure(f"{what}: move_to", "ns", tuple(run[what, "move_to"] for run in runs), command) for what in whats]
    ratios = [
        Figure(
            f"{what}: move_to to {way}",
            "times",
            tuple(run[what, "move_to"] / run[what, way] for run in runs),
            command,
            goal if goal is None else Goal("at_most", goal),
        )
        for what, way, goal in RATIOS
    ]
    return times + ratios
