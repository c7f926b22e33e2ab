"""Whether a change saved the transfers that it was predicted to save: both runs counted by one measure.

Compared are the lines that the change is about, in tests whose transfers it was predicted to change: in BASE those with
what is changed, in NEW those with it or with what was next to it. Other lines come and go by noise. So this holds the
prediction of the layout against a real one; how near the measure is to processors, docs/guides/remedies.md says.

Two kernels of different versions differ by more than one change. So of a layout the tests in which both do the same are
counted apart: each core makes the same accesses, in the same order, to what is changed, and to what was next to it
where NEW still shares that. Where a change takes accesses away this is not asked: that they are gone is the outcome
itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from statistics import median

from commutant.mtrace import unpack_course
from commutant.remedy.change import Change
from commutant.remedy.savings import LAYOUTS
from commutant.remedy.traffic import Meeting, Traffic, Transfers

_LEAST = 0.005
"""Fewer transfers saved are none."""


@dataclass(frozen=True, slots=True)
class TransferTally:
    """The mean transfers of tests that a change is about, per round of their calls: before, as predicted, and as
    counted after it.

    `median_error` is that of the difference of the last two, test by test; in `right` of the `tests` the number went
    the way that was predicted.
    """

    tests: int
    before: Transfers
    predicted: Transfers
    counted: Transfers
    median_error: float
    right: int


@dataclass(frozen=True, slots=True)
class TransferProof:
    """What came of the transfers with N cores, in all tests that a change is about (`every`), and in those of
    them in which both runs do the same (`alike`; None if there are none, and where a change is no layout)."""

    cores: int
    every: TransferTally
    alike: TransferTally | None


def prove_transfers(base: Traffic, new: Traffic, changes: Sequence[Change]) -> TransferProof | None:
    """What came of the transfers; None if no test of both runs was predicted to have others than before."""
    tests = {test: one for test, one in _in_base(base, changes).items() if test in new.tests and one.is_changed}
    if not tests:
        return None
    is_layout = all(change.way in LAYOUTS for change in changes)
    for test, one in tests.items():
        _count(base, new, changes, test, one)
    alike = [one for one in tests.values() if is_layout and one.is_alike]
    return TransferProof(base.cores, _tally(list(tests.values())), _tally(alike) if alike else None)


@dataclass(slots=True)
class _Test:
    """The lines of a test that changes are about: what lies on them in BASE, and their transfers there, as predicted,
    and in NEW; and whether cores do the same there in both."""

    members: set[str] = field(default_factory=set)
    before: Transfers = field(default_factory=Transfers)
    predicted: Transfers = field(default_factory=Transfers)
    counted: Transfers = field(default_factory=Transfers)
    is_alike: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether it is predicted to have other transfers than before."""
        return max(map(abs, (self.before - self.predicted).ends)) >= _LEAST

    @property
    def is_right(self) -> bool:
        """Whether the number of transfers went the way that was predicted."""
        gain, fewer = self.before - self.predicted, self.before - self.counted
        return fewer.plain * gain.plain > 0 or max(abs(fewer.plain), abs(gain.plain)) < _LEAST


def _tally(tests: Collection[_Test]) -> TransferTally:
    nothing = Transfers()
    return TransferTally(
        len(tests),
        sum((one.before for one in tests), nothing) * (1 / len(tests)),
        sum((one.predicted for one in tests), nothing) * (1 / len(tests)),
        sum((one.counted for one in tests), nothing) * (1 / len(tests)),
        median(abs((one.predicted - one.counted).plain) for one in tests),
        sum(one.is_right for one in tests),
    )


def _in_base(base: Traffic, changes: Sequence[Change]) -> dict[str, _Test]:
    """The tests of BASE that have what is changed: what lies there, and the transfers before and as predicted."""
    tests: dict[str, _Test] = {}
    for number in base.touching(changes):
        lines = base.meetings[number].lines_of(_members(base.meetings[number], changes))
        before, predicted = base.cost_of(number, lines), base.cost_of(number, lines, changes)
        members = {name for at in lines for name in base.meetings[number].members(at)}
        for test, count in base.by_meeting[number].items():
            one = tests.setdefault(test, _Test())
            one.members |= members
            one.before += before * count
            one.predicted += predicted * count
    return tests


def _members(meeting: Meeting, changes: Sequence[Change]) -> set[str]:
    """The members of a meeting that changes are made to, or to a part of."""
    places = [place for change in changes for place in change.places]
    return {name for line in meeting.lines for name in line.fields.members_of(line.fields.mask_of(places))}


def _count(base: Traffic, new: Traffic, changes: Sequence[Change], test: str, one: _Test) -> None:
    """Adds what NEW has of a test, and whether cores do the same there in both."""
    met = [(number, new.meetings[number].lines_of(one.members)) for number in new.tests[test]]
    for number, lines in met:
        one.counted += new.cost_of(number, lines) * new.tests[test][number]
    changed = {name for number in base.tests[test] for name in _members(base.meetings[number], changes)}
    shared = {name for number, lines in met for at in lines for name in new.meetings[number].members(at)}
    # Lines without transfers are not kept, so there is nothing to compare of a line that was to have none.
    compared = one.members & (shared if max(one.predicted.ends) < _LEAST else changed | shared)
    one.is_alike = _deeds(base, test, compared) == _deeds(new, test, compared)


_Deed = tuple[int, str, tuple[int, ...]]
"""A core, a member, and the kinds of its accesses to it, in order."""


def _deeds(traffic: Traffic, test: str, members: Collection[str]) -> dict[_Deed, float]:
    """What cores do to members of objects, and how often."""
    deeds: dict[_Deed, float] = {}
    for number, count in traffic.tests[test].items():
        done: dict[tuple[int, str], list[int]] = {}
        meeting = traffic.meetings[number]
        for line, course in zip(meeting.lines, meeting.courses, strict=True):
            for access in unpack_course(course):
                mask = ((1 << access.size_bytes) - 1) << access.offset
                for name in line.fields.members_of(mask):
                    if name in members:
                        done.setdefault((access.core, name), []).append(access.kind)
        for (core, name), kinds in done.items():
            deed = core, name, tuple(kinds)
            deeds[deed] = deeds.get(deed, 0.0) + count
    return deeds
