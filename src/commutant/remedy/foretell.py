"""What changes free: each shared object with its bytes put where the changes put them, and asked again who shares.

Two cores share a line if one writes a byte of it and the other touches any. A change moves bytes of a place to lines of
their own, or takes accesses away; all other bytes stay where they are. So a field that moves leaves a gap: what is put
there instead, and what else comes into the new line, the run does not tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from commutant.remedy.change import Change, Way
from commutant.remedy.scene import ALL_BYTES, Case, Line, Scene

LINE_BYTES = 64

_Lines = dict[object, dict[int, bool]]
"""New lines by what tells them apart: the cores that touch one, and whether they write it."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """What changes do, made together.

    `freed` are the tests that share nothing any more, `fewer` those that share less than before; `left` counts, per
    variable, the tests of `fewer` that still share it.
    """

    changes: tuple[Change, ...]
    freed: frozenset[str]
    fewer: frozenset[str]
    left: Mapping[str, int]


def foretell(scene: Scene, changes: Sequence[Change]) -> Foretold:
    """What a run would have been with these changes."""
    touched = (number for number, case in enumerate(scene.cases) if touches(case, changes))
    cured = {number for number in touched if not survives(scene, scene.cases[number], changes)}
    freed, fewer = freed_by(scene, cured)
    left: Counter[str] = Counter()
    for test in fewer:
        left.update({scene.cases[number].name for number in scene.tests[test] if number not in cured})
    return Foretold(tuple(changes), frozenset(freed), frozenset(fewer), left)


def freed_by(scene: Scene, cured: set[int]) -> tuple[list[str], list[str]]:
    """The tests all of whose cases are cured, and those of which some are."""
    gone: Counter[str] = Counter()
    for number in cured:
        gone.update(scene.by_case[number])
    freed = [test for test, count in gone.items() if count == len(scene.tests[test])]
    fewer = [test for test, count in gone.items() if count < len(scene.tests[test])]
    return freed, fewer


def touches(case: Case, changes: Iterable[Change]) -> bool:
    """Whether a change is about a byte that any core touched of an asked line."""
    places = [change.place for change in changes]
    return any(
        case.lines[at].fields.mask(place) & case.lines[at].touched_bytes for at in case.examined for place in places
    )


def survives(scene: Scene, case: Case, changes: Sequence[Change]) -> bool:
    """Whether two cores still share a line that holds bytes of the asked ones."""
    lines: _Lines = {}
    examined: set[object] = set()
    for at, line in enumerate(case.lines):
        placed: _Lines = {}
        rest = ALL_BYTES
        for change in changes:
            mask = line.fields.mask(change.place) & rest
            if mask:
                rest &= ~mask
                _place(scene, line, at, change, mask, placed)
        for core, read, written in line.touched:
            _touch(placed, at, core, read & rest, written & rest)
        if at in case.examined:
            examined.update(placed)
        for key, cores in placed.items():
            there = lines.setdefault(key, {})
            for core, writes in cores.items():
                there[core] = there.get(core, False) or writes
    return any(len(lines[key]) > 1 and any(lines[key].values()) for key in examined)


def _touch(lines: _Lines, key: object, core: int, read: int, written: int) -> None:
    if read or written:
        cores = lines.setdefault(key, {})
        cores[core] = cores.get(core, False) or written != 0


def _place(scene: Scene, line: Line, at: int, change: Change, mask: int, lines: _Lines) -> None:
    """Puts the accesses to the bytes of a changed place where they go."""
    cores = [(core, read & mask, written & mask) for core, read, written in line.touched]
    match change.way:
        case Way.DROP:
            return
        case Way.DROP_WRITE:
            for core, read, _ in cores:
                _touch(lines, at, core, read, 0)
        case Way.DROP_READ:
            for core, _, written in cores:
                _touch(lines, at, core, 0, written)
        case Way.SPLIT:
            # A core that only reads wants the sum, and so reads the parts of all.
            parts = [core for core, _, written in cores if written]
            for core, read, written in cores:
                for part in [core] if written else parts:
                    _touch(lines, (change.place, "core", part), core, read, written)
        case Way.MOVE | Way.SPREAD:
            unit = LINE_BYTES if change.way is Way.MOVE else scene.entry_bytes(change.place)
            within = line.fields.offset - scene.start(line.fields, change.place)
            for first, part in _parts(mask, within, unit):
                for core, read, written in cores:
                    _touch(lines, (change.place, first), core, read & part, written & part)


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
