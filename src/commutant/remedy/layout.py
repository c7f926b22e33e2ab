"""Where changes put the accesses to a line: which new lines meet those to which of its bytes.

A change moves bytes of a place to lines of their own, or takes accesses away; all other bytes stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from commutant.remedy.change import Change, Way
from commutant.remedy.scene import ALL_BYTES, Line, Scene

LINE_BYTES = 64

Piece = tuple[object, int, int, int]
"""What tells a new line apart, a core, and the bytes of the old line whose reads and whose writes by it come there."""


def pieces(scene: Scene, line: Line, at: int, changes: Sequence[Change]) -> Iterator[Piece]:
    """Where the accesses to the line of number `at` go; bytes that stay are on the line of that number."""
    rest = ALL_BYTES
    for change in changes:
        if change.way is Way.DIVIDE:  # of whole cases, not of bytes
            continue
        mask = line.fields.mask_of(change.places) & rest
        if mask:
            rest &= ~mask
            yield from _moved(scene, line, at, change, mask)
    for core, _, _ in line.touched:
        yield at, core, rest, rest


def _moved(scene: Scene, line: Line, at: int, change: Change, mask: int) -> Iterator[Piece]:
    """Where the accesses to the bytes of a changed place go."""
    cores = [core for core, _, _ in line.touched]
    match change.way:
        case Way.DROP:
            return
        case Way.DROP_WRITE:
            for core in cores:
                yield at, core, mask, 0
        case Way.DROP_READ:
            for core in cores:
                yield at, core, 0, mask
        case Way.DROP_PREFETCH:
            for core in cores:
                yield at, core, mask, mask & ~line.prefetched
        case Way.SPLIT:
            # A core that only reads wants the sum, and so reads the parts of all.
            parts = [core for core, _, written in line.touched if written & mask]
            for core, _, written in line.touched:
                for part in [core] if written & mask else parts:
                    yield (change.place, "core", part), core, mask, mask
        case Way.PART:
            for core in cores:
                yield change.place, core, mask, mask
        case Way.MOVE | Way.SPREAD:
            unit = LINE_BYTES if change.way is Way.MOVE else scene.entry_bytes(change.place)
            within = line.fields.offset - scene.start(line.fields, change.place)
            for first, part in _parts(mask, within, unit):
                for core in cores:
                    yield (change.place, first), core, part, part


def _parts(mask: int, within: int, unit: int) -> Iterable[tuple[int, int]]:
    """The bytes of a mask by the unit of the place that they lie in; `within` is where in the place the line begins."""
    first = (mask & -mask).bit_length() - 1
    last = mask.bit_length() - 1
    for number in range((within + first) // unit, (within + last) // unit + 1):
        low = max(0, number * unit - within)
        high = min(LINE_BYTES, (number + 1) * unit - within)
        part = mask & ((1 << high) - 1) & ~((1 << low) - 1)
        if part:
            yield number, part
