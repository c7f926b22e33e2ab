"""Two runs side by side: which tests became better or worse, which findings came and went, and what is behind it.

Tests are compared where both runs judged them. Of findings, one *appeared* if it stands in NEW and is not known from
BASE (`commutant.compare.known`); it *went* if it stood in BASE, in a test that NEW judged too, and is not known from
NEW. So what merely comes and goes is in neither list. What has but another name in NEW has *moved*
(`commutant.compare.moved`), and is in neither list, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from commutant.campaign import Outcome
from commutant.compare.known import Known
from commutant.compare.moved import find_moved, mark_new
from commutant.corpus import SetOfCalls
from commutant.documents import Part
from commutant.report import BADNESS, FindingGroup, FingerprintTable, JudgedTest, RunReport, group_findings, not_reached
from commutant.support import UsageError


class ChangedTest(Part, frozen=True):
    """A test whose outcome is another one; `variables` are those of its findings that only the worse side has."""

    test_id: str = msgspec.field(name="test")
    calls: SetOfCalls
    before: Outcome
    after: Outcome
    variables: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        """Whether it became worse; else it became better."""
        return BADNESS[self.after] > BADNESS[self.before]


@dataclass(slots=True)
class ChangedSet:
    """What became of the tests of one set of calls that both runs judged.

    `before` and `after` count tests that are not conflict-free. `causes` counts, per variable, the worse tests whose
    new findings name it; `reliefs` the better tests whose old findings did.

    A test that was conflicting may share more than before: `shared_before` and `shared_after` sum up the variables that
    each test shares, `gained` counts per variable the tests that share it in NEW alone, `lost` those in BASE alone.
    """

    calls: tuple[str, ...]
    tests: int = 0
    before: int = 0
    after: int = 0
    worse: int = 0
    better: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    reliefs: Counter[str] = field(default_factory=Counter)
    shared_before: int = 0
    shared_after: int = 0
    gained: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs compared. `appeared` holds groups of NEW, `went` of BASE, `moved` and `stayed` of NEW, each in order of
    first sight.

    `common` counts tests that both judged, `only_base` and `only_new` those that one did. `not_reached` tells of BASE
    and of NEW what none of their tests can have met.
    """

    common: int
    only_base: int
    only_new: int
    tests: Sequence[ChangedTest]
    sets: Sequence[ChangedSet]
    appeared: Sequence[FindingGroup]
    went: Sequence[FindingGroup]
    moved: Sequence[FindingGroup]
    stayed: Sequence[FindingGroup]
    not_reached: tuple[Sequence[str], Sequence[str]]

    @property
    def worse(self) -> list[ChangedTest]:
        """The tests that became worse."""
        return [test for test in self.tests if test.is_worse]

    @property
    def shared(self) -> tuple[int, int]:
        """Variables that the tests of both share, summed up over the tests: in BASE and in NEW."""
        return sum(one.shared_before for one in self.sets), sum(one.shared_after for one in self.sets)

    def reach(self, base: str, new: str) -> Iterator[str]:
        """What the percentages of BASE and NEW say nothing about, a line each, or one if it is the same."""
        if self.not_reached[0] == self.not_reached[1]:
            sides = [("Not reached", self.not_reached[0])]
        else:
            sides = [
                (f"Not reached in {name}", missing) for name, missing in zip((base, new), self.not_reached, strict=True)
            ]
        for title, missing in sides:
            if missing:
                yield f"{title}: {'; '.join(missing)}"

    @property
    def better(self) -> list[ChangedTest]:
        """The tests that became better."""
        return [test for test in self.tests if not test.is_worse]


def compare_runs(base: RunReport, new: RunReport) -> RunComparison:
    """Compares two runs; raises UsageError if no test was judged in both."""
    old = {judged.test.id: judged for judged in base.tests if judged.outcome in BADNESS}
    tests: list[ChangedTest] = []
    sets: dict[tuple[str, ...], ChangedSet] = {}
    marks = FingerprintTable()
    common: list[tuple[JudgedTest, JudgedTest]] = []
    only_new = 0
    for after in new.tests:
        if after.outcome not in BADNESS:
            continue
        before = old.get(after.test.id)
        if before is None:
            only_new += 1
            continue
        common.append((before, after))
        _count(before, after, sets, tests, marks)
    refuse_without_common_test(base, new)
    seen_in_base, seen_in_new = Known(base.tests), Known(new.tests)
    moves = find_moved(base.tests, new.tests)
    groups = group_findings(new.tests)
    for group in groups.values():
        mark_new(group, seen_in_base, moves)
    judged_twice = group_findings(before for before, _ in common)
    return RunComparison(
        common=len(common),
        only_base=len(old) - len(common),
        only_new=only_new,
        tests=tests,
        sets=sorted(sets.values(), key=lambda one: (one.better - one.worse, one.calls)),
        appeared=[group for group in groups.values() if group.is_new],
        went=[group for mark, group in judged_twice.items() if not seen_in_new.has(group) and mark not in moves.left],
        moved=[group for group in groups.values() if group.former],
        stayed=[group for group in groups.values() if not group.is_new and not group.former],
        not_reached=(not_reached(base.summary), not_reached(new.summary)),
    )


def refuse_without_common_test(base: RunReport, new: RunReport) -> None:
    """Raises UsageError if no test was judged in both runs."""
    judged = {one.test.id for one in base.tests if one.outcome in BADNESS}
    if not any(one.test.id in judged and one.outcome in BADNESS for one in new.tests):
        raise UsageError(
            f"the two runs share no judged test: {_title(base)} and {_title(new)}; "
            "run the same corpus on both (`commutant check BASE --target NEW_TARGET`)"
        )


def _count(
    before: JudgedTest,
    after: JudgedTest,
    sets: dict[tuple[str, ...], ChangedSet],
    tests: list[ChangedTest],
    marks: FingerprintTable,
) -> None:
    one = sets.setdefault(after.calls, ChangedSet(after.calls))
    one.tests += 1
    one.before += before.outcome in _NOT_CONFLICT_FREE
    one.after += after.outcome in _NOT_CONFLICT_FREE
    shared_before, shared_after = ({finding.name for finding in side.findings} for side in (before, after))
    one.shared_before += len(shared_before)
    one.shared_after += len(shared_after)
    one.gained.update(sorted(shared_after - shared_before))
    one.lost.update(sorted(shared_before - shared_after))
    rise = BADNESS[after.outcome] - BADNESS[before.outcome]
    if not rise:
        return
    bad, good = (after, before) if rise > 0 else (before, after)
    known = marks.of_test(good)
    names = (finding.name for finding in bad.findings if marks.of(bad.calls, finding) not in known)
    variables = tuple(dict.fromkeys(names))
    tests.append(ChangedTest(after.test.id, after.calls, before.outcome, after.outcome, variables))
    if rise > 0:
        one.worse += 1
        one.causes.update(variables)
    else:
        one.better += 1
        one.reliefs.update(variables)


_NOT_CONFLICT_FREE = frozenset({Outcome.CONFLICTING, Outcome.UNSTABLE})


def _title(run: RunReport) -> str:
    model = run.facts.get("model")
    return f"{run.summary.get('interface')} on {run.summary.get('target')}" + (f" (model {model})" if model else "")
