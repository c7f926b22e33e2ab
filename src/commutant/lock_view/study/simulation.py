"""Threads that take turns at locks: how many sections they finish, by what keeps sections apart.

Each thread computes for a while, then wants a section of some kind under some lock, waits for those that keep it out,
and executes it. What is between locks is taken to run in parallel, and to take a lock costs nothing: the difference
between two *policies* is only who waits for whom.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate

from commutant.lock_view.study.workload import Length, Workload

SECTIONS = 3000
"""Sections that a simulation finishes: enough for two digits."""

Shares = Sequence[Sequence[float]]
"""How likely it is that a section of a kind (row) that arrives concerns one of a kind (column) that runs or waits."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What keeps sections of the same lock apart: an arriving section *waits* for an earlier one, or makes it *restart*
    once the arriving one has ended (a reader of a sequence lock that a writer overtakes).

    Where conflicts decide, they may be those of few sections: `prone` is the share of each kind that conflicts at all.
    A pair that is not prone on both sides waits with the chance `otherwise`.
    """

    waits: Shares
    restarts: Shares | None = None
    prone: Sequence[float] | None = None
    otherwise: float = 0.0


@dataclass(slots=True, eq=False)
class _Section:
    thread: int
    kind: int
    instance: int
    length: float
    prone: bool
    blockers: set[_Section] = field(default_factory=set)
    ends_at: float | None = None


def throughput(workload: Workload, policy: Policy, threads: int, *, sections: int = SECTIONS) -> float:
    """Sections that so many threads finish per instruction of time."""
    return _Simulation(workload, policy).run(threads, sections)


class _Simulation:
    def __init__(self, workload: Workload, policy: Policy) -> None:
        self._workload = workload
        self._policy = policy
        # Each thread has draws of its own, and so does the same under each policy: what differs is who waits.
        self._threads: list[random.Random] = []
        self._random = random.Random(0)
        self._kinds = [list(accumulate(shares)) for shares in workload.threads]
        self._instances = list(accumulate(workload.instances))
        self._events: list[tuple[float, int, int | _Section]] = []
        self._count = 0
        self._present: list[_Section] = []

    def run(self, threads: int, sections: int) -> float:
        self._threads = [random.Random(thread) for thread in range(threads)]
        for thread in range(threads):
            self._at(self._draw(self._workload.gap, thread) * self._threads[thread].random(), thread)
        done = 0
        now = 0.0
        while done < sections:
            now, _, event = heappop(self._events)
            if isinstance(event, int):
                self._arrive(now, event)
            elif event.ends_at == now:
                self._end(now, event)
                done += 1
                self._at(now + self._draw(self._workload.gap, event.thread), event.thread)
        return done / now if now else float("inf")

    def _at(self, time: float, event: int | _Section) -> None:
        """A thread wants a section then, or a section ends."""
        self._count += 1
        heappush(self._events, (time, self._count, event))

    def _draw(self, length: Length, thread: int) -> float:
        if length.deviation < 0.05 * length.mean or length.mean <= 0:
            return length.mean
        shape = (length.mean / length.deviation) ** 2
        return self._threads[thread].gammavariate(shape, length.mean / shape)

    def _arrive(self, now: float, thread: int) -> None:
        draw = self._threads[thread]
        kinds = self._kinds[thread % len(self._kinds)]
        kind = draw.choices(range(len(kinds)), cum_weights=kinds)[0]
        instance = draw.choices(range(len(self._instances)), cum_weights=self._instances)[0]
        length = max(1.0, self._draw(self._workload.kinds[kind].hold, thread))
        prone = draw.random() < (1.0 if self._policy.prone is None else self._policy.prone[kind])
        section = _Section(thread, kind, instance, length, prone)
        for other in self._present:
            chance = self._policy.waits[kind][other.kind] if prone and other.prone else self._policy.otherwise
            if other.instance == instance and self._random.random() < chance:
                section.blockers.add(other)
        self._present.append(section)
        if not section.blockers:
            self._start(now, section)

    def _start(self, now: float, section: _Section) -> None:
        section.ends_at = now + section.length
        self._at(section.ends_at, section)
        if self._policy.restarts is None:
            return
        for other in self._present:
            if other is section or other.ends_at is None or other.instance != section.instance:
                continue
            if self._random.random() < self._policy.restarts[section.kind][other.kind]:
                other.ends_at = section.ends_at + other.length
                self._at(other.ends_at, other)

    def _end(self, now: float, section: _Section) -> None:
        self._present.remove(section)
        for other in self._present:
            if section in other.blockers:
                other.blockers.discard(section)
                if not other.blockers:
                    self._start(now, other)
