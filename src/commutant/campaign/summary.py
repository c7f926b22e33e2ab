"""What a campaign comes to in figures: the content of `summary.json` (docs/schemas/summary.schema.json).

The six outcomes add up to `tests`, for the whole campaign and for each set of calls. A summary is made by counting
verdicts one by one, so that a campaign's size does not matter, or read back from the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from commutant.campaign.verdict import Outcome, Verdict
from commutant.corpus import TestCase

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tests came to each outcome."""

    conflict_free: int = 0
    conflicting: int = 0
    unstable: int = 0
    wrong_result: int = 0
    skipped: int = 0
    crashed: int = 0

    @property
    def tests(self) -> int:
        """All tests: the sum of the six outcomes."""
        return sum(self.to_json().values())

    def to_json(self) -> dict[str, int]:
        """The six counts by the name of the outcome."""
        return {outcome.value: getattr(self, outcome.value) for outcome in Outcome}

    @classmethod
    def of(cls, counts: Mapping[Outcome, int]) -> Counts:
        """From a count per outcome; a missing one is 0."""
        return cls(**{outcome.value: counts.get(outcome, 0) for outcome in Outcome})

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Counts:
        """Reads the six counts and checks them against `tests`; raises KeyError or ValueError."""
        counts = cls(**{outcome.value: _count(raw, outcome.value) for outcome in Outcome})
        if counts.tests != _count(raw, "tests"):
            raise ValueError(f"tests is {raw['tests']}, but the six outcomes add up to {counts.tests}")
        return counts


@dataclass(frozen=True, slots=True)
class SetSummary:
    """The outcomes of the tests of one set of calls: a cell of the heat map."""

    calls: tuple[str, ...]
    counts: Counts

    def to_json(self) -> dict[str, object]:
        """One entry of `sets`."""
        return {"calls": list(self.calls), "tests": self.counts.tests, **self.counts.to_json()}


@dataclass(frozen=True, slots=True)
class Summary:
    """A campaign in figures.

    `seconds` is the time from the first window to the last verdict, `start_seconds` the target's start (boot and
    self-test), which `seconds` leaves out. `ignored` counts per ignoring rule the lines dropped in all windows,
    `collisions` the conflicting tests that are conflict-free under another hash seed of the target.
    """

    interface: str
    target: str
    level: str
    counts: Counts
    windows: int
    seconds: float
    start_seconds: float
    sets: tuple[SetSummary, ...]
    ignored: Mapping[str, int] = field(default_factory=dict)
    collisions: int = 0

    def to_json(self) -> dict[str, object]:
        """The JSON document."""
        return {
            "schema_version": SCHEMA_VERSION,
            "interface": self.interface,
            "target": self.target,
            "level": self.level,
            "tests": self.counts.tests,
            **self.counts.to_json(),
            "collisions": self.collisions,
            "windows": self.windows,
            "seconds": round(self.seconds, 3),
            "start_seconds": round(self.start_seconds, 3),
            "sets": [one.to_json() for one in self.sets],
            "ignored": dict(sorted(self.ignored.items())),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Summary:
        """Reads what `to_json` gave; raises KeyError, TypeError or ValueError for anything else."""
        if raw["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema_version {raw['schema_version']!r}, this version reads {SCHEMA_VERSION}")
        names = raw["interface"], raw["target"], raw["level"]
        if any(type(name) is not str for name in names):
            raise ValueError("interface, target and level are texts")
        seconds = raw["seconds"], raw["start_seconds"]
        if any(type(value) not in (int, float) or value < 0 for value in seconds):
            raise ValueError("seconds and start_seconds are numbers from 0")
        sets = tuple(SetSummary(tuple(map(str, one["calls"])), Counts.from_json(one)) for one in raw["sets"])
        ignored = {str(rule): _count(raw["ignored"], rule) for rule in raw["ignored"]}
        counts = Counts.from_json(raw)
        if counts.tests != sum(one.counts.tests for one in sets):
            raise ValueError("the sets do not add up to tests")
        collisions = _count(raw, "collisions") if "collisions" in raw else 0
        if collisions > counts.conflicting:
            raise ValueError(f"{collisions} collisions among {counts.conflicting} conflicting tests")
        windows = _count(raw, "windows")
        return cls(*names, counts, windows, float(seconds[0]), float(seconds[1]), sets, ignored, collisions)


def _count(raw: Mapping[str, Any], key: str) -> int:
    value = raw[key]
    if type(value) is not int or value < 0:
        raise ValueError(f"{key} is an integer from 0, got {value!r}")
    return value


def _calls(test: TestCase) -> tuple[str, ...]:
    return tuple(call.call for call in test.calls)


class Tally:
    """Counts verdicts as they come. The sets stand in the order in which they first appear among `tests`."""

    def __init__(self, tests: Iterable[TestCase]) -> None:
        self.windows = 0
        self.tests = 0
        self.collisions = 0
        self._outcomes: dict[tuple[str, ...], Counter[Outcome]] = {_calls(test): Counter() for test in tests}
        self._ignored: Counter[str] = Counter()

    def add(self, test: TestCase, verdict: Verdict) -> None:
        """Counts the verdict on one of the tests."""
        self.tests += 1
        self.windows += verdict.windows
        self.collisions += verdict.collision
        self._outcomes[_calls(test)][verdict.outcome] += 1
        if verdict.ignored:
            self._ignored.update(verdict.ignored)

    def count(self, outcome: Outcome) -> int:
        """How many tests came to this outcome so far."""
        return sum(counter[outcome] for counter in self._outcomes.values())

    def summary(self, interface: str, target: str, level: str, seconds: float, start_seconds: float) -> Summary:
        """The summary of what was counted so far; sets of which no test was judged yet are left out."""
        return Summary(
            interface=interface,
            target=target,
            level=level,
            counts=Counts.of({outcome: self.count(outcome) for outcome in Outcome}),
            windows=self.windows,
            seconds=seconds,
            start_seconds=start_seconds,
            sets=tuple(SetSummary(calls, Counts.of(counter)) for calls, counter in self._outcomes.items() if counter),
            ignored=dict(self._ignored),
            collisions=self.collisions,
        )
