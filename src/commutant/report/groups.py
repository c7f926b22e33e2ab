"""A run's findings by fingerprint: what there is to act on, each once, however many tests show it.

Memory grows with the number of distinct findings, not with that of tests: a group keeps counts, one example with both
stacks, and the ids of a few tests that show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from commutant.campaign import Outcome
from commutant.corpus import Order, Value
from commutant.mtrace import Finding, Fingerprint, fingerprint
from commutant.report.data import JudgedTest
from commutant.report.hints import Hint, hint
from commutant.support import IdentityCache, plural

EXAMPLES = 5
"""Test ids that a group keeps."""


@dataclass(slots=True)
class FindingGroup:
    """All findings of one fingerprint. `example` is the first that came, `tests` counts tests in which one stands.

    `examples` are ids of the first such tests. `failing_calls` counts those of the tests in which one of the calls can
    only fail (every acceptable result is an error): there is nothing that it would have to write. `is_new` says whether
    a run that this one was compared with had never seen it, None without such a run; `former` is what the finding was
    there, if it only moved, and is then not new; `accepted` is why a suppression file says to live with it, empty if
    none does (see `commutant.compare`).
    """

    fingerprint: Fingerprint
    example: Finding
    tests: int = 0
    failing_calls: int = 0
    examples: list[str] = field(default_factory=list)
    is_new: bool | None = None
    former: Fingerprint | None = None
    accepted: str = ""

    @property
    def hint(self) -> Hint:
        """What it looks like and what to look at first, for most of its tests."""
        return hint(self.example, failing=2 * self.failing_calls > self.tests)

    @property
    def name(self) -> str:
        """The variable, as its first finding names it."""
        return self.example.name

    @property
    def place(self) -> str:
        """Where it is, in a line: the variable, the two functions, the calls, and in how many tests."""
        where = f"{', '.join(self.fingerprint.calls)}; {plural(self.tests, 'test')}"
        return f"{self.name} in {' and '.join(dict.fromkeys(self.fingerprint.functions))} ({where})"


def group_findings(tests: Iterable[JudgedTest]) -> dict[Fingerprint, FindingGroup]:
    """The findings that stand, by fingerprint, in the order in which they first appear."""
    groups: dict[Fingerprint, FindingGroup] = {}
    numbers = FingerprintTable()
    failing = IdentityCache(has_failing_call)
    for judged in tests:
        if judged.outcome is not Outcome.CONFLICTING:
            continue
        seen: set[Fingerprint] = set()
        for finding in judged.findings:
            mark = numbers.of(judged.calls, finding)
            if mark in seen:
                continue
            seen.add(mark)
            group = groups.get(mark)
            if group is None:
                group = groups[mark] = FindingGroup(mark, finding)
            group.tests += 1
            group.failing_calls += failing(judged.test.orders)
            if len(group.examples) < EXAMPLES:
                group.examples.append(judged.test.id)
    return groups


class FingerprintTable:
    """Fingerprints, each worked out once per distinct finding and set of calls."""

    def __init__(self) -> None:
        # By identity, which is quicker than comparing stacks: a run's tests share one object per distinct finding. It
        # is kept beside the fingerprint, so that no other object takes its place.
        self._known: dict[tuple[tuple[str, ...], int], tuple[Fingerprint, Finding]] = {}

    def of(self, calls: tuple[str, ...], finding: Finding) -> Fingerprint:
        """The fingerprint of a finding in a test of these calls."""
        key = calls, id(finding)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = fingerprint(calls, finding), finding
        return known[0]

    def of_test(self, judged: JudgedTest) -> set[Fingerprint]:
        """Those of all findings of a test."""
        return {self.of(judged.calls, finding) for finding in judged.findings}


def has_failing_call(orders: Sequence[Order]) -> bool:
    """Whether one of the calls fails in every acceptable outcome of every order."""
    outcomes = [outcome.results for order in orders for outcome in order.outcomes]
    return any(all(map(_is_error, results)) for results in zip(*outcomes, strict=True))


def may_fail(orders: Sequence[Order]) -> bool:
    """Whether one of the calls fails in some acceptable outcome of some order."""
    return any(_is_error(result) for order in orders for outcome in order.outcomes for result in outcome.results)


def _is_error(result: Value) -> bool:
    return isinstance(result, dict) and "errno" in result


def by_weight(groups: Iterable[FindingGroup]) -> list[FindingGroup]:
    """The groups for a list: most tests first, then by calls and variable."""
    return sorted(groups, key=lambda group: (-group.tests, group.fingerprint))
