"""Whether a change saved the transfers that it was predicted to save: both runs counted by one measure.

Compared are the objects of the types that the change is about, in tests whose transfers it was predicted to change:
other objects come and go by noise. So this holds the prediction of the layout against a real one; how near the measure
is to processors, docs/guides/remedies.md says.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

from commutant.remedy.change import Change
from commutant.remedy.traffic import Traffic, Transfers

_LEAST = 0.005
"""Fewer transfers saved are none."""


@dataclass(frozen=True, slots=True)
class TransferProof:
    """The mean transfers of the tests that a change is about: before, as predicted, and as counted after it.

    `median_error` is that of the difference of the last two, test by test; in `right` of the `tests` the number went
    the way that was predicted.
    """

    cores: int
    tests: int
    before: Transfers
    predicted: Transfers
    counted: Transfers
    median_error: float
    right: int


def prove_transfers(base: Traffic, new: Traffic, changes: Sequence[Change]) -> TransferProof | None:
    """What came of the transfers; None if no test of both runs was predicted to have others than before."""
    saved: dict[str, Transfers] = {}
    holders: set[str] = set()
    for number in base.touching(changes):
        holders.update(line.fields.holder for line in base.meetings[number].lines)
        ((after,),) = base.after([number], [changes])
        for test, count in base.by_meeting[number].items():
            saved[test] = saved.get(test, Transfers()) + (base.before[number] - after) * count
    tests = [test for test in saved if test in new.tests and max(map(abs, saved[test].ends)) >= _LEAST]
    if not tests:
        return None
    before, counted = _by_test(base, holders), _by_test(new, holders)
    nothing = Transfers()
    mean = 1 / len(tests)
    sums = (nothing, nothing, nothing)
    errors, right = [], 0
    for test in tests:
        was, now, gain = before.get(test, nothing), counted.get(test, nothing), saved[test]
        sums = (sums[0] + was * mean, sums[1] + (was - gain) * mean, sums[2] + now * mean)
        errors.append(abs((was - gain - now).plain))
        right += (was - now).plain * gain.plain > 0 or max(abs((was - now).plain), abs(gain.plain)) < _LEAST
    return TransferProof(base.cores, len(tests), *sums, median(errors), right)


def _by_test(traffic: Traffic, holders: Collection[str]) -> dict[str, Transfers]:
    """The transfers of objects of some types, by test."""
    found: dict[str, Transfers] = {}
    for number, meeting in enumerate(traffic.meetings):
        if any(line.fields.holder in holders for line in meeting.lines):
            for test, count in traffic.by_meeting[number].items():
                found[test] = found.get(test, Transfers()) + traffic.before[number] * count
    return found
