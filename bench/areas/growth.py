"""How time, runs and memory of the analysis grow with the number of calls and with the size of the sets."""

from __future__ import annotations

import sys
from typing import Any

from bench.commands import json_of
from bench.document import DOCS
from bench.figure import Figure
from bench.plot import Plot, Series

TITLE = "Growth of the analysis"
PICTURE = "analysis-growth.svg"
CALLS = (3, 6, 9, 12, 15, 18)
LARGEST = {1: 18, 2: 18, 3: 9, 4: 3}
"""With how many calls sets of each size are still measured."""


def measure() -> list[Figure]:
    """One figure per number of calls, size of sets and quantity; draws the picture."""
    figures: list[Figure] = []
    measured: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for size, largest in LARGEST.items():
        for count in (count for count in CALLS if count <= largest):
            command = f"python -m bench.exploration {count} {size}"
            found = json_of(sys.executable, "-m", "bench.exploration", str(count), str(size))
            measured.setdefault(size, []).append((count, found))
            name = f"{found['sets']} sets of {size} among {count} calls"
            figures += [
                Figure(f"{name}, processor time", "s", (found["seconds"],), command),
                Figure(f"{name}, paths", "paths", (found["paths"],), command),
                Figure(f"{name}, runs", "runs", (found["runs"],), command),
                Figure(f"{name}, solver calls", "calls", (found["solver_calls"],), command),
                Figure(f"{name}, memory", "MiB", (found["memory_mib"],), command),
            ]
    plots = [
        Plot(
            title,
            "calls",
            [Series(f"sets of {size}", [(n, found[key]) for n, found in points]) for size, points in measured.items()],
        )
        for title, key in (("processor time (s)", "seconds"), ("paths", "paths"), ("memory (MiB)", "memory_mib"))
    ]
    (DOCS / PICTURE).write_text(Plot.drawn(plots))
    return figures
