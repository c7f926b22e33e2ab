"""What the counter of transfers writes at the end of a run (crates/emulator/transfers-plugin/src/report.rs)."""

from __future__ import annotations

from typing import Literal

from commutant.documents import Count, DocumentError, Part, read
from commutant.support import RunError

OPERATION, MAINTENANCE = 0, 1
"""Kinds of work, as marks have them."""

Way = Literal["miss", "upgrade"]


class WorkCount(Part, frozen=True):
    """What one kind of work took: instructions, and accesses to memory."""

    instructions: Count
    accesses: Count


class TransferRow(Part, frozen=True):
    """Transfers that have everything in common: how the line came, in which work the core was that got it, and the
    other one, and where both were; `address` is of the first of them."""

    way: Way
    work: Count
    work_of_cause: Count
    place: Count
    cause: Count
    address: Count
    transfers: Count
    invalidated: Count


class TransferCounts(Part, frozen=True):
    """All that was counted of a run. `stacks` has addresses of instructions by place, the innermost first."""

    complete: bool
    cores: Count
    lines: Count
    memory_bytes: Count
    works: tuple[WorkCount, ...]
    transfers: tuple[TransferRow, ...]
    stacks: dict[str, tuple[Count, ...]]
    lines_by_transfers: tuple[tuple[Count, Count], ...]
    top_lines: tuple[tuple[Count, Count], ...]


def read_counts(content: bytes) -> TransferCounts:
    """The counts of a report; raises RunError if it is none, or of a run that did not come to its end."""
    try:
        counts = read(TransferCounts, content)
    except DocumentError as error:
        raise RunError(f"the counter of transfers wrote no report: {error}") from None
    if not counts.complete:
        raise RunError("the benchmark ended before all of its operations were made")
    return counts
