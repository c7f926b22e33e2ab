"""What lists and maps of crate `olf` cost compared with others: ratios of times of one run, in alternating rounds.

The program `olf-bench` prints times, one line of JSON for each. All that is held against each other is of one run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.commands import text_of
from bench.figure import Figure, Goal

TITLE = "Lists and maps that compose"
COMMAND = ("cargo", "run", "--quiet", "--release", "-p", "olf-bench", "--")
RUNS = 3
HAZARDS = "Harris-Michael, hazard pointers"
DEFERRED = "Harris-Michael, deferred"
OURS = (
    *("move_to", "closure", "Sorted", "Sorted, the same item", "Sorted, a new item", "List", "olf"),
    *("olf, control", "alone", "with moves", "with snapshots"),
)
"""Ways of `olf` itself, whose times are figures, too."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The time of one way divided by that of another, of what is measured, and the most that it may be."""

    what: str
    way: str
    other: str
    goal: float | None = None
    threads: int = 1


def _of_lists(way: str, other: str, *goals: float | None) -> list[Ratio]:
    pairs = zip((2, 10, 100), goals, strict=True)
    return [Ratio(f"move, lists of {length}", way, other, goal) for length, goal in pairs]


_MAPS = "move, maps of 2048"
RATIOS = (
    *_of_lists("move_to", "by hand, not atomic", 1.35, 1.15, 1.05),
    *_of_lists("closure", "by hand, not atomic", 1.6, 1.3, 1.1),
    *_of_lists("move_to", "own removal, then insertion", 0.9, 0.9, 1.0),
    *_of_lists("move_to", "two spin locks", 1.6, 1.4, 1.3),
    *_of_lists("move_to", "two Mutex<BTreeMap>", None, None, None),
    *_of_lists("move_to", f"{DEFERRED}, not atomic", None, None, None),
    *_of_lists("move_to", f"{HAZARDS}, not atomic", None, None, None),
    Ratio(_MAPS, "move_to", "own removal, then insertion", 0.9),
    Ratio(_MAPS, "move_to", "two spin locks", 1.4),
    Ratio(_MAPS, "move_to", "two Mutex<HashMap>", 0.8),
    Ratio(_MAPS, "move_to", "scc, not atomic", 0.9),
    Ratio(_MAPS, "move_to", "dashmap, not atomic", 0.9),
    Ratio(_MAPS, "move_to", "crossbeam-skiplist, not atomic", 0.9),
    *(Ratio(f"insert and remove beside {length}", "Sorted, the same item", DEFERRED, 1.2) for length in (2, 10, 100)),
    *(Ratio(f"first insertion beside {length}", "Sorted, a new item", DEFERRED, 1.0) for length in (2, 10)),
    Ratio("find the last of 10", "List", "plain pointers, pinned"),
    Ratio("find the last of 100", "List", "plain pointers, pinned", 1.5),
    Ratio("move, first to last of doubly linked lists", "List", "own removal, then insertion", 0.9),
    Ratio("move, first to last of doubly linked lists", "List", "two Mutex<VecDeque>"),
    Ratio("move, first to last of doubly linked lists", "closure", "own removal, then insertion"),
    Ratio("take from a queue, and put back", "List", "Mutex<VecDeque>"),
    Ratio("find the last of 10", "Sorted", "plain pointers, pinned", 1.15),
    Ratio("find the last of 100", "Sorted", "plain pointers, pinned", 1.05),
    *(
        Ratio(f"list of 100, {changes} % changes", "olf", other, None, threads)
        for changes in (0, 10, 100)
        for other in ("spin lock", HAZARDS, DEFERRED)
        for threads in (1, 2)
    ),
    Ratio("moves between lists of 2", "olf", "spin locks", 1.3, threads=2),
    Ratio("snapshot of two lists of 100", "with moves", "alone"),
    Ratio("move, of a domain", "with snapshots", "alone"),
    *(
        Ratio(f"moves while a thread stops, {what}", way, f"{way}, control")
        for what in ("999 of 1,000", "all")
        for way in ("olf", "spin locks")
    ),
)
"""What is measured, and the goals."""

Key = tuple[str, str, int]
"""What is measured, the way, and the number of threads."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run printed: nanoseconds, the least share of a thread in the moves of another one, and bytes."""

    times: Mapping[Key, float]
    shares: Mapping[tuple[str, str], float]
    sizes: Mapping[str, float]


def measure() -> list[Figure]:
    """The times of `olf`, their ratios to other ways, and what two threads do together."""
    return figures_of([run_of(text_of(*COMMAND)) for _ in range(RUNS)])


def run_of(output: str) -> Run:
    """What a run printed."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
    times = {(row["what"], row["way"], row.get("threads", 1)): row["ns"] for row in rows if "ns" in row}
    shares = {(row["what"], row["way"]): row["share"] for row in rows if "share" in row}
    return Run(times, shares, {row["way"]: row["bytes"] for row in rows if "bytes" in row})


def figures_of(runs: Sequence[Run]) -> list[Figure]:
    """The figures of some runs."""
    command = " ".join(COMMAND[:-1])

    def figure(name: str, unit: str, samples: Sequence[float], goal: Goal | None = None) -> Figure:
        return Figure(name, unit, tuple(samples), command, goal)

    def ratio(one: Ratio) -> Figure:
        of_threads = f", {one.threads} threads" if one.threads > 1 else ""
        samples = [
            run.times[one.what, one.way, one.threads] / run.times[one.what, one.other, one.threads] for run in runs
        ]
        goal = None if one.goal is None else Goal("at_most", one.goal)
        return figure(f"{one.what}{of_threads}: {one.way} to {one.other}", "times", samples, goal)

    times = [
        figure(f"{what}{f', {threads} threads' if threads > 1 else ''}: {way}", "ns", [run.times[key] for run in runs])
        for key in runs[0].times
        for what, way, threads in (key,)
        if way in OURS
    ]
    sizes = [
        figure(f"a link: {way}", "bytes", [run.sizes[way] for run in runs], Goal("at_most", bound))
        for way, bound in (("Link", 8), ("ListLink", 32))
    ]
    return [*times, *map(ratio, RATIOS), *_of_two_threads(runs, figure), *sizes]


def _of_two_threads(runs: Sequence[Run], figure: Any) -> list[Figure]:
    """Throughput of two threads to that of one, and how evenly they share it."""

    def gain(run: Run, what: str, way: str) -> float:
        # Times are those of an operation times the number of threads.
        return 2 * run.times[what, way, 1] / run.times[what, way, 2]

    maps, lists, short = ("moves between maps, own keys", "moves between lists of 50", "moves between lists of 2")
    others = f"{DEFERRED}, not atomic"
    name = "throughput of two threads to one"
    made = [figure(f"{maps}: {name}, olf", "times", [gain(run, maps, "olf") for run in runs], Goal("at_least", 1.9))]
    made += [
        figure(f"{what}: {name}, {way}", "times", [gain(run, what, way) for run in runs])
        for what, ways in ((maps, ("spin locks", "scc, not atomic")), (lists, ("olf", "spin locks", others)))
        for way in ways
    ]
    against = [gain(run, lists, "olf") / gain(run, lists, others) for run in runs]
    made.append(figure(f"{lists}: {name}, olf to {others}", "times", against, Goal("at_least", 0.9)))
    for way, goal in (("olf", Goal("at_least", 1 / 3)), ("spin locks", None)):
        shares = [run.shares[short, way] for run in runs]
        made.append(figure(f"{short}: least share of a thread in the other's moves, {way}", "ratio", shares, goal))
    return made
