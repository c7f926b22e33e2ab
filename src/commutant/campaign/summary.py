"""What a campaign comes to in figures: the content of `summary.json` (docs/schemas/summary.schema.json).

The six outcomes add up to `tests`, for the whole campaign and for each set of calls. A summary is made by counting
verdicts one by one, so that a campaign's size does not matter, or read back from the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from commutant.campaign.keys import KeyRate
from commutant.campaign.verdict import Outcome, Verdict
from commutant.corpus import Level, SetOfCalls, TestCase
from commutant.documents import Count, Measure, Part


class Counts(Part, frozen=True, kw_only=True):
    """How many tests came to each outcome; `tests` is the sum of the six."""

    tests: Count
    conflict_free: Count
    conflicting: Count
    unstable: Count
    wrong_result: Count
    skipped: Count
    crashed: Count

    def __post_init__(self) -> None:
        """Refuses outcomes that do not add up."""
        total = sum(getattr(self, outcome.value) for outcome in Outcome)
        if self.tests != total:
            raise ValueError(f"tests is {self.tests}, but the six outcomes add up to {total}")


class SetSummary(Counts, frozen=True, kw_only=True):
    """The outcomes of the tests of one set of calls: a cell of the heat map."""

    calls: SetOfCalls


class Summary(Counts, frozen=True, kw_only=True, tag_field="schema_version", tag=1):
    """A campaign in figures.

    `seconds` is the time from the first window to the last verdict, `start_seconds` the target's start (boot and
    self-test), which `seconds` leaves out. `ignored` counts per ignoring rule the lines dropped in all windows,
    `collisions` the conflicting tests that are conflict-free under another hash seed of the target, `unreached` the
    skipped tests whose set-up the target led elsewhere, as the model allows; runs of earlier versions lack them. `keys`
    is what tests share for some keys and not for most, of targets of which that was asked.
    """

    interface: str
    target: str
    level: Level
    windows: Count
    seconds: Measure
    start_seconds: Measure
    sets: tuple[SetSummary, ...]
    ignored: dict[str, Count]
    collisions: Count = 0
    unreached: Count = 0
    keys: tuple[KeyRate, ...] = ()

    def __post_init__(self) -> None:
        """Refuses sets that do not add up, and more collisions than conflicts."""
        super().__post_init__()
        if self.tests != sum(one.tests for one in self.sets):
            raise ValueError("the sets do not add up to tests")
        if self.collisions > self.conflicting:
            raise ValueError(f"{self.collisions} collisions among {self.conflicting} conflicting tests")
        if self.unreached > self.skipped:
            raise ValueError(f"{self.unreached} tests not reached among {self.skipped} skipped ones")


def _outcomes(counter: Mapping[Outcome, int]) -> dict[str, int]:
    """The members that a `Counts` is made of."""
    return {"tests": sum(counter.values()), **{outcome.value: counter.get(outcome, 0) for outcome in Outcome}}


def _calls(test: TestCase) -> tuple[str, ...]:
    return tuple(call.call for call in test.calls)


class Tally:
    """Counts verdicts as they come. The sets stand in the order in which they first appear among `tests`."""

    def __init__(self, tests: Iterable[TestCase]) -> None:
        self.windows = 0
        self.tests = 0
        self.collisions = 0
        self.unreached = 0
        self._outcomes: dict[tuple[str, ...], Counter[Outcome]] = {_calls(test): Counter() for test in tests}
        self._ignored: Counter[str] = Counter()

    def add(self, test: TestCase, verdict: Verdict) -> None:
        """Counts the verdict on one of the tests."""
        self.tests += 1
        self.windows += verdict.windows
        self.collisions += verdict.collision
        self.unreached += verdict.is_unreached
        self._outcomes[_calls(test)][verdict.outcome] += 1
        if verdict.ignored:
            self._ignored.update(verdict.ignored)

    def count(self, outcome: Outcome) -> int:
        """How many tests came to this outcome so far."""
        return sum(counter[outcome] for counter in self._outcomes.values())

    def summary(
        self,
        interface: str,
        target: str,
        level: Level,
        seconds: float,
        start_seconds: float,
        keys: tuple[KeyRate, ...] = (),
    ) -> Summary:
        """The summary of what was counted so far; sets of which no test was judged yet are left out."""
        return Summary(
            **_outcomes({outcome: self.count(outcome) for outcome in Outcome}),
            interface=interface,
            target=target,
            level=level,
            windows=self.windows,
            seconds=round(seconds, 3),
            start_seconds=round(start_seconds, 3),
            sets=tuple(SetSummary(**_outcomes(n), calls=calls) for calls, n in self._outcomes.items() if n),
            ignored=dict(sorted(self._ignored.items())),
            collisions=self.collisions,
            unreached=self.unreached,
            keys=keys,
        )
