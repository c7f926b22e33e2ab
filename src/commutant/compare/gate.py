"""The gate of continuous integration: findings that no baseline knew and no one accepted, asked twice before it fails.

One gate for `check --fail-on new`, for `check_sharing` in a test runner, and for programs. Some objects meet by
accident: two of them land in one line, or in one bucket of a hash table. So a few tests of each new finding run again,
in another order, and only what is seen again fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from commutant.compare.known import Known
from commutant.compare.moved import find_moved, mark_new
from commutant.compare.runs import refuse_without_common_test
from commutant.compare.suppressions import Suppressions
from commutant.corpus import TestCase
from commutant.report import FindingGroup, RunReport, by_weight, group_findings
from commutant.support import plural, safe_text

NAMED = 10
"""Findings that a gate lists by name."""


@dataclass(frozen=True, slots=True)
class Gated:
    """What a gate found: all findings, marked; the new ones, of which those fail that a second run saw again.

    Without a baseline all that no one accepted are `new`, and fail. `moved` have but another name than in the baseline.
    """

    findings: Sequence[FindingGroup]
    new: Sequence[FindingGroup]
    failing: Sequence[FindingGroup]
    moved: Sequence[FindingGroup]
    against_baseline: bool
    was_repeated: bool

    def __bool__(self) -> bool:
        """Whether nothing fails."""
        return not self.failing

    def lines(self) -> list[str]:
        """What a person is to see, a line each: how many are new, and those that fail by name."""
        if not self.new:
            return []
        kind = "new finding" if self.against_baseline else "finding"
        again = f", {len(self.failing)} of them seen again" if self.was_repeated else ""
        named = [f"  {safe_text(group.place)}" for group in self.failing[:NAMED]]
        rest = len(self.failing) - len(named)
        return [
            f"{plural(len(self.new), kind)}{again}" + (":" if named else ""),
            *named,
            *([f"  and {rest:,} more"] if rest else []),
        ]


def gate(
    run: RunReport,
    baselines: Sequence[RunReport],
    suppressions: Suppressions,
    again: Callable[[Sequence[TestCase]], RunReport] | None = None,
) -> Gated:
    """Asks the gate about a run. `again` runs tests a second time; without it, what is new fails at once.

    Raises UsageError if the run shares no judged test with a baseline.
    """
    findings = findings_of(run, baselines, suppressions)
    new = failing(findings)
    moved = [group for group in findings if group.former is not None]
    if not (new and baselines and again):
        return Gated(findings, new, new, moved, bool(baselines), was_repeated=False)
    return Gated(findings, new, confirmed(new, again(examples_of(new, run))), moved, True, was_repeated=True)


def findings_of(run: RunReport, baselines: Sequence[RunReport], suppressions: Suppressions) -> list[FindingGroup]:
    """A run's findings, heaviest first, marked as accepted or not and, if there are baselines, as new or not.

    What any of the baselines saw is known (`commutant.compare.known`), and what moved is not new.
    Raises UsageError if the run shares no judged test with a baseline.
    """
    groups = group_findings(run.tests)
    for baseline in baselines:
        refuse_without_common_test(baseline, run)
    known = Known(*(baseline.tests for baseline in baselines))
    moves = [find_moved(baseline.tests, run.tests) for baseline in baselines]
    for group in groups.values():
        if baselines:
            mark_new(group, known, *moves)
    suppressions.apply(groups.values())
    return by_weight(groups.values())


def failing(groups: Iterable[FindingGroup]) -> list[FindingGroup]:
    """The findings that no one accepted and that are not known from a baseline, if there was one."""
    return [group for group in groups if not group.accepted and group.is_new is not False]


def examples_of(groups: Iterable[FindingGroup], run: RunReport) -> list[TestCase]:
    """Tests of a run that show these findings, a few for each: those to run again for a second opinion."""
    wanted = {test_id for group in groups for test_id in group.examples}
    return [judged.test for judged in run.tests if judged.test.id in wanted]


def confirmed(groups: Iterable[FindingGroup], again: RunReport) -> list[FindingGroup]:
    """The findings that another run of their tests saw again.

    Two objects that fell into one line or one bucket of a hash table by accident will hardly do so twice.
    """
    known = Known(again.tests)
    return [group for group in groups if known.has(group)]
