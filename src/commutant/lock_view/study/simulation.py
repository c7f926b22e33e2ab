"""Threads that take turns at locks: how much they get done, by what keeps sections apart.

Each thread computes for a while, then wants a section of some kind under some lock, waits for those that keep it out,
and executes it. What is between locks is taken to run in parallel. The difference between two *policies* is who waits
for whom, and what it costs to go from one thread to the next.

That costs a *hand-over*: from the moment that a section ends until one that waited for it begins, which is how long a
cache line takes to come over where threads spin, and a wake-up where they sleep. Until then no one holds the lock, so a
thread that comes back by then takes it at once. A thread that ends a section for which others wait spends a quarter of
a hand-over on telling them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate

from commutant.lock_view.study.workload import Length, SectionWorkload

SECTIONS = 3000
"""Sections that a simulation finishes: enough for two digits."""

HAND_OVERS = (80.0, 12000.0)
"""What a hand-over of a lock costs, in instructions that could have been executed in the meantime: at least (threads
that spin on two cores of one chip), and at most (threads that sleep and are woken). Measured with
bench/programs/lengths.c.
"""

TELLING = 0.25
"""What of a hand-over the thread spends that ends a section."""

Shares = Sequence[Sequence[float]]
"""How likely it is that a section of a kind (row) that arrives concerns one of a kind (column) that runs or waits."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What keeps sections of the same lock apart: an arriving section *waits* for an earlier one, or makes it *restart*
    once the arriving one has ended (a reader of a sequence lock that a writer overtakes).

    Where conflicts decide, they may be those of few sections: `prone` is the share of each kind that conflicts at all.
    A pair that is not prone on both sides waits with the chance `otherwise`. To enter a section together with others
    costs `entrances` times what is asked for each (the count of a reader-writer lock goes from one reader to the next).
    A lock that `reserves` belongs to whom it is handed to from then on, so no one is faster.
    """

    waits: Shares
    restarts: Shares | None = None
    prone: Sequence[float] | None = None
    otherwise: float = 0.0
    entrances: float = 0.0
    reserves: bool = False


@dataclass(slots=True, eq=False)
class _Section:
    thread: int
    kind: int
    instance: int
    length: float
    gap: float
    prone: bool
    apart: set[_Section] = field(default_factory=set)
    """Sections that are present and must not run with this one."""
    ends_at: float | None = None
    begins_at: float | None = None
    """When it will have been handed the lock, unless somebody is faster."""


def throughput(
    workload: SectionWorkload,
    policy: Policy,
    threads: int,
    *,
    hand_over: float = 0.0,
    entrance: float = 0.0,
    sections: int = SECTIONS,
) -> float:
    """Work that this many threads get done per instruction of time: how many of them are busy with what they are for.

    Work is what threads compute within sections and between them, the first time; neither waiting, hand-overs nor
    repetitions are. `hand_over` and `entrance` are in instructions.
    """
    return _Simulation(workload, policy, hand_over, entrance * policy.entrances).run(threads, sections)


class _Simulation:
    def __init__(self, workload: SectionWorkload, policy: Policy, hand_over: float, entrance: float) -> None:
        self._workload = workload
        self._policy = policy
        self._hand_over = hand_over
        self._entrance = entrance
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
        self._entrance *= self._queue_for_entrance(threads)
        for thread in range(threads):
            self._at(self._draw(self._workload.gap, thread) * self._threads[thread].random(), thread)
        done = 0
        work = now = 0.0
        while done < sections:
            now, _, event = heappop(self._events)
            if isinstance(event, int):
                self._arrive(now, event)
            elif event.ends_at == now:
                told = self._end(now, event)
                done += 1
                work += event.length + event.gap
                self._at(now + told + event.gap, event.thread)
            elif event.begins_at == now:
                event.begins_at = None
                if not any(other.ends_at is not None for other in event.apart):
                    self._start(now, event)
        return work / now if now else float(threads)

    def _queue_for_entrance(self, threads: int) -> float:
        """How often what it costs to enter is paid: once, or more where enough threads want the same line that it is
        always on its way; never by one that is alone."""
        if threads == 1:
            return 0.0
        alone = self._workload.gap.mean + sum(kind.share * kind.hold.mean for kind in self._workload.kinds)
        return min(threads - 1.0, max(1.0, threads * self._entrance / max(alone, 1.0)))

    def _at(self, time: float, event: int | _Section) -> None:
        """A thread wants a section then, or a section begins or ends."""
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
        gap = self._draw(self._workload.gap, thread)
        prone = draw.random() < (1.0 if self._policy.prone is None else self._policy.prone[kind])
        section = _Section(thread, kind, instance, length, gap, prone)
        for other in self._present:
            chance = self._policy.waits[kind][other.kind] if prone and other.prone else self._policy.otherwise
            if other.instance == instance and self._random.random() < chance:
                section.apart.add(other)
                other.apart.add(section)
        self._present.append(section)
        if not any(self._keeps_out(other) for other in section.apart):
            self._start(now, section)

    def _keeps_out(self, other: _Section) -> bool:
        return other.ends_at is not None or (self._policy.reserves and other.begins_at is not None)

    def _start(self, now: float, section: _Section) -> None:
        section.ends_at = now + section.length + self._entrance
        self._at(section.ends_at, section)
        if self._policy.restarts is None:
            return
        for other in self._present:
            if other is section or other.ends_at is None or other.instance != section.instance:
                continue
            if self._random.random() < self._policy.restarts[section.kind][other.kind]:
                other.ends_at = section.ends_at + other.length
                self._at(other.ends_at, other)

    def _end(self, now: float, section: _Section) -> float:
        """Gives what the thread spends on telling those that waited."""
        self._present.remove(section)
        told = 0.0
        for other in self._present:
            if section not in other.apart:
                continue
            other.apart.discard(section)
            if other.ends_at is not None or other.begins_at is not None or any(map(self._keeps_out, other.apart)):
                continue
            told = TELLING * self._hand_over
            other.begins_at = now + self._hand_over
            self._at(other.begins_at, other)
        return told
