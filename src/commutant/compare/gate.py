"""What a gate in continuous integration fails on: findings that nobody knew, or accepted, before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from commutant.compare.known import Known
from commutant.compare.runs import refuse_without_common_test
from commutant.compare.suppressions import Suppressions
from commutant.corpus import TestCase
from commutant.report import FindingGroup, RunReport, by_weight, group_findings


def findings_of(run: RunReport, baselines: Sequence[RunReport], suppressions: Suppressions) -> list[FindingGroup]:
    """A run's findings, heaviest first, marked as accepted or not and, if there are baselines, as new or not.

    What any of the baselines saw is known (`commutant.compare.known`).
    Raises UsageError if the run shares no judged test with a baseline.
    """
    groups = group_findings(run.tests)
    for baseline in baselines:
        refuse_without_common_test(baseline, run)
    known = Known(*(baseline.tests for baseline in baselines))
    for group in groups.values():
        group.is_new = not known.has(group) if baselines else None
    suppressions.apply(groups.values())
    return by_weight(groups.values())


def failing(groups: Iterable[FindingGroup]) -> list[FindingGroup]:
    """The findings that nobody accepted and that are not known from a baseline, if there was one."""
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
