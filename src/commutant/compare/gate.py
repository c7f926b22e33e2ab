"""What a gate in continuous integration fails on: findings that nobody knew, or accepted, before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from commutant.compare.runs import refuse_without_common_test, seen
from commutant.compare.suppressions import Suppressions
from commutant.mtrace.fingerprint import Fingerprint
from commutant.report.data import RunReport
from commutant.report.groups import FindingGroup, FingerprintTable, by_weight, group_findings


def findings_of(run: RunReport, baselines: Sequence[RunReport], suppressions: Suppressions) -> list[FindingGroup]:
    """A run's findings, heaviest first, marked as accepted or not and, if there are baselines, as new or not.

    What any of the baselines saw is known, if only in an unstable test: which of several pairs of accesses shows a
    false sharing may change with the order of the tests, so that two runs with different seeds know more than one.
    Raises UsageError if the run shares no judged test with a baseline.
    """
    groups = group_findings(run.tests)
    marks = FingerprintTable()
    known: set[Fingerprint] = set()
    for baseline in baselines:
        refuse_without_common_test(baseline, run)
        known |= seen(baseline.tests, marks)
    for mark, group in groups.items():
        group.is_new = mark not in known if baselines else None
    suppressions.apply(groups.values())
    return by_weight(groups.values())


def failing(groups: Iterable[FindingGroup]) -> list[FindingGroup]:
    """The findings that nobody accepted and that are not known from a baseline, if there was one."""
    return [group for group in groups if not group.accepted and group.is_new is not False]
