"""How long the analyzer takes for all pairs of calls, how many questions it could not decide, and its memory."""

from __future__ import annotations

from collections.abc import Sequence

from bench.commands import Run, commutant_run
from bench.figure import Figure, Goal

TITLE = "Analysis of all pairs of calls"
PAIRS = {"figure4": 5, "names": 5, "posix18": 3}
"""Seconds that all pairs of an interface may take."""

REPEATS = 5
MEMORY_MIB = 2048


def measure() -> list[Figure]:
    """Seconds, processor seconds, undecided questions and peak memory."""
    figures = []
    for interface, bound in PAIRS.items():
        arguments = ("analyze", interface, "--no-cache")
        runs = [commutant_run(*arguments, "--format", "json") for _ in range(REPEATS)]
        figures += figures_of(f"{interface}, all pairs", arguments, runs, Goal("at_most", bound))
    runs = [commutant_run("analyze", "posix18", "--no-cache") for _ in range(REPEATS)]
    command = "commutant analyze posix18 --no-cache"
    seconds = tuple(run.wall_seconds for run in runs)
    figures.append(
        Figure("posix18, all pairs with their conditions, from the command to the end", "s", seconds, command)
    )
    hits = [commutant_run("analyze", "posix18", "--format", "json") for _ in range(REPEATS + 1)][1:]
    command = "commutant analyze posix18 --format json"
    seconds = tuple(run.wall_seconds for run in hits)
    figures.append(Figure("posix18, all pairs from the cache, from the command to the end", "s", seconds, command))
    return figures


def figures_of(name: str, arguments: Sequence[str], runs: list[Run], goal: Goal) -> list[Figure]:
    """The figures of runs of `commutant ARGUMENTS --format json`; `goal` is for the seconds."""
    command = " ".join(("commutant", *arguments))
    documents = [run.document() for run in runs]
    seconds = tuple(float(document["seconds"]) for document in documents)
    unknown = tuple(float(sum(one["unknown"] for one in document["sets"])) for document in documents)
    paths = tuple(float(sum(one["paths"] for one in document["sets"])) for document in documents)
    memory = tuple(run.peak_memory_mib for run in runs)
    return [
        Figure(name, "s", seconds, command, goal),
        Figure(f"{name}, processor time", "s", tuple(run.processor_seconds for run in runs), command),
        Figure(f"{name}, paths", "paths", paths, command),
        Figure(f"{name}, undecided questions", "questions", unknown, command, Goal("at_most", 0)),
        Figure(f"{name}, largest process", "MiB", memory, command, Goal("at_most", MEMORY_MIB)),
    ]
