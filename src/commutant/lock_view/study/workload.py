"""What threads do with the locks of a class, as a prediction needs it: how long, how often, and who conflicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from commutant.lock_view.record import GRANULARITIES_BYTES, KindRecord, LockRecord, Recording

INSTANCE_LIMIT = 256
"""Locks of a class that are distinguished; the rest is seldom used."""


@dataclass(frozen=True, slots=True)
class Length:
    """Lengths in instructions: their mean and their deviation from it."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, count: int, total: float, squares: float) -> Length:
        """From a sum and a sum of squares."""
        if not count:
            return cls(0.0, 0.0)
        mean = total / count
        return cls(mean, sqrt(max(0.0, squares / count - mean * mean)))


@dataclass(frozen=True, slots=True)
class SectionKind:
    """Sections that one caller begins, as a reader or not, and that write or not; `share`: of all sections."""

    caller: int
    shared: bool
    writes: bool
    share: float
    hold: Length


@dataclass(frozen=True, slots=True)
class SectionWorkload:
    """The sections of a class of locks.

    `conflicting[g][i]` is the share of sections of kind i that conflict with any other, and `conflicts[g][i][j]` the
    share of pairs of kinds i and j that conflict, both at granularity g (of GRANULARITIES_BYTES). `threads[t][i]` is
    the share of kind i of thread t's sections, the busiest thread first. `instances` are the shares of the locks of the
    class, the largest first.
    """

    kinds: tuple[SectionKind, ...]
    conflicting: tuple[tuple[float, ...], ...]
    conflicts: tuple[tuple[tuple[float, ...], ...], ...]
    threads: tuple[tuple[float, ...], ...]
    instances: tuple[float, ...]
    gap: Length

    @property
    def hold_share(self) -> float:
        """The share of a thread's instructions that it executes inside sections."""
        hold = sum(kind.share * kind.hold.mean for kind in self.kinds)
        return hold / (hold + self.gap.mean) if hold else 0.0


def workload_of(locks: Iterable[LockRecord], record: Recording) -> SectionWorkload | None:
    """The workload of locks of one class; None if no two sections were compared."""
    locks = sorted(locks, key=lambda lock: -lock.sections)
    sections = sum(kind.sections for lock in locks for kind in lock.kinds)
    if not sections or not any(lock.kind_pairs for lock in locks):
        return None
    merged: dict[tuple[int, bool, bool], list[KindRecord]] = defaultdict(list)
    for lock in locks:
        for kind in lock.kinds:
            merged[_key(kind)].append(kind)
    kinds = tuple(_merged(key, of_key, sections) for key, of_key in merged.items())
    places = {key: place for place, key in enumerate(merged)}
    used = _sections_by_instance(locks)
    granularities = range(len(GRANULARITIES_BYTES))
    return SectionWorkload(
        kinds,
        conflicting=tuple(tuple(_conflicting(of_key, size) for of_key in merged.values()) for size in granularities),
        conflicts=tuple(_conflicts(locks, places, granularity) for granularity in granularities),
        threads=_threads(locks, places),
        instances=tuple(count / sum(used) for count in used),
        gap=_gap(locks, sections, kinds, record),
    )


def _sections_by_instance(locks: list[LockRecord]) -> list[float]:
    """Of the locks that are used most; where statistics of several are together each has an equal part."""
    used: list[float] = []
    for lock in locks:
        used += [lock.sections / lock.instances] * min(lock.instances, INSTANCE_LIMIT)
    return sorted(used, reverse=True)[:INSTANCE_LIMIT]


def _key(kind: KindRecord) -> tuple[int, bool, bool]:
    return kind.caller, kind.shared, kind.writes


def _merged(key: tuple[int, bool, bool], kinds: list[KindRecord], sections: int) -> SectionKind:
    count = sum(kind.sections for kind in kinds)
    total = sum(kind.hold.total.instructions for kind in kinds)
    return SectionKind(*key, count / sections, Length.of(count, total, sum(kind.hold_squares for kind in kinds)))


def _threads(locks: list[LockRecord], places: dict[tuple[int, bool, bool], int]) -> tuple[tuple[float, ...], ...]:
    counts: dict[int, list[int]] = defaultdict(lambda: [0] * len(places))
    for lock in locks:
        for thread in lock.threads:
            for kind, sections in zip(lock.kinds, thread.sections, strict=False):
                counts[thread.thread][places[_key(kind)]] += sections
    ordered = sorted((known for known in counts.values() if sum(known)), key=lambda known: -sum(known))
    return tuple(tuple(count / sum(known) for count in known) for known in ordered)


def _conflicting(kinds: list[KindRecord], granularity: int) -> float:
    compared = sum(kind.compared for kind in kinds)
    return sum(kind.conflicting[granularity] for kind in kinds) / compared if compared else 1.0


def _gap(locks: list[LockRecord], sections: int, kinds: tuple[SectionKind, ...], record: Recording) -> Length:
    """Between two sections of one thread. For one lock that was measured; over many locks it follows from all that the
    threads executed, and is as scattered as chance makes it."""
    if sum(lock.instances for lock in locks) == 1:
        gaps = locks[0].gaps
        return Length.of(gaps.count, gaps.instructions, gaps.squares)
    hold = sum(kind.share * kind.hold.mean for kind in kinds)
    mean = max(0.0, record.instructions / sections - hold)
    return Length(mean, mean)


def _conflicts(
    locks: list[LockRecord], places: dict[tuple[int, bool, bool], int], granularity: int
) -> tuple[tuple[float, ...], ...]:
    """Kinds that never met are taken for as dependent as all that met are on average."""
    compared: dict[tuple[int, int], int] = defaultdict(int)
    conflicting: dict[tuple[int, int], int] = defaultdict(int)
    for lock in locks:
        own = [places[_key(kind)] for kind in lock.kinds]
        for pair in lock.kind_pairs:
            one, other = sorted(own[kind] for kind in pair.kinds)
            compared[one, other] += pair.compared
            conflicting[one, other] += pair.conflicting[granularity]
    average = sum(conflicting.values()) / max(1, sum(compared.values()))

    def share(one: int, other: int) -> float:
        pair = (min(one, other), max(one, other))
        return conflicting[pair] / compared[pair] if compared.get(pair) else average

    return tuple(tuple(share(one, other) for other in range(len(places))) for one in range(len(places)))
