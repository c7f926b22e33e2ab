"""What to fix first so that one call scales with itself: "creating files in one directory", not "the whole run".

Two tests are of one call with itself if both calls have one name and set the same flags: `open(creat)` with
`open(creat)`. Of all their shared lines, the cause that most follow from comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from commutant.campaign import Outcome
from commutant.corpus import PlacedCall
from commutant.report.causes import Cause, causes
from commutant.report.data import JudgedTest


@dataclass(slots=True)
class ParallelCall:
    """One call with itself: its tests, those that share memory, all their shared lines and how many of these follow
    from the first cause; `example_id` is the test in which it explains most. `first` is None where each line of each
    test is of its own."""

    call: str
    tests: int = 0
    conflicting: int = 0
    lines: int = 0
    explained: int = 0
    first: Cause | None = None
    example_id: str = ""
    _by_cause: Counter[tuple[str, str]] = field(default_factory=Counter)
    _examples: dict[tuple[str, str], tuple[Cause, str]] = field(default_factory=dict)

    def add(self, judged: JudgedTest) -> None:
        """Counts a test of this call."""
        self.tests += 1
        if judged.outcome is not Outcome.CONFLICTING:
            return
        self.conflicting += 1
        self.lines += len(judged.findings)
        for cause in causes(judged):
            key = cause.name, cause.role
            self._by_cause[key] += len(cause.lines)
            known = self._examples.get(key)
            if cause.is_known and (known is None or len(cause.lines) > len(known[0].lines)):
                self._examples[key] = cause, judged.test.id
        if self._examples:
            key = max(self._examples, key=lambda one: (self._by_cause[one], one))
            self.explained = self._by_cause[key]
            self.first, self.example_id = self._examples[key]


def call_label(call: PlacedCall) -> str:
    """The call with the flags that it sets: `open(creat, excl)`."""
    flags = ", ".join(name for name, value in call.args.items() if value is True)
    return f"{call.call}({flags})" if flags else call.call


def parallel_calls(tests: Iterable[JudgedTest]) -> list[ParallelCall]:
    """Each call that shares memory with itself, the one with most such tests first."""
    known: dict[str, ParallelCall] = {}
    for judged in tests:
        labels = set(map(call_label, judged.test.calls))
        if len(labels) == 1:
            label = labels.pop()
            known.setdefault(label, ParallelCall(label)).add(judged)
    sharing = [one for one in known.values() if one.conflicting]
    return sorted(sharing, key=lambda one: (-one.conflicting, one.call))
