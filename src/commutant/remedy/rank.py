"""Which single changes free most tests, alone and one after the other.

All members that any shared line has are tried in each way that makes sense of them (`Sense`). Alone, a change frees the
tests that share nothing else. Together with those above it, it frees what they leave; one that is left little by then
(its line has been taken apart already) is not listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from commutant.remedy.change import Change, Way
from commutant.remedy.foretell import Foretold, foretell, freed_by, survives
from commutant.remedy.places import path_of
from commutant.remedy.scene import Case, Line, Scene
from commutant.remedy.sense import Sense

DEFAULT_COUNT = 20
_TRIED_TOGETHER = 96
"""This many changes, the most promising ones alone, are tried together with those before them."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A change in the list: the tests freed `alone` and what it left, those freed with all above it (`together`), and
    those that it frees besides what these do (`newly`)."""

    change: Change
    alone: Foretold
    together: int
    newly: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The list, and how many tests there are to free."""

    changes: Sequence[Ranked]
    tests: int
    judged: int


def rank(scene: Scene, sense: Sense, count: int = DEFAULT_COUNT) -> Ranking:
    """The best changes of a run, at most `count`; fewer where no more frees a test."""
    cases, curable = _cases_by_member(scene)
    cured: dict[Change, set[int]] = {}
    for member, numbers in curable.items():
        is_array = any(member in line.fields.arrays for number in numbers[:1] for line in scene.cases[number].lines)
        for way in sense.ways(member, is_array):
            change = Change(way, member)
            gone = cured_by(scene, sense, change, numbers)
            if gone:
                cured[change] = gone
    by_lock: dict[str, set[int]] = {}
    for number, case in enumerate(scene.cases):
        if case.lock:
            by_lock.setdefault(case.lock, set()).add(number)
    cured.update({Change(Way.DIVIDE, lock): numbers for lock, numbers in by_lock.items()})
    alone = {change: len(freed_by(scene, gone)[0]) for change, gone in cured.items()}
    promise = {change: sum(len(scene.by_case[number]) for number in gone) for change, gone in cured.items()}
    weight = {change: alone[change] * (_WRITTEN if sense.is_written(change.place) else 1) for change in cured}
    order = sorted(cured, key=lambda change: (-weight[change], -promise[change], _WAYS.index(change.way), change.place))
    order = list({_kind(change): change for change in reversed(order)}.values())[::-1]  # of each place the best way
    # Of a member and its only part that matters, the part: what wraps it is not what one would change.
    depth = {change: len(path_of(change.place)) for change in order}
    order = sorted(order, key=lambda change: (-weight[change], -promise[change], -depth[change], change.place))
    # A lock that frees none alone may free most once another one is divided as well.
    later = [change for change in order[_TRIED_TOGETHER:] if change.way is Way.DIVIDE]
    order = order[:_TRIED_TOGETHER] + later
    together = _Together(scene, cured, cases, by_lock)
    for change in order:  # what is worth most alone, unless those above it have freed its tests already
        if len(together.chosen) < count and 0 < alone[change] <= 2 * len(together.gain(change)[0]):
            together.take(change)
    while len(together.chosen) < count:  # then what only frees tests together with others
        gains = [
            (len(together.gain(change)[0]), change) for change in order if alone[change] or change.way is Way.DIVIDE
        ]
        best = max(gains, key=lambda one: one[0], default=(0, None))
        if best[1] is None or not best[0]:
            break
        together.take(best[1])
    ranked = []
    freed = 0
    for change, newly in together.chosen.items():
        freed += len(newly)
        ranked.append(Ranked(change, foretell(scene, (change,)), freed, newly))
    return Ranking(ranked, len(scene.tests), scene.judged)


_WRITTEN = 1.02
"""Of two fields that share a line and are worth nearly the same, the one that is written is the one to move."""


_CODE = (Way.DROP_PREFETCH, Way.DROP_WRITE, Way.SPLIT, Way.DROP_READ, Way.DROP, Way.DIVIDE)
_WAYS = (Way.MOVE, Way.PART, Way.SPREAD, *_CODE)
"""Of ways that free the same, the first is shown: those that change no code come first."""


def _kind(change: Change) -> tuple[str, bool]:
    """Of the changes of a place that say the same one is listed; to divide a lock is something else than to move it."""
    return change.place, change.way is Way.DIVIDE


def cured_by(scene: Scene, sense: Sense, change: Change, numbers: Iterable[int]) -> set[int]:
    """Which of these cases a change cures, where it makes sense: a write that another core looks at is not left out."""
    if change.way is Way.DROP_WRITE and not sense.in_vain(change.place):
        numbers = [number for number in numbers if not _is_looked_at(scene.cases[number], change.place)]
    return {number for number in numbers if not survives(scene, scene.cases[number], (change,))}


def _is_looked_at(case: Case, member: str) -> bool:
    """Whether a core touched what another wrote of a member."""
    return any(case.lines[at].is_looked_at(member) for at in case.examined)


def _cases_by_member(scene: Scene) -> tuple[Mapping[str, set[int]], Mapping[str, list[int]]]:
    """For each member, and each variable as a whole, the cases in which a core touched it on an asked line, and those
    of them that would share nothing without it: no change of it cures others."""
    cases: dict[str, set[int]] = {}
    curable: dict[str, list[int]] = {}
    known: dict[int, dict[str, bool]] = {}
    for number, case in enumerate(scene.cases):
        answers: dict[str, bool] = {}
        for at in case.examined:
            line = case.lines[at]
            free = known.get(id(line))
            if free is None:
                free = known[id(line)] = _free_without(line)
            for member, is_free in free.items():
                answers[member] = answers.get(member, True) and is_free
        for member, is_free in answers.items():
            cases.setdefault(member, set()).add(number)
            if is_free and all(member in known[id(case.lines[at])] for at in case.examined):
                curable.setdefault(member, []).append(number)
    return cases, dict(sorted(curable.items()))


def _free_without(line: Line) -> dict[str, bool]:
    """For each member that a core touched of a line whether no core would share the line without it."""
    touched_bytes = line.touched_bytes
    answers: dict[str, bool] = {}
    for member, mask in line.fields.members.items():
        if mask & touched_bytes:
            cores = [(read & ~mask, written & ~mask) for _, read, written in line.touched]
            alone = sum(1 for read, written in cores if read or written) < 2
            answers[member] = alone or not any(written for _, written in cores)
    return answers


class _Together:
    """Changes made one after the other; `chosen` holds for each the tests that it frees besides those before it."""

    def __init__(
        self,
        scene: Scene,
        cured: Mapping[Change, set[int]],
        cases: Mapping[str, set[int]],
        by_lock: Mapping[str, set[int]],
    ) -> None:
        self.chosen: dict[Change, frozenset[str]] = {}
        self._scene = scene
        self._cured = cured
        self._cases = cases
        self._by_lock = by_lock
        self._places: set[tuple[str, bool]] = set()
        self._gone: set[int] = set()
        self._gone_of: Counter[str] = Counter()
        self._touched: set[int] = set()

    def gain(self, change: Change) -> tuple[frozenset[str], set[int]]:
        """The tests that a further change frees, and the cases that it cures; none of a place that is changed."""
        if _kind(change) in self._places:
            return frozenset(), set()
        scene, cured = self._scene, self._cured[change]
        # Only where another change has moved bytes of the same object can both do more than each alone.
        both = (self._cases_of(change) & self._touched) - self._gone - cured
        changes = (*self.chosen, change)
        new = (cured - self._gone) | {number for number in both if not survives(scene, scene.cases[number], changes)}
        here: Counter[str] = Counter()
        for number in new:
            here.update(scene.by_case[number])
        freed = (test for test, hits in here.items() if self._gone_of[test] + hits == len(scene.tests[test]))
        return frozenset(freed), new

    def take(self, change: Change) -> None:
        """Makes a further change."""
        freed, new = self.gain(change)
        self._gone |= new
        for number in new:
            self._gone_of.update(self._scene.by_case[number])
        self._touched |= self._cases_of(change)
        self._places.add(_kind(change))
        self.chosen[change] = freed

    def _cases_of(self, change: Change) -> set[int]:
        """The cases that a change is about."""
        return (self._by_lock if change.way is Way.DIVIDE else self._cases)[change.place]
