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
from commutant.remedy.layout import pieces
from commutant.remedy.scene import Case, Scene

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


def touches(case: Case, changes: Sequence[Change]) -> bool:
    """Whether a change is about a byte that any core touched of an asked line, or about the lock that these go with."""
    if is_divided(case, changes):
        return True
    places = [place for change in changes if change.way is not Way.DIVIDE for place in change.places]
    return any(case.lines[at].fields.mask_of(places) & case.lines[at].touched_bytes for at in case.examined)


def is_divided(case: Case, changes: Iterable[Change]) -> bool:
    """Whether the lock that a case goes with is divided."""
    return bool(case.lock) and any(change.way is Way.DIVIDE and change.place == case.lock for change in changes)


def survives(scene: Scene, case: Case, changes: Sequence[Change]) -> bool:
    """Whether two cores still share a line that holds bytes of the asked ones."""
    if is_divided(case, changes):
        return False
    lines: _Lines = {}
    examined: set[object] = set()
    for at, line in enumerate(case.lines):
        touched = {core: (read, written) for core, read, written in line.touched}
        for key, core, reads, writes in pieces(scene, line, at, changes):
            read, written = touched[core]
            if read & reads or written & writes:
                cores = lines.setdefault(key, {})
                cores[core] = cores.get(core, False) or written & writes != 0
                if at in case.examined:
                    examined.add(key)
    return any(len(lines[key]) > 1 and any(lines[key].values()) for key in examined)
