"""The page's table of transfers by the number of cores, from the figures of area `scale`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bench.areas.scale import FREE, MAINTENANCE, OPERATIONS
from bench.figure import Figure, number

_NAME = re.compile(r"(?P<benchmark>\S+), (?P<cores>\d+) cores: (?P<what>.+)")

HEAD = """
## Transfers of lines at up to 256 cores
How often a line goes from core to core, per operation; `commutant scale` says what an operation of each is, and
[its guide](guides/scaling.md) how that is counted and what it does not say. Before the stroke: of operations by
themselves. After it: by maintenance, and what that makes operations miss. What commutes is to have 0 before the stroke.
"""


def section(area: Mapping[str, Any] | None) -> list[str]:
    """Lines of Markdown; none where nothing was measured."""
    return [] if area is None else list(_lines(area))


def _lines(area: Mapping[str, Any]) -> Iterator[str]:
    table: dict[str, dict[int, dict[str, float]]] = {}
    for entry in area["figures"]:
        figure = Figure.from_json(entry)
        if found := _NAME.fullmatch(figure.name):
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


def _cell(values: Mapping[str, float]) -> str:
    return f"{number(values[OPERATIONS])} / {number(values[MAINTENANCE])}"
