"""Transfers of lines per operation by the number of cores: what calls of the file system share, and its maintenance."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.commands import ROOT, commutant_run
from bench.figure import Figure, Goal
from bench.plot import Plot, Series

TITLE = "Transfers of lines by the number of cores"
CORES = "2,8,32,128,256"
SETTLED = ("--operations", "64", "--warm-up", "1024")
"""What is made and freed, and what is maintained, has come to rest."""
SHARED = ("--operations", "64", "--warm-up", "128")
"""What cores share is shared from the first operation on."""
LONG = ("--operations", "24", "--warm-up", "24", "--maintain-every", "24")
"""What takes ten times as long as others is made less often."""

OPERATIONS, MAINTENANCE = "transfers of operations", "transfers by maintenance"
FREE = ("statx", "open-any", "create", "rename", "pread", "pwrite", "map", "send-any")
"""Commute, so that nothing has to go from core to core."""
BENCHMARKS = {
    **dict.fromkeys(FREE, (CORES, SETTLED)),
    **dict.fromkeys(("stat", "open", "pipe-shared", "send", "sharded-map", "sharded-map-counted"), (CORES, SHARED)),
    **dict.fromkeys(("mail", "mail-any", "mail-any-counted"), ("2,8,32,128", LONG)),
}
"""By name: at which cores, and how often."""

CURVES = {
    "(a) statbench": ("statx", "stat"),
    "(b) openbench": ("open-any", "open"),
    "(c) mailbench": ("mail-any", "mail"),
}
"""The plots of the paper's Figure 7, and their curves: the commutative variant first."""
CURVE_CORES = "1,10,20,...,80"
PER_CORE = "predicted throughput per core"
PICTURE = "scale-throughput.svg"


def measure() -> list[Figure]:
    """Every benchmark at every number of cores, once: the same seed gives the same counts, however busy the machine is.
    As many at a time as there are processors."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        counted = list(workers.map(_counted, BENCHMARKS))
        curves = list(workers.map(_curve, [name for names in CURVES.values() for name in names]))
    figures = [figure for part in (*counted, *curves) for figure in part]
    (ROOT / "docs" / PICTURE).write_text(drawn(figures))
    return figures


def _counted(name: str) -> list[Figure]:
    document, command = _document(name, *BENCHMARKS[name])
    return list(figures_of(document, command))


def _curve(name: str) -> list[Figure]:
    """Its predicted throughput up to the cores of the paper's machine."""
    document, command = _document(name, CURVE_CORES, LONG if name.startswith("mail") else SHARED)
    return list(curve_of(document, command))


def _document(name: str, cores: str, how_often: Sequence[str]) -> tuple[Mapping[str, Any], str]:
    arguments = ("scale", name, "--cores", cores, *how_often)
    # A busy machine takes longer for the same counts.
    document = commutant_run(*arguments, "--timeout", "7200", "--format", "json").document()
    print(f"  {name}, {cores} cores", flush=True)
    return document, " ".join(("commutant", *arguments))


def curve_of(document: Mapping[str, Any], command: str) -> Iterator[Figure]:
    """A figure for each number of cores: what a core gets done of what it does alone, which the first step is."""
    alone, *_ = (step["predicted"]["operation_ns"] for step in document["steps"])
    for step in document["steps"]:
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
