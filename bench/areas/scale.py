"""Transfers of lines per operation by the number of cores: what calls of the file system share, and its maintenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.commands import commutant_run
from bench.figure import Figure, Goal

TITLE = "Transfers of lines by the number of cores"
CORES = "2,8,32,128,256"
USUAL = ("--operations", "64", "--warm-up", "64")
SETTLING = ("--operations", "64", "--warm-up", "192")
"""What makes and frees objects takes longer to come to rest."""
LONG = ("--operations", "24", "--warm-up", "24", "--maintain-every", "24")
"""What takes ten times as long as others is made less often."""

OPERATIONS, MAINTENANCE = "transfers of operations", "transfers by maintenance"
FREE = ("statx", "open-any", "create", "rename", "pread", "pwrite", "map", "send-any")
"""Commute, so that nothing has to go from core to core."""
BENCHMARKS = {
    **dict.fromkeys((*FREE, "stat", "open", "pipe-shared", "send"), (CORES, USUAL)),
    **dict.fromkeys(("open-any", "create", "rename"), (CORES, SETTLING)),
    **dict.fromkeys(("sharded-map", "sharded-map-counted"), (CORES, USUAL)),
    **dict.fromkeys(("mail", "mail-any", "mail-any-counted"), ("2,8,32,128", LONG)),
}
"""By name: at which cores, and how often."""


def measure() -> list[Figure]:
    """Every benchmark at every number of cores, once: the same seed gives the same counts."""
    figures: list[Figure] = []
    for name, (cores, how_often) in BENCHMARKS.items():
        arguments = ("scale", name, "--cores", cores, *how_often)
        document = commutant_run(*arguments, "--format", "json").document()
        figures += figures_of(document, " ".join(("commutant", *arguments)))
        print(f"  {name}", flush=True)
    return figures


def figures_of(document: Mapping[str, Any], command: str) -> Iterator[Figure]:
    """Two figures for each number of cores: of operations alone, and what there is because of maintenance."""
    name = document["benchmark"]
    for step in document["steps"]:
        where = f"{name}, {step['cores']} cores"
        goal = Goal("at_most", 0) if name in FREE else None
        yield Figure(f"{where}: {OPERATIONS}", "", (step["transfers"],), command, goal)
        maintenance = step["maintenance"] + step["after_maintenance"]
        bound = None if name.startswith("sharded") else Goal("at_most", 0.02)
        yield Figure(f"{where}: {MAINTENANCE}", "", (maintenance,), command, bound)
