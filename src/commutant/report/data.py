"""What a report is made of: the judged tests of one run, and the counts that stand in its summary.

These are plain values. The reader of run directories builds them; everything else in this package turns them into
text, HTML or C and reads no file of a run itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from commutant.campaign import Outcome
from commutant.corpus import TestCase
from commutant.mtrace import Finding
from commutant.support import UsageError

OUTCOME_WORDS: Mapping[Outcome, str] = {
    Outcome.CONFLICT_FREE: "conflict-free",
    Outcome.CONFLICTING: "conflict",
    Outcome.UNSTABLE: "unstable",
    Outcome.WRONG_RESULT: "wrong result",
    Outcome.SKIPPED: "skipped",
    Outcome.CRASHED: "crashed",
}

BADNESS: Mapping[Outcome, int] = {
    Outcome.CONFLICT_FREE: 0,
    Outcome.UNSTABLE: 1,
    Outcome.CONFLICTING: 2,
    Outcome.WRONG_RESULT: 3,
    Outcome.CRASHED: 4,
}
"""From one run to another, a test became worse if this rose. Skipped tests say nothing and are not compared."""


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """A test and what it came to.

    `findings` are those that stand (for an unstable test: those that were seen), one per identity. `detail` is one text
    that a reader needs beyond the verdict: what a wrong result was, how the target crashed, why a test was skipped.
    """

    test: TestCase
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    detail: str = ""

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls' names: the set that the test belongs to."""
        return tuple(call.call for call in self.test.calls)


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run: its `summary.json`, its judged tests, and what the head of a page says about it (label to text)."""

    summary: Mapping[str, object]
    tests: Sequence[JudgedTest]
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetCounts:
    """The outcomes of all tests of one set of calls."""

    calls: tuple[str, ...]
    conflict_free: int = 0
    conflicting: int = 0
    unstable: int = 0
    wrong_result: int = 0
    skipped: int = 0
    crashed: int = 0

    @property
    def tests(self) -> int:
        """All tests of the set, judged or not."""
        return self.judged + self.wrong_result + self.skipped + self.crashed

    @property
    def judged(self) -> int:
        """Tests of which it is known whether they share memory: the denominator of `fraction`."""
        return self.conflict_free + self.not_conflict_free

    @property
    def not_conflict_free(self) -> int:
        """Tests with a conflict that stands, and those whose conflicts come and go."""
        return self.conflicting + self.unstable

    @property
    def fraction(self) -> float:
        """Share of the judged tests that are not conflict-free, from 0 to 1; 0 where none was judged."""
        return self.not_conflict_free / self.judged if self.judged else 0.0

    @property
    def failed(self) -> int:
        """Tests that say something about the model or the target other than sharing: wrong results and crashes."""
        return self.wrong_result + self.crashed

    def __add__(self, other: SetCounts) -> SetCounts:
        """The sum of both; the calls of the left one stay."""
        return SetCounts(self.calls, *(getattr(self, name.value) + getattr(other, name.value) for name in Outcome))


def read_sets(summary: Mapping[str, object]) -> list[SetCounts]:
    """The sets of a `summary.json` in their order. Raises UsageError if the document is not such a summary."""
    entries = summary.get("sets")
    if not isinstance(entries, list):
        raise UsageError(f"expected a summary with a list 'sets', got {type(entries).__name__}: is it a summary.json?")
    return [_read_set(entry, index) for index, entry in enumerate(entries)]


def total_counts(sets: Sequence[SetCounts]) -> SetCounts:
    """All sets added up."""
    total = SetCounts(())
    for counts in sets:
        total += counts
    return total


def _read_set(entry: object, index: int) -> SetCounts:
    where = f"summary.json, sets[{index}]"
    if not isinstance(entry, Mapping):
        raise UsageError(f"expected an object in {where}, got {type(entry).__name__}")
    calls = entry.get("calls")
    if not isinstance(calls, list) or not calls or not all(isinstance(call, str) for call in calls):
        raise UsageError(f"expected a list of call names as 'calls' in {where}, got {calls!r:.80}")
    return SetCounts(tuple(calls), *_read_counts(entry, where))


def _read_counts(entry: Mapping[object, object], where: str) -> Iterator[int]:
    for name in Outcome:
        count = entry.get(name, 0)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise UsageError(f"expected a count of 0 or more as '{name}' in {where}, got {count!r:.80}")
        yield count
