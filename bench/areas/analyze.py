"""How long the analyzer takes for all pairs of calls, and how many paths it could not decide."""

from __future__ import annotations

from bench.commands import commutant_json
from bench.figure import Figure, Goal

TITLE = "Analysis of all pairs of calls"
INTERFACES = ("figure4", "names")
REPEATS = 5


def measure() -> list[Figure]:
    """Seconds and undecided paths per shipped interface."""
    figures = []
    for interface in INTERFACES:
        command = f"commutant analyze {interface}"
        documents = [commutant_json("analyze", interface, "--no-cache") for _ in range(REPEATS)]
        seconds = tuple(float(document["seconds"]) for document in documents)
        unknown = tuple(float(sum(pair["unknown"] for pair in document["sets"])) for document in documents)
        figures.append(Figure(f"{interface}, all pairs", "s", seconds, command, Goal("at_most", 5)))
        figures.append(Figure(f"{interface}, undecided paths", "paths", unknown, command, Goal("at_most", 0)))
    return figures
