"""Which piece of work each process takes next: neighbours share much, so a process stays among them.

Sets of calls that have calls in common meet the same states, and what a process has found out about a state it knows
from then on. So processes walk in pairs, towards each other along a stretch of the pieces, and where they meet nothing
is left. Of the next few pieces each takes the most expensive, so that the last ones are cheap, and pieces that are a
large part of a process's share are taken first, by any process that comes. Who has come to the end helps where most is
left.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, islice

NEXT_FEW = 4
"""A process takes the most expensive of this many pieces."""

LARGE_PART = 1 / 8
"""A piece is large if it takes more than this part of a process's share of the work."""


class Neighbours:
    """Pieces in an order in which neighbours share much, with what each is expected to cost, for this many workers.

    Made before the workers are forked, which share it.
    """

    def __init__(self, order: Sequence[int], costs: Sequence[float], workers: int) -> None:
        context = multiprocessing.get_context("fork")
        self._lock = context.Lock()
        self._entered = context.RawValue("i", 0)
        self._taken = context.RawArray("b", len(costs))  # guarded by the lock, as is the counter before it
        self._costs = costs
        share = sum(costs) / workers
        self._expensive = sorted([n for n in order if costs[n] > share * LARGE_PART], key=lambda n: -costs[n])
        self._stretches = in_stretches(order, costs, (workers + 1) // 2)

    def enter(self) -> int:
        """The number of a worker, from 0."""
        with self._lock:
            self._entered.value += 1
            return int(self._entered.value) - 1

    @contextmanager
    def closed(self) -> Iterator[None]:
        """No one enters or takes a piece until it ends."""
        with self._lock:
            yield

    def take(self, worker: int) -> int:
        """The piece that a worker does next; it asks no more often than there are pieces."""
        with self._lock:
            number = self._next(worker)
            self._taken[number] = True
            return number

    @property
    def taken(self) -> set[int]:
        """The pieces that have been taken so far, done or not."""
        return {number for number, taken in enumerate(self._taken) if taken}

    def _next(self, worker: int) -> int:
        for expensive in self._left(self._expensive):
            return expensive
        own = self._stretches[worker // 2 % len(self._stretches)]
        if next(self._left(own), None) is None:
            own = max(self._stretches, key=self._cost_left)
        from_its_end = own if worker % 2 == 0 else reversed(own)
        return max(islice(self._left(from_its_end), NEXT_FEW), key=self._costs.__getitem__)

    def _cost_left(self, pieces: Sequence[int]) -> float:
        return sum([self._costs[number] for number in self._left(pieces)])

    def _left(self, pieces: Iterator[int] | Sequence[int]) -> Iterator[int]:
        return (number for number in pieces if not self._taken[number])


def in_stretches(order: Sequence[int], costs: Sequence[float], count: int) -> list[list[int]]:
    """The pieces in this many stretches of about the same cost; no cost may be below 0, nor all be 0."""
    stretches: list[list[int]] = [[] for _ in range(count)]
    *before, total = accumulate([costs[number] for number in order], initial=0.0)
    for number, cost_before in zip(order, before, strict=True):
        stretches[min(int(count * cost_before / total), count - 1)].append(number)
    return stretches
