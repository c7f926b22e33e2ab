"""The heat map as a table of numbers, before anybody draws it.

The counterpart of the paper's Figure 6: calls on both axes, and for each pair the fraction and number of its tests that
are not conflict-free. Terminal and page draw the same `HeatMap`, with the same six levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commutant.report.data import SetCounts

COLOUR_STEPS = 6
"""Level 0 is "all conflict-free"; 1 to 5 are fifths, so that a single conflict already leaves level 0."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The pairs of a run on two axes.

    `cells` holds a pair under (row, column) with column <= row, both indices into `calls`; a pair without tests is
    absent. `totals[i]` adds up all pairs with call i.
    """

    calls: tuple[str, ...]
    cells: Mapping[tuple[int, int], SetCounts]
    totals: tuple[SetCounts, ...]


def level(counts: SetCounts) -> int:
    """The colour step of a cell: 0 for conflict-free, else which fifth its fraction falls into (1 to 5)."""
    if not counts.not_conflict_free:
        return 0
    return min(int(counts.fraction * (COLOUR_STEPS - 1)) + 1, COLOUR_STEPS - 1)


def heat_map(sets: Sequence[SetCounts]) -> HeatMap | None:
    """Arranges pairs on axes in the order in which the calls first appear; None if some set is not a pair."""
    if not sets or any(len(counts.calls) != 2 for counts in sets):
        return None
    calls = tuple(dict.fromkeys(call for counts in sets for call in counts.calls))
    position = {call: index for index, call in enumerate(calls)}
    cells: dict[tuple[int, int], SetCounts] = {}
    totals = [SetCounts((call,)) for call in calls]
    for counts in sets:
        column, row = sorted(position[call] for call in counts.calls)
        known = cells.get((row, column))
        cells[row, column] = known + counts if known else counts
        for index in {row, column}:
            totals[index] += counts
    return HeatMap(calls, cells, tuple(totals))


def sorted_sets(sets: Sequence[SetCounts]) -> list[SetCounts]:
    """The sets for a list: most tests that are not conflict-free first, then the higher fraction, then the name."""
    return sorted(sets, key=lambda counts: (-counts.not_conflict_free, -counts.fraction, counts.calls))
