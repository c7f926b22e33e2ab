"""A run's findings by fingerprint: what there is to act on, each once, however many tests show it.

Memory grows with the number of distinct findings, not with that of tests: a group keeps counts, one example with both
stacks, and the ids of a few tests that show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from commutant.campaign import Outcome
from commutant.corpus import Order, TestCase, Value
from commutant.mtrace import Finding, Fingerprint, fingerprint, stable_function
from commutant.report.data import JudgedTest
from commutant.report.hints import Hint, hint
from commutant.report.own_frames import own_function
from commutant.support import IdentityCache, plural

EXAMPLES = 5
"""Test ids that a group keeps."""


@dataclass(slots=True)
class FindingGroup:
    """All findings of one fingerprint. `example` is the first that came, `tests` counts tests in which one stands.

    `examples` are ids of the first such tests. `failing_calls` counts those of the tests in which one of the calls can
    only fail, or does again what the other did: there is nothing that it would have to write. `is_new` says whether
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
        return f"{self.name} in {' and '.join(self.functions)} ({where})"

    @property
    def functions(self) -> list[str]:
        """The functions that met there, as a reader knows them: in files of his own, where they are known."""
        example = self.example
        own = {access.function: own_function(access) for access in (example.first, example.second)}
        named = {stable_function(function): name for function, name in own.items() if name != function}
        return list(dict.fromkeys(named.get(function, function) for function in self.fingerprint.functions))


def group_findings(tests: Iterable[JudgedTest]) -> dict[Fingerprint, FindingGroup]:
    """The findings that stand, by fingerprint, in the order in which they first appear."""
    groups: dict[Fingerprint, FindingGroup] = {}
    numbers = FingerprintTable()
    fails = IdentityCache(has_failing_call)
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
            group.failing_calls += has_idle_call(judged.test, fails)
            if len(group.examples) < EXAMPLES:
                group.examples.append(judged.test.id)
    return groups


class FingerprintTable:
    """Fingerprints, each worked out once per distinct finding and set of calls."""

    def __init__(self) -> None:
        # By identity, which is quicker than comparing stacks: a run's tests share one object per distinct finding. It
        # is kept with the fingerprint, so that no other object takes its place.
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


def has_idle_call(test: TestCase, fails: Callable[[Sequence[Order]], bool] | None = None) -> bool:
    """Whether one of the calls has nothing to write: it can only fail, or does once more what the other one did.

    Two equal calls with a value, which return the same, do so if the value is seen at most once afterwards: a map keeps
    one of two equal entries, a queue both. `fails` is `has_failing_call`, of who keeps its answers.
    """
    return (fails or has_failing_call)(test.orders) or _repeats(test)


def _repeats(test: TestCase) -> bool:
    first, *others = test.calls
    if not others or any((one.call, one.args) != (first.call, first.args) for one in others):
        return False
    outcomes = [outcome for order in test.orders for outcome in order.outcomes]
    if any(len({repr(result) for result in one.results}) > 1 or _has_handle(one.results[0]) for one in outcomes):
        return False
    texts = [value for value in first.args.values() if isinstance(value, str)]
    return bool(texts) and all(_count(one.observation, texts[-1]) <= 1 for one in outcomes)


def _has_handle(value: Value) -> bool:
    return isinstance(value, dict) and "sort" in value


def _count(values: object, text: str) -> int:
    """How often a text is in values, and in what these hold."""
    if isinstance(values, dict):
        return sum(_count(value, text) for value in values.values())
    if isinstance(values, list | tuple):
        return sum(_count(value, text) for value in values)
    return int(values == text)


def _is_error(result: Value) -> bool:
    return isinstance(result, dict) and "errno" in result


def by_weight(groups: Iterable[FindingGroup]) -> list[FindingGroup]:
    """The groups for a list: most tests first, then by calls and variable."""
    return sorted(groups, key=lambda group: (-group.tests, group.fingerprint))
