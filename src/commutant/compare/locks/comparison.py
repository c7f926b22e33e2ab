"""Two recordings of locks side by side, and the document of it: locks are matched by their name and kind.

How often threads met differs from run to run, and a recording may be longer than the other. So waits are compared per
instruction of work, and a difference that chance makes is none. A change moves lines of the source. So functions and
data are matched without the lines in their names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Annotated, Literal

from msgspec import Meta

from commutant.documents import Count, Document, Measure, Part, Percent
from commutant.lock_view.shown import Caller, LockEntry, LocksDocument
from commutant.support import UsageError, plural, safe_text

LEAST_CHANGE = 0.1
"""Waits changed if by more than this part: two recordings of one program differ a little."""

LEAST_POINTS = 10.0
"""Sections became more or less disjoint if this many more or fewer of 100 pairs are."""

_DEVIATIONS = 2
"""Counts that differ by no more than this many standard deviations differ by chance."""

_BYTES = "1"
"""The granularity that tables show."""

_LINE = re.compile(r" \([^()]*:\d+\)")
"""Where a function stands in its file, as a name has it: `push (queue.c:8)`."""

Change = Literal["less", "alike", "more"]


class LockFigures(Part, frozen=True, kw_only=True):
    """What one recording says of a class of locks, as in the document of `commutant locks`; `held_percent` is of all
    work, the instructions but those of waiting."""

    instances: Count
    acquired: Count
    contended: Count
    wait_total_nanoseconds: Count
    hold_total_instructions: Count
    held_percent: Measure | None
    independence_percent: Percent | None
    speed_up: dict[str, Measure | None]


class ChangedCaller(Part, frozen=True):
    """A function whose sections became more or less disjoint: the percentage of pairs with them that touch disjoint
    data, in BASE and in NEW, over all its places that take the lock, weighted by their sections."""

    name: str
    before: Percent
    after: Percent


class ComparedLock(Part, frozen=True, kw_only=True):
    """A class of locks that both recordings have.

    `waiting` is that of threads for the lock, per instruction of work. `disjoint` says whether more or fewer pairs of
    sections touch disjoint data; null where one recording had none to compare. `callers` are the functions of which
    that is so. Of the data that sections conflict on, `fields_went` are in BASE alone, `fields_appeared` in NEW
    alone; none are named where a recording had no sections to compare.
    """

    name: str
    family: str
    before: LockFigures
    after: LockFigures
    waiting: Change
    disjoint: Change | None
    callers: tuple[ChangedCaller, ...]
    fields_went: tuple[str, ...]
    fields_appeared: tuple[str, ...]


class OneSidedLock(Part, frozen=True):
    """A class of locks that one recording alone has."""

    name: str
    family: str
    figures: LockFigures


class ComparedRecording(Part, frozen=True, kw_only=True):
    """BASE or NEW, a recording: `classes` counts all classes of locks, `listed` those that the recording tells of.

    `contended` and `wait_total_nanoseconds` are sums over the classes that are listed.
    """

    path: str
    kernel: Annotated[str | None, Meta(description="The kernel's release; null for a program.")]
    threads: Count
    work_instructions: Count
    classes: Count
    listed: Count
    contended: Count
    wait_total_nanoseconds: Count
    held_percent: Measure | None
    independence_percent: Percent | None
    speed_up: dict[str, Measure | None]
    verdict: str

    @property
    def title(self) -> str:
        """What it is, for people."""
        return safe_text(f"{self.path}, Linux {self.kernel}" if self.kernel is not None else self.path)

    @property
    def counts(self) -> str:
        """How much was recorded."""
        listed = f", {self.listed:,} of them listed (`commutant locks --top` lists more)"
        return (
            f"{plural(self.threads, 'thread')}, {plural(self.work_instructions, 'instruction')} of work, "
            f"{plural(self.classes, 'class', 'classes')} of locks{listed if self.listed < self.classes else ''}"
        )


class LockComparisonDocument(Document, frozen=True, kw_only=True):
    """Two recordings of locks, compared by the names of the locks, those whose waits changed most first."""

    kind: Literal["locks"] = "locks"
    base: ComparedRecording
    new: ComparedRecording
    locks: tuple[ComparedLock, ...]
    only_base: tuple[OneSidedLock, ...]
    only_new: tuple[OneSidedLock, ...]

    def waiting(self, change: Change) -> list[ComparedLock]:
        """The locks that threads wait for less, alike or more."""
        return [lock for lock in self.locks if lock.waiting == change]

    def disjoint(self, change: Change) -> list[ComparedLock]:
        """The locks of which fewer, as many or more pairs of sections touch disjoint data."""
        return [lock for lock in self.locks if lock.disjoint == change]


@dataclass(frozen=True, slots=True)
class _Side:
    """A recording with its locks by name and kind."""

    recording: LocksDocument
    locks: dict[tuple[str, str], LockEntry]

    @classmethod
    def of(cls, path: str, recording: LocksDocument) -> _Side:
        locks: dict[tuple[str, str], LockEntry] = {(lock.name, lock.family): lock for lock in recording.locks}
        if len(locks) < len(recording.locks):
            raise UsageError(f"{path}: expected each lock once, as `commutant locks` writes them; one is there twice")
        return cls(recording, locks)

    @property
    def work(self) -> int:
        return max(0, self.recording.instructions - self.recording.waiting_instructions)

    def figures(self, lock: LockEntry) -> LockFigures:
        return LockFigures(
            instances=lock.instances,
            acquired=lock.acquired,
            contended=lock.contended,
            wait_total_nanoseconds=lock.wait_total_nanoseconds,
            hold_total_instructions=lock.hold_total_instructions,
            held_percent=100.0 * lock.hold_total_instructions / self.work if self.work else None,
            independence_percent=lock.independence_percent.get(_BYTES),
            speed_up=lock.speed_up,
        )


def compare_locks(base: tuple[str, LocksDocument], new: tuple[str, LocksDocument]) -> LockComparisonDocument:
    """Compares two recordings, each with its path or another name; raises UsageError for a kernel and a program."""
    kinds = [f"{path} is of a {'program' if one.kernel is None else 'kernel'}" for path, one in (base, new)]
    if (base[1].kernel is None) != (new[1].kernel is None):
        raise UsageError(f"{' and '.join(kinds)}: expected two recordings of programs or two of kernels")
    old, now = _Side.of(*base), _Side.of(*new)
    scale = now.work / old.work if old.work and now.work else 1.0
    both = [_compared(lock, now.locks[key], old, now, scale) for key, lock in old.locks.items() if key in now.locks]
    return LockComparisonDocument(
        base=_recording(base[0], old),
        new=_recording(new[0], now),
        locks=tuple(sorted(both, key=partial(_rank, scale=scale))),
        only_base=_only(old, now),
        only_new=_only(now, old),
    )


def _recording(path: str, side: _Side) -> ComparedRecording:
    recording = side.recording
    return ComparedRecording(
        path=path,
        kernel=recording.kernel.release if recording.kernel else None,
        threads=recording.threads,
        work_instructions=side.work,
        classes=recording.classes,
        listed=len(recording.locks),
        contended=sum(lock.contended for lock in recording.locks),
        wait_total_nanoseconds=sum(lock.wait_total_nanoseconds for lock in recording.locks),
        held_percent=recording.held_percent,
        independence_percent=recording.independence_percent,
        speed_up=recording.speed_up,
        verdict=recording.verdict.text,
    )


def _compared(before: LockEntry, after: LockEntry, old: _Side, now: _Side, scale: float) -> ComparedLock:
    one, other = old.figures(before), now.figures(after)
    disjoint = _disjoint(one.independence_percent, other.independence_percent)
    went, appeared = ((), ()) if disjoint is None else _differing(before, after)
    return ComparedLock(
        name=before.name,
        family=before.family,
        before=one,
        after=other,
        waiting=_waiting(one, other, scale),
        disjoint=disjoint,
        callers=tuple(_callers(before, after)),
        fields_went=went,
        fields_appeared=appeared,
    )


def _rank(lock: ComparedLock, scale: float) -> tuple[float, int, str]:
    change = abs(lock.after.wait_total_nanoseconds - scale * lock.before.wait_total_nanoseconds)
    return -change, -lock.before.hold_total_instructions - lock.after.hold_total_instructions, lock.name


def _only(side: _Side, other: _Side) -> tuple[OneSidedLock, ...]:
    alone = [lock for key, lock in side.locks.items() if key not in other.locks]
    alone.sort(key=lambda lock: (-lock.wait_total_nanoseconds, -lock.hold_total_instructions, lock.name))
    return tuple(OneSidedLock(lock.name, lock.family, side.figures(lock)) for lock in alone)


def _waiting(before: LockFigures, after: LockFigures, scale: float) -> Change:
    """By how often threads waited and by how long, both in the same direction and by more than chance."""
    expected = before.contended * scale
    if abs(after.contended - expected) <= _DEVIATIONS * sqrt(after.contended + expected * scale):
        return "alike"
    times = _change(expected, after.contended)
    length = _change(before.wait_total_nanoseconds * scale, after.wait_total_nanoseconds)
    return times if times == length else "alike"


def _change(before: float, after: float) -> Change:
    if abs(after - before) <= LEAST_CHANGE * max(before, after):
        return "alike"
    return "less" if after < before else "more"


def _disjoint(before: float | None, after: float | None) -> Change | None:
    if before is None or after is None:
        return None
    if abs(after - before) < LEAST_POINTS:
        return "alike"
    return "less" if after < before else "more"


def _differing(before: LockEntry, after: LockEntry) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The data that sections conflict on in the one and not in the other recording, and the other way round."""
    old, now = (dict.fromkeys(_LINE.sub("", found.name) for found in lock.fields) for lock in (before, after))
    return tuple(name for name in old if name not in now), tuple(name for name in now if name not in old)


def _callers(before: LockEntry, after: LockEntry) -> Iterator[ChangedCaller]:
    """Functions of both, in the order of BASE, which is by the time that they held the lock."""
    now = _by_function(after)
    for name, old in _by_function(before).items():
        new = now.get(name)
        if new is not None and _disjoint(old, new) != "alike":
            yield ChangedCaller(name, old, new)


def _by_function(lock: LockEntry) -> dict[str, float]:
    """The independence of each function's sections, of those functions whose sections were compared."""
    places: dict[str, list[Caller]] = defaultdict(list)
    for caller in lock.callers:
        if caller.independence_percent is not None and caller.sections:
            places[_LINE.sub("", caller.name)].append(caller)
    return {name: _mean(callers) for name, callers in places.items()}


def _mean(callers: list[Caller]) -> float:
    weighed = sum((caller.independence_percent or 0.0) * caller.sections for caller in callers)
    return min(100.0, weighed / sum(caller.sections for caller in callers))
