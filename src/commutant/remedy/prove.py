"""Whether a change did what was predicted: two runs of one corpus, by cause.

A test is *freed* if it shared memory in BASE and shares none in NEW: as predicted, or besides. What was predicted and
still shares is *left*, with what it shares. A finding of NEW that BASE does not know is *moved* if the same test shared
memory in the same two functions under another name (the field has new neighbours, the test is no better and no worse);
else it is *new*. Runs differ without any change: a clock ticks or not, an allocator turns to its list. So what comes to
a test but is known from other tests of the same calls is noise, unless a second run of BASE shows much less of it; and
what is in few tests is noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from commutant.campaign import Outcome
from commutant.mtrace import Finding, stable_function, stable_variable
from commutant.report import BADNESS, JudgedTest

_SHARED = frozenset({Outcome.CONFLICTING, Outcome.UNSTABLE})
_JUDGED = _SHARED | {Outcome.CONFLICT_FREE}

_SLACK_TESTS = 5
"""So few tests of a variable are noise in any case: what comes and goes does so in a test or two of some pairs."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What became of the tests that both runs judged.

    `shared` counts those that shared memory, in BASE and in NEW; `freed` are those that no longer do, `foretold` what
    was predicted (None: nothing was). `worse` shared nothing in BASE, or NEW is wrong. `left` counts, per variable, the
    predicted tests that still share it. `moved` counts tests by old and new name; `new` by name, above the noise floor;
    `noise` below. `wrong` are tests with a wrong result in NEW. `by_noise` are predicted tests that share no more what
    they shared, under no name, but something that comes and goes.
    """

    tests: int
    shared: tuple[int, int]
    freed: frozenset[str]
    foretold: frozenset[str] | None
    worse: frozenset[str]
    wrong: frozenset[str]
    left: Counter[str] = field(default_factory=Counter)
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)
    new: Counter[str] = field(default_factory=Counter)
    noise: Counter[str] = field(default_factory=Counter)
    worse_floor: int | None = None
    by_noise: frozenset[str] = frozenset()

    @property
    def as_foretold(self) -> frozenset[str]:
        """Tests that were predicted and are freed."""
        return self.freed & (self.foretold or frozenset())

    @property
    def besides(self) -> frozenset[str]:
        """Tests that are freed and were not predicted."""
        return self.freed - (self.foretold or frozenset())

    @property
    def not_freed(self) -> frozenset[str]:
        """Tests that were predicted and still share."""
        return (self.foretold or frozenset()) - self.freed

    @property
    def holds(self) -> bool:
        """Whether nothing came that was not there before."""
        return not self.new and not self.wrong


def prove(
    base: Sequence[JudgedTest],
    new: Sequence[JudgedTest],
    foretold: frozenset[str] | None = None,
    again: Sequence[JudgedTest] | None = None,
) -> Proof:
    """Compares NEW with BASE, with the noise of a second run of BASE; only tests that all of them judged count."""
    old = _by_id(base)
    floor = None if again is None else _by_id(again)
    common = [judged for judged in new if judged.outcome in BADNESS and judged.test.id in old]
    if floor is not None:
        common = [judged for judged in common if judged.test.id in floor]
    ids = {judged.test.id for judged in common}
    before = {test: old[test] for test in ids}
    shared = {test for test in ids if before[test].outcome in _SHARED}
    now = {judged.test.id for judged in common if judged.outcome in _SHARED}
    freed = frozenset(one.test.id for one in common if one.test.id in shared and one.outcome is Outcome.CONFLICT_FREE)
    aimed = None if foretold is None else frozenset(foretold & ids)
    remaining = [judged for judged in common if aimed and judged.test.id in aimed - freed]
    left: Counter[str] = Counter()
    for judged in remaining:
        left.update({finding.name for finding in judged.findings})
    moved, appeared = moved_and_new(before, common)
    noise, worse_floor = _noise(before, None if floor is None else [floor[test] for test in sorted(ids)])
    unknown = _unknown(before, [] if floor is None else [floor[test] for test in ids], common)
    above: Counter[str] = Counter()
    for name, count in appeared.items():
        usual = noise.get(name, 0)
        if (name in unknown and count > usual + _SLACK_TESTS) or (
            name not in unknown and floor is not None and count > 2 * usual + _SLACK_TESTS
        ):
            above[name] = count
    return Proof(
        tests=len(common),
        shared=(len(shared), len(now)),
        freed=freed,
        foretold=aimed,
        worse=frozenset(now - shared),
        wrong=frozenset(one.test.id for one in common if one.outcome not in _JUDGED),
        left=left,
        moved=moved,
        new=above,
        noise=appeared - above,
        worse_floor=worse_floor,
        by_noise=frozenset(one.test.id for one in remaining if _shares_noise(before[one.test.id], one, above)),
    )


def _shares_noise(was: JudgedTest, now: JudgedTest, above: Collection[str]) -> bool:
    """Whether nothing is left of what a test shared, and what it shares instead is below the noise floor."""
    names = [{stable_variable(finding) for finding in judged.findings} for judged in (was, now)]
    functions = [{_functions(finding) for finding in judged.findings} for judged in (was, now)]
    return not (names[0] & names[1] or functions[0] & functions[1] or names[1].intersection(above) or not names[1])


def _unknown(
    before: Mapping[str, JudgedTest], again: Sequence[JudgedTest], after: Sequence[JudgedTest]
) -> frozenset[str]:
    """Variables of NEW that no test of the same calls shared in BASE."""
    known = {
        (judged.calls, stable_variable(finding)) for judged in (*before.values(), *again) for finding in judged.findings
    }
    now = {(judged.calls, stable_variable(finding)) for judged in after for finding in judged.findings}
    return frozenset(name for _, name in now - known)


def _by_id(tests: Sequence[JudgedTest]) -> dict[str, JudgedTest]:
    return {judged.test.id: judged for judged in tests if judged.outcome in BADNESS}


def moved_and_new(
    before: Mapping[str, JudgedTest], after: Sequence[JudgedTest]
) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """Of findings whose variable the test did not share before: those with a former name, and those without."""
    moved: Counter[tuple[str, str]] = Counter()
    new: Counter[str] = Counter()
    for judged in after:
        was = before[judged.test.id]
        names = {stable_variable(finding) for finding in was.findings}
        functions: dict[tuple[str, ...], str] = {}
        for finding in was.findings:
            functions.setdefault(_functions(finding), stable_variable(finding))
        present = {stable_variable(finding) for finding in judged.findings}
        appeared: set[str] = set()
        went: set[tuple[str, str]] = set()
        for finding in judged.findings:
            name = stable_variable(finding)
            if name in names:
                continue
            former = functions.get(_functions(finding))
            if former is not None and former not in present:
                went.add((former, name))
            else:
                appeared.add(name)
        moved.update(went)
        new.update(appeared - {name for _, name in went})
    return moved, new


def _noise(before: Mapping[str, JudgedTest], again: Sequence[JudgedTest] | None) -> tuple[Counter[str], int | None]:
    """Tests per variable that a second run of BASE has and the first has not, moved ones too, and tests that became
    worse in it."""
    if again is None:
        return Counter(), None
    moved, noise = moved_and_new(before, again)
    for (_, name), count in moved.items():
        noise[name] += count
    worse = sum(one.outcome in _SHARED and before[one.test.id].outcome not in _SHARED for one in again)
    return noise, worse


def _functions(finding: Finding) -> tuple[str, ...]:
    return tuple(sorted(stable_function(access.function) for access in (finding.first, finding.second)))
