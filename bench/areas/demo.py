"""How long `make demo` takes once everything is there: the wait of someone who changes a model and looks again."""

from __future__ import annotations

from bench.commands import seconds_of
from bench.figure import Figure, Goal

TITLE = "The demonstration, again"
REPEATS = 3


def measure() -> list[Figure]:
    """Seconds of `make demo` when set-up finds nothing to do."""
    samples = tuple(seconds_of("make", "demo") for _ in range(REPEATS))
    return [Figure("from the command to the heat map", "s", samples, "make demo", Goal("at_most", 60))]
