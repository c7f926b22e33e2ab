"""What another kind of lock would gain: each change with what is assumed of it, and how much faster threads get by it.

A gain is the work that this many threads get done in a time after the change, divided by that before. It is found by
simulating both with the recorded lengths, gaps and conflicts. ("The Limits of Optimistic Concurrency", section 5, stops
at the number of processors that the sections could keep busy. What a program gains depends also on how much of its time
it spends in them.)

Of short sections, how long a lock takes to come from one thread to the next decides, which no count of instructions
tells. So it is a parameter, between two bounds, and a gain an interval. A gain may exceed the number of threads: by
what they lose as it is by handing the lock on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from commutant.documents import Measure, Part
from commutant.lock_view.record import Recording
from commutant.lock_view.study.classes import LockClass
from commutant.lock_view.study.simulation import HAND_OVERS, Policy, Shares, throughput
from commutant.lock_view.study.workload import SectionKind, SectionWorkload, workload_of

THREADS = (2, 8, 32)
"""For how many threads gains are predicted."""

PARTS = 16
"""Locks that one lock is split into by a hash of the datum."""

_READER_WRITER_HAND_OVERS = (1.0, 4.0)
"""What those of the C library's reader-writer lock cost, against the most of others: it sleeps, and belongs to who is
woken from then on."""
_READER_ENTRANCES = 2.5
"""What readers pay for their count, in and out, against a hand-over between threads that spin."""
_WORTH_COPIES = 0.05
"""A field on which alone so few pairs conflict is not what sections wait for."""
_LEAST_ADVISED = 1.05
"""A gain that is worth a change, and more than the simulation's scatter."""
_BYTES, _LINES = 0, 2  # places in GRANULARITIES_BYTES
_NEGLIGIBLE_LOAD = 0.01
"""Threads that spend less than this in sections, all together, hardly ever meet."""


class Gain(Part, frozen=True):
    """How many times the work gets done: at least and at most, by what a hand-over costs."""

    least: Measure
    most: Measure

    def __str__(self) -> str:
        """As `1.3 to 1.9`, or `1.3` where both are the same."""
        least, most = f"{self.least:.1f}", f"{self.most:.1f}"
        return least if least == most else f"{least} to {most}"


@dataclass(frozen=True, slots=True)
class Prediction:
    """A change of a lock, what is assumed of it, and its gain by number of threads."""

    change: str
    assumes: str
    gains: dict[int, Gain]

    @property
    def is_advised(self) -> bool:
        """Whether it gains with some number of threads, and loses with none, whatever a hand-over costs."""
        least = [gain.least for gain in self.gains.values()]
        return max(least) >= _LEAST_ADVISED and min(least) > 2 - _LEAST_ADVISED


def predictions(
    one: LockClass,
    record: Recording,
    threads: Sequence[int] = THREADS,
    hand_overs: tuple[float, float] = HAND_OVERS,
) -> list[Prediction]:
    """What each change would gain, the largest certain gain first; nothing where no two sections could be compared.

    `hand_overs` are the least and the most that a hand-over costs, in instructions.
    """
    workload = workload_of(one.locks, record)
    if workload is None:
        return []
    entrance = hand_overs[0]
    lock = Policy(_lock(workload))
    before = {
        (count, cost): throughput(workload, lock, count, hand_over=cost) for count in threads for cost in hand_overs
    }

    def prediction(change: str, assumes: str, policy: Policy) -> Prediction:
        def gain(count: int) -> Gain:
            if count * workload.hold_share < _NEGLIGIBLE_LOAD:
                return Gain(1.0, 1.0)
            least, most = hand_overs
            if policy.reserves:
                least, most = (times * most for times in _READER_WRITER_HAND_OVERS)
            after = {
                cost: throughput(workload, policy, count, hand_over=cost, entrance=entrance) for cost in (least, most)
            }
            # Threads that wait for less may spin where they slept, or sleep in both.
            pairs = [(hand_overs[0], most if policy.reserves else least), (hand_overs[1], least), (hand_overs[1], most)]
            found = [after[new] / before[count, old] for old, new in pairs]
            return Gain(min(found), max(found))

        return Prediction(change, assumes, {count: gain(count) for count in threads})

    found = [prediction(*change) for change in _changes(workload, one)]
    return sorted(found, key=lambda one: (not one.is_advised, -max(gain.least for gain in one.gains.values())))


def _changes(workload: SectionWorkload, one: LockClass) -> list[tuple[str, str, Policy]]:
    changes = [
        (
            "optimistic execution",
            "sections run at once (lock elision, transactions); of two that conflict on a line the later waits",
            _optimistic(workload, _LINES),
        ),
        (
            f"split by instance or hash ({PARTS} locks)",
            f"each datum has one of {PARTS} locks; sections on different data meet with a chance of 1 in {PARTS}",
            _optimistic(workload, _BYTES, otherwise=1 / PARTS),
        ),
    ]
    if any(not kind.writes and not kind.shared for kind in workload.kinds):
        changes += [
            (
                "reader-writer lock",
                "sections that wrote nothing become readers, which run together",
                Policy(
                    _lock_if(workload, lambda i, j: float(_writes(workload, i) or _writes(workload, j))),
                    entrances=_READER_ENTRANCES,
                    reserves=True,
                ),
            ),
            (
                "sequence lock",
                "sections that wrote nothing do not hold writers up; overtaken, they repeat",
                _seqlock(workload),
            ),
        ]
    groups = _groups(workload)
    if len(set(groups)) > 1:
        change = f"split by field group ({len(set(groups))} locks)"
        assumes = "callers whose sections never met on a byte get locks of their own"
        changes.append((change, assumes, Policy(_lock_if(workload, lambda i, j: float(groups[i] == groups[j])))))
    for found in one.fields[:1]:
        if found.pairs_on_it_alone >= _WORTH_COPIES * one.total(lambda lock: lock.field_pairs):
            share = _share_of_conflicts(found.pairs_on_it_alone, one)
            changes.append(_without(workload, found.name, share))
    if one.together and one.together.pairs >= _WORTH_COPIES * one.total(lambda lock: lock.field_pairs):
        share = _share_of_conflicts(one.together.pairs, one)
        changes.append(_without(workload, str(one.together), share))
    return changes


def _share_of_conflicts(pairs: int, one: LockClass) -> float:
    """Of the pairs that conflict, those that would not without what `pairs` conflict on alone; fields are known of some
    pairs only."""
    alone = pairs / one.total(lambda lock: lock.field_pairs)
    conflicting = one.total(lambda lock: lock.pairs.conflicting[_BYTES])
    return min(1.0, alone * one.total(lambda lock: lock.pairs.compared) / conflicting) if conflicting else 0.0


def _without(workload: SectionWorkload, name: str, share: float) -> tuple[str, str, Policy]:
    """Copies per core of a field or of several, and then optimistic execution of what is left."""
    assumes = "and optimistic execution of the rest; sums over cores are rare"
    return f"per-core copies of {name}", assumes, _optimistic(workload, _BYTES, remains=1 - share)


def _optimistic(workload: SectionWorkload, granularity: int, *, otherwise: float = 0.0, remains: float = 1.0) -> Policy:
    """Sections that conflict wait; as many conflict at all as were seen to. `remains` of the conflicts are left."""
    prone = workload.conflicting[granularity]

    def chance(i: int, j: int) -> float:
        both = prone[i] * prone[j]
        conflict = min(1.0, remains * workload.conflicts[granularity][i][j] / both) if both else 0.0
        return conflict + (1 - conflict) * otherwise

    return Policy(_lock_if(workload, chance), prone=prone, otherwise=otherwise)


def _lock(workload: SectionWorkload) -> Shares:
    return _lock_if(workload, lambda i, j: 1.0)


def _lock_if(workload: SectionWorkload, share: Callable[[int, int], float]) -> Shares:
    """Sections that the lock lets run together already do so after any change."""
    kinds = workload.kinds
    return [
        [0.0 if one.shared and other.shared else share(i, j) for j, other in enumerate(kinds)]
        for i, one in enumerate(kinds)
    ]


def _writes(workload: SectionWorkload, place: int) -> bool:
    return workload.kinds[place].writes


def _seqlock(workload: SectionWorkload) -> Policy:
    """A reader that arrives at a writer waits for it; a writer that arrives at a reader makes it start again."""
    kinds = workload.kinds
    waits = [[float(other.writes) for other in kinds] for _ in kinds]
    restarts = [[float(one.writes and not other.writes) for other in kinds] for one in kinds]
    return Policy(waits, restarts)


def _groups(workload: SectionWorkload) -> list[int]:
    """The group of each kind: callers whose sections ever conflicted are in one group."""
    kinds: Sequence[SectionKind] = workload.kinds
    groups = list(range(len(kinds)))

    def join(one: int, other: int) -> None:
        old, new = groups[one], groups[other]
        groups[:] = [new if group == old else group for group in groups]

    for i, one in enumerate(kinds):
        for j, other in enumerate(kinds):
            if one.caller == other.caller or workload.conflicts[_BYTES][i][j] > 0:
                join(i, j)
    return groups
