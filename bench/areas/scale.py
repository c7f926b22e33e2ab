"""Transfers of lines per operation by the number of cores: what calls of the file system share, and its maintenance."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from bench import two_cores
from bench.commands import ROOT, Run, commutant_run, text_of
from bench.figure import Figure, Goal
from bench.plot import Plot, Series

TITLE = "Transfers of lines by the number of cores"
FEW, MANY = (2, 8), (32, 128, 256)
CORES = (*FEW, *MANY)
SETTLED = ("--operations", "64", "--warm-up", "1024")
"""What is made and freed, and what is maintained, has come to rest."""
SETTLED_OF_FEW = ("--operations", "1024", "--warm-up", "1024")
"""As many operations in sum as of many cores: where two cores make 64 each, one transfer is 0.008 of them."""
LISTED = ("--operations", "64", "--warm-up", "1280")
"""It is known which cores hold a part of what is asked for: after six rounds, each of two maintenances."""
SHARED = ("--operations", "64", "--warm-up", "128")
"""What cores share is shared from the first operation on."""
LONG = ("--operations", "24", "--warm-up", "24", "--maintain-every", "24")
"""What takes ten times as long as others is made less often."""
LONG_SETTLED = ("--operations", "32", "--warm-up", "256", "--maintain-every", "8")
"""As long, and its memory has come round: each maintenance gives some of it back."""

OPERATIONS, MAINTENANCE = "transfers of operations", "transfers by maintenance"
FREE = ("statx", "open-any", "create", "rename", "pread", "pwrite", "map", "send-any")
"""Commute, so that nothing has to go from core to core."""
OF_TWO = "stat-two"
"""Asks for what two cores change, however many there are."""
BENCHMARKS = {
    **dict.fromkeys(FREE, ((FEW, SETTLED_OF_FEW), (MANY, SETTLED))),
    OF_TWO: (((8, 32, 256), LISTED),),
    **dict.fromkeys(("stat", "open", "pipe-shared", "send", "sharded-map", "sharded-map-counted"), ((CORES, SHARED),)),
    "mail": (((2, 8, 32, 128), LONG),),
    **dict.fromkeys(("mail-any", "mail-any-counted"), (((2, 8, 32, 128), LONG_SETTLED),)),
}
"""By name: at which cores, and how often."""

CURVES = {
    "(a) statbench": ("statx", "stat"),
    "(b) openbench": ("open-any", "open"),
    "(c) mailbench": ("mail-any", "mail"),
}
"""The plots of the paper's Figure 7, and their curves: the commutative variant first."""
CURVE_CORES = (1, *range(10, 81, 10))
PER_CORE = "predicted throughput per core"
PICTURE = "scale-throughput.svg"
LONGEST_MINUTES = 15


LIST_PROGRAM = "target/release/olf-bench"
LISTS = {
    **dict.fromkeys(
        ("moves between lists of 2", "moves between lists of 50"),
        ("spin locks", "olf", "Harris-Michael, deferred, not atomic"),
    ),
    "moves between lists of the thread's own": ("one spin lock", "olf", "Harris-Michael, deferred, not atomic"),
    **dict.fromkeys(
        (f"list of 100, {changes} % changes" for changes in (0, 10, 100)),
        ("spin lock", "olf", "Harris-Michael, deferred", "Harris-Michael, hazard pointers"),
    ),
}
"""What `olf-bench` makes of lists, and its ways: the first is a lock, against which the others are held."""
LIST_CORES = (16, 32)
"""Figure 8.13 and table 8.4 of the thesis have 16 threads."""
OF_LOCK = "predicted throughput, of that with a lock"
LEAST_OF_OWN = 10
"""Moves between lists that no other thread has are to be this many times as fast at 16 cores as with one lock for
all."""


@dataclass(frozen=True, slots=True)
class Counting:
    """A benchmark, or a program, on some numbers of cores; each is a run of its own, and gives what one of all of them
    gives."""

    name: str
    cores: tuple[int, ...]
    how_often: tuple[str, ...]
    program: tuple[str, ...] = ()

    def arguments(self, *cores: int, options: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Of `commutant`, for these numbers of cores."""
        what, behind = ((), ("--", *self.program)) if self.program else ((self.name,), ())
        return ("scale", *what, "--cores", ",".join(map(str, cores)), *self.how_often, *options, *behind)

    @property
    def command(self) -> str:
        """What makes all of it."""
        return shlex.join(("commutant", *self.arguments(*self.cores)))


IN_TABLE = tuple(Counting(name, *what) for name, parts in BENCHMARKS.items() for what in parts)
CURVE = tuple(
    Counting(name, CURVE_CORES, LONG if name.startswith("mail") else SETTLED if name in FREE else SHARED)
    for names in CURVES.values()
    for name in names
)


@dataclass(frozen=True, slots=True)
class Part:
    """A benchmark on one number of cores, and its run; none if that failed."""

    counting: Counting
    cores: int
    run: Run | None = None


OF_LISTS = {
    (what, way): Counting(f"{what}, {way}", LIST_CORES, SHARED, (LIST_PROGRAM, "marked", what, way, "{cores}"))
    for what, ways in LISTS.items()
    for way in ways
}
ALL = (*IN_TABLE, *CURVE, *OF_LISTS.values())


def measure() -> list[Figure]:
    """Every benchmark at every number of cores, once: the same seed gives the same counts, however busy the machine is.
    As many at a time as there are processors, those that take longest first. What fails is said, the rest is kept."""
    began = time.monotonic()
    # First, while nothing else runs: these are times.
    judged = _judged()
    _build_lists()
    parts = [Part(counting, cores) for counting in ALL for cores in counting.cores]
    parts.sort(key=lambda part: -part.cores)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        done = list(workers.map(_run, parts, range(1, len(parts) + 1), repeat(len(parts))))
    figures = counted(done)
    (ROOT / "docs" / PICTURE).write_text(drawn(figures))
    minutes = (time.monotonic() - began) / 60
    seconds = sum(part.run.processor_seconds for part in done if part.run is not None)
    failed = sum(part.run is None for part in done) + (judged is None)
    of_all = [
        Figure("parts of this area that failed", "", (failed,), two_cores.COMMAND, Goal("at_most", 0)),
        Figure("all runs of this area", "min", (minutes,), two_cores.COMMAND, Goal("at_most", LONGEST_MINUTES)),
        Figure("all runs of this area, on processors", "s", (seconds,), two_cores.COMMAND),
    ]
    return [*figures, *(judged or []), *of_all]


def _judged() -> list[Figure] | None:
    try:
        return two_cores.measure()
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        print(f"  predictions for two cores: FAILED: {error}", flush=True)
        return None


def _build_lists() -> None:
    print("  built: the program with lists", flush=True)
    try:
        text_of("cargo", "build", "--quiet", "--release", "--locked", "-p", "olf-bench")
    except (RuntimeError, OSError) as error:
        # What needs it fails, and is counted there.
        print(f"  the program with lists: FAILED: {error}", flush=True)


def _run(part: Part, number: int, count: int) -> Part:
    what = f"  {number} of {count}: {part.counting.name}, {part.cores} cores"
    try:
        # A busy machine takes longer for the same counts.
        run = commutant_run(*part.counting.arguments(part.cores, options=("--timeout", "7200", "--format", "json")))
    except RuntimeError as error:
        print(f"{what}: FAILED: {error}", flush=True)
        return part
    print(f"{what}: {run.processor_seconds:.1f} s of a processor", flush=True)
    return replace(part, run=run)


def counted(parts: Sequence[Part]) -> list[Figure]:
    """The figures of all parts that were run."""
    documents = {
        counting: document
        for counting in ALL
        if (document := _document([part for part in parts if part.counting == counting])) is not None
    }
    makers: list[tuple[Callable[[Mapping[str, Any], str], Iterator[Figure]], Counting]]
    makers = [(figures_of, counting) for counting in IN_TABLE]
    makers += [(of_two, counting) for counting in IN_TABLE if counting.name == OF_TWO]
    makers += [(curve_of, counting) for counting in CURVE]
    figures = [
        figure
        for make, counting in makers
        if counting in documents
        for figure in make(documents[counting], counting.command)
    ]
    lists = {key: documents[counting] for key, counting in OF_LISTS.items() if counting in documents}
    return [*figures, *of_lists(lists)]


def list_figure(what: str, way: str, cores: int, measured: str) -> str:
    """What the figure of a list is called."""
    return " / ".join(("lists", what, way, f"{cores} cores", measured))


def of_lists(documents: Mapping[tuple[str, str], Mapping[str, Any]]) -> Iterator[Figure]:
    """Transfers, and what is predicted, of that with a lock."""
    steps = {(*key, step["cores"]): step for key, document in documents.items() for step in document["steps"]}
    for (what, way, cores), step in steps.items():
        command = OF_LISTS[what, way].command
        yield Figure(list_figure(what, way, cores, OPERATIONS), "", (step["transfers"],), command)
        lock = steps.get((what, LISTS[what][0], cores))
        if lock is not None and way != LISTS[what][0]:
            ratio = lock["predicted"]["operation_ns"] / step["predicted"]["operation_ns"]
            is_own = what.endswith("own") and way == "olf" and cores == LIST_CORES[0]
            goal = Goal("at_least", LEAST_OF_OWN) if is_own else None
            yield Figure(list_figure(what, way, cores, OF_LOCK), "times", (ratio,), command, goal)


def _document(parts: Sequence[Part]) -> Mapping[str, Any] | None:
    """Of runs that differ in the number of cores: what one of all of them gives; none if all failed."""
    ordered = sorted(parts, key=lambda part: part.cores)
    documents = [part.run.document() for part in ordered if part.run is not None]
    if not documents:
        return None
    return {**documents[0], "steps": [step for document in documents for step in document["steps"]]}


def curve_of(document: Mapping[str, Any], command: str) -> Iterator[Figure]:
    """A figure for each number of cores: what a core gets done of what it does alone; none if that was not counted."""
    steps = document["steps"]
    if steps[0]["cores"] != 1:
        return
    alone = steps[0]["predicted"]["operation_ns"]
    for step in steps:
        name = f"{document['benchmark']}, {step['cores']} cores: {PER_CORE}"
        yield Figure(name, "", (alone / step["predicted"]["operation_ns"],), command)


def drawn(figures: Sequence[Figure]) -> str:
    """The plots of `CURVES`, as SVG."""
    points: dict[str, list[tuple[float, float]]] = {}
    for figure in figures:
        where, _, what = figure.name.partition(": ")
        name, _, cores = where.removesuffix(" cores").partition(", ")
        if what == PER_CORE:
            points.setdefault(name, []).append((float(cores), figure.median))
    plots = [
        Plot(title, "cores", [Series(name, points[name]) for name in names if name in points])
        for title, names in CURVES.items()
    ]
    return Plot.drawn(plots)


def figures_of(document: Mapping[str, Any], command: str) -> Iterator[Figure]:
    """Two figures for each number of cores: of operations alone, and what there is because of maintenance."""
    name = document["benchmark"]
    for step in document["steps"]:
        where = f"{name}, {step['cores']} cores"
        goal = Goal("at_most", 0) if name in FREE else None
        yield Figure(f"{where}: {OPERATIONS}", "", (step["transfers"],), command, goal)
        maintenance = step["maintenance"] + step["after_maintenance"]
        bound = Goal("at_most", 0.02) if name in FREE else None
        yield Figure(f"{where}: {MAINTENANCE}", "", (maintenance,), command, bound)


def of_two(document: Mapping[str, Any], command: str) -> Iterator[Figure]:
    """What `OF_TWO` reads at the most cores, as a multiple of what it reads at 8."""
    accesses = {step["cores"]: step["accesses"] for step in document["steps"]}
    most = max(accesses)
    if most == 8 or 8 not in accesses:
        return
    name = f"{document['benchmark']}: accesses at {most} cores to those at 8"
    yield Figure(name, "times", (accesses[most] / accesses[8],), command, Goal("at_most", 2))
