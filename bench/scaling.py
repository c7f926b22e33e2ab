"""The page's table of transfers by the number of cores, from the figures of area `scale`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bench.areas.scale import FREE, MAINTENANCE, OPERATIONS, PER_CORE, PICTURE
from bench.figure import Figure, number

_NAME = re.compile(r"(?P<benchmark>\S+), (?P<cores>\d+) cores: (?P<what>.+)")

HEAD = """
## Transfers of lines at up to 256 cores
How often a line goes from core to core, per operation; `commutant scale` says what an operation of each is, and
[its guide](guides/scaling.md) how that is counted and what it does not say. Before the stroke: of operations by
themselves. After it: by maintenance, and what that makes operations miss. What commutes is to have 0 before the stroke.
"""

THROUGHPUT = f"""
### Throughput, next to the paper's
Figure 7 of *The Scalable Commutativity Rule*, up to its 80 cores. Ours is what a core gets done of what it does alone:
the instructions of an operation may grow with the cores, and lines are waited for. It is predicted, theirs measured.

![Predicted throughput per core of statbench, openbench and mailbench]({PICTURE})

| plot | theirs | ours |
| --- | --- | --- |
| (a) statbench | `fstatx` keeps its throughput per core up to 80 cores; `fstat` loses it | `statx`, `stat` |
| (b) openbench | `open` with O_ANYFD keeps it; with the lowest number it is lost | `open-any`, `open` |
| (c) mailbench | commutative calls: 7.5 times from 10 to 80 cores; standard ones collapse | `mail-any`, `mail` |
"""

LIMITS = """### What a simulation can show, and what it cannot
**It can show** which lines go from core to core, how often per operation, and who passes them on. That is counted,
access by access, in the code that runs elsewhere, too. No transfers at 256 cores is a statement about the code,
whatever the machine. A variable that every operation moves is one on every machine with coherent caches, and its
place in the code is right. The same seed gives the same counts, on a busy machine and on a quiet one.

**It cannot show** how long anything takes. Caches here have no end and no sets, no memory is near or far, no
bandwidth is used up, and nothing is fetched ahead. A lock that is held keeps others waiting only as long as its
line is on its way. Throughput is predicted from counts, with constants of one machine; [the
guide](guides/scaling.md#what-is-predicted) has the model, and each result says how far a constant moves it. How
cores take turns is drawn, not measured: real cores meet more often where operations last longer. Two real cores can
judge a prediction for two, and none for 80."""


def section(area: Mapping[str, Any] | None) -> list[str]:
    """Lines of Markdown; none where nothing was measured."""
    return [] if area is None else list(_lines(area))


def _lines(area: Mapping[str, Any]) -> Iterator[str]:
    table: dict[str, dict[int, dict[str, float]]] = {}
    for entry in area["figures"]:
        figure = Figure.from_json(entry)
        if (found := _NAME.fullmatch(figure.name)) and found["what"] != PER_CORE:
            of_benchmark = table.setdefault(found["benchmark"], {})
            of_benchmark.setdefault(int(found["cores"]), {})[found["what"]] = figure.median
    cores = sorted({number_ for row in table.values() for number_ in row})
    yield HEAD
    yield f"Measured on {area['date']} at commit {area['machine']['commit'][:7]} by `make bench-scale`."
    yield ""
    yield f"| benchmark | commutes | {' | '.join(f'{one} cores' for one in cores)} |"
    yield f"| --- | --- | {' | '.join('---' for _ in cores)} |"
    for benchmark, row in table.items():
        cells = (_cell(row[one]) if one in row else "" for one in cores)
        yield f"| `{benchmark}` | {'yes' if benchmark in FREE else ''} | {' | '.join(cells)} |"
    yield THROUGHPUT
    yield LIMITS


def _cell(values: Mapping[str, float]) -> str:
    return f"{number(values[OPERATIONS])} / {number(values[MAINTENANCE])}"
