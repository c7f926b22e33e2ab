"""The page's table of transfers by the number of cores, from the figures of area `scale`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.areas.scale import CURVES, FREE, LIST_CORES, MAINTENANCE, OF_LOCK, OPERATIONS, PER_CORE, PICTURE
from bench.figure import Figure, number

PAPER_CORES = (10, 80)
"""Of the paper's curves: the first beyond a socket, and all."""

_NAME = re.compile(r"(?P<benchmark>\S+), (?P<cores>\d+) cores: (?P<what>.+)")

HEAD = """
## Transfers of lines at up to 256 cores
How often a line goes from core to core, per operation; `commutant scale` says what an operation of each is, and
[its guide](guides/scaling.md) how that is counted and what it does not say. Before the stroke: of operations by
themselves. After it: by maintenance, and what that makes operations miss. What commutes is to have 0 before the stroke.
Where `map` and `statx` have a little more, at 128 and 256 cores, it is memory that was never used before: a core takes
some until it has what it needs at its worst moment. That has no end after 1,024 operations: `map` at 128 cores has
0.0100 then, and 0.0010 after 4,096 (`--warm-up 4096`). What `mail-any` passes on at 32 and 128 cores are buckets of its
directories: names of two cores come into one bucket, as their hashes fall, until the directory has grown.
"""

THROUGHPUT = f"""
### Throughput, next to the paper's
Figure 7 of *The Scalable Commutativity Rule*, up to its 80 cores. Ours is what a core gets done of what it does alone:
the instructions of an operation may grow with the cores, and lines are waited for. It is predicted, theirs measured.

![Predicted throughput per core of statbench, openbench and mailbench]({PICTURE})

| plot | theirs | ours, of one core, at {PAPER_CORES[0]} and {PAPER_CORES[1]} cores |
| --- | --- | --- |"""
THEIRS = {
    "(a) statbench": "`fstatx` keeps its throughput per core up to 80 cores; `fstat` loses it: 3.9 times Linux's time",
    "(b) openbench": "`open` with O_ANYFD keeps it; with the lowest number it is lost",
    "(c) mailbench": "commutative calls: 7.5 times from 10 to 80 cores; standard ones collapse",
}

LISTS_HEAD = """
### Lists, next to the thesis's
What *Operating System Transactions* measures of its lists in table 8.4 and figure 8.13, on 16 processors, is counted
here: `olf-bench` marks its operations. Before the stroke: transfers per operation. After it: how many times as fast
operations are predicted to be as with the first way, a lock. Waiting for a lock that is held is left out of that, so it
is too low. The thesis measured 6.3 times as fast at 16 threads as spin locks."""

JUDGED = """
### Judged by what is there
Predictions for two cores are held against two processors: constants are fitted to five variants of
`bench/programs/variants.c`, and the others judge. What a file's status reads at the most cores is held against 8.

| figure | measured | goal |
| --- | --- | --- |"""

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
    judged: list[Figure] = []
    for entry in area["figures"]:
        figure = Figure.from_json(entry)
        if figure.goal is not None and not _NAME.fullmatch(figure.name):
            judged.append(figure)
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
    yield from _throughput({entry["name"]: entry for entry in area["figures"]})
    yield from _lists([Figure.from_json(entry) for entry in area["figures"]])
    if judged:
        yield JUDGED
        yield from (f"| {one.name} | {number(one.median)} {one.unit} | {one.goal_text} |" for one in judged)
        yield ""
    yield LIMITS


def _throughput(entries: Mapping[str, Any]) -> Iterator[str]:
    yield THROUGHPUT
    for plot, names in CURVES.items():
        wanted = {name: [f"{name}, {cores} cores: {PER_CORE}" for cores in PAPER_CORES] for name in names}
        ours = [
            f"`{name}` {' and '.join(number(Figure.from_json(entries[one]).median) for one in of_name)}"
            for name, of_name in wanted.items()
            if all(one in entries for one in of_name)
        ]
        yield f"| {plot} | {THEIRS[plot]} | {'; '.join(ours)} |"
    yield ""
    yield "`stat` alone takes [a ninth](#scalefs-beside-tmpfs) of tmpfs's time, which enters the kernel."


def _lists(figures: Sequence[Figure]) -> Iterator[str]:
    """The table of lists; nothing where none was counted."""
    rows: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for figure in figures:
        if figure.name.startswith("lists / "):
            _, what, way, cores, measured = figure.name.split(" / ")
            rows.setdefault((what, way), {}).setdefault(cores, {})[measured] = figure.median
    if not rows:
        return
    numbers = [f"{cores} cores" for cores in LIST_CORES]
    yield LISTS_HEAD
    yield f"| what | way | {' | '.join(numbers)} |"
    yield f"| --- | --- | {' | '.join('---' for _ in numbers)} |"
    for (what, way), row in rows.items():
        cells = [_list_cell(row.get(cores, {})) for cores in numbers]
        yield f"| {what} | {way} | {' | '.join(cells)} |"


def _list_cell(values: Mapping[str, float]) -> str:
    return " / ".join(number(values[measured]) for measured in (OPERATIONS, OF_LOCK) if measured in values)


def _cell(values: Mapping[str, float]) -> str:
    return f"{number(values[OPERATIONS])} / {number(values[MAINTENANCE])}"
