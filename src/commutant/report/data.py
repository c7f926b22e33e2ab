"""What a report is made of: the judged tests of one run, and the counts that stand in its summary.

These are plain values. The reader of run directories builds them; everything else in this package turns them into
text, HTML or C and reads no file of a run itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from commutant.campaign import Outcome
from commutant.corpus import TestCase
from commutant.documents import Count, Part
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
    """One run: its `summary.json`, its judged tests, and what the head of a page says about it (label to text).

    `worth` says of variables, by name, what changes of them would free.
    """

    summary: Mapping[str, object]
    tests: Sequence[JudgedTest]
    facts: Mapping[str, str] = field(default_factory=dict)
    worth: Mapping[str, Sequence[str]] = field(default_factory=dict)


class SetCounts(Part, frozen=True):
    """The outcomes of all tests of one set of calls."""

    calls: tuple[str, ...]
    conflict_free: Count = 0
    conflicting: Count = 0
    unstable: Count = 0
    wrong_result: Count = 0
    skipped: Count = 0
    crashed: Count = 0

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


class _Sets(Part, frozen=True):
    """Of a summary, what is asked for here."""

    sets: list[SetCounts]


def read_sets(summary: Mapping[str, object]) -> list[SetCounts]:
    """The sets of a `summary.json` in their order. Raises UsageError if the document is not such a summary."""
    try:
        return msgspec.convert(summary, _Sets).sets
    except msgspec.ValidationError as error:
        raise UsageError(f"expected a summary.json: {error}") from None


def total_counts(sets: Sequence[SetCounts]) -> SetCounts:
    """All sets added up."""
    total = SetCounts(())
    for counts in sets:
        total += counts
    return total


def skipped_reasons(tests: Iterable[JudgedTest]) -> list[tuple[str, int]]:
    """Why tests were not run, each with how many, the most frequent first."""
    return Counter(judged.detail for judged in tests if judged.outcome is Outcome.SKIPPED).most_common()


def beside_only(tests: Iterable[JudgedTest]) -> int:
    """How many tests conflict by neighbouring lines alone."""
    conflicting = (judged for judged in tests if judged.outcome is Outcome.CONFLICTING)
    return sum(all(finding.sharing == "neighbour" for finding in judged.findings) for judged in conflicting)
