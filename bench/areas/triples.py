"""How long the analyzer takes for all sets of three calls of posix18; one sample, which takes many minutes."""

from __future__ import annotations

from bench.areas.analyze import figures_of
from bench.commands import commutant_run
from bench.figure import Figure, Goal

TITLE = "Analysis of all triples of calls"
SECONDS = 240


def measure() -> list[Figure]:
    """Seconds, processor seconds, undecided questions and peak memory."""
    arguments = ("analyze", "posix18", "--size", "3", "--no-cache")
    runs = [commutant_run(*arguments, "--format", "json")]
    return figures_of("posix18, all triples", arguments, runs, Goal("at_most", SECONDS))
