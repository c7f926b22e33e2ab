"""The orders of a set of calls as a cube: its corners are the subsets, and each edge runs one call from one corner.

SIM commutativity (paper, sections 3.2 and 5.1): each call returns the same in every order, and every subset of the
calls reaches equivalent states whatever its order. Results and states are compared at every join, and the first
difference ends the walk. For a pair that is both orders; for more calls it is also every prefix of every permutation,
which is what makes the property monotonic.

Two calls that start from one corner and have nothing to do with each other do the same in either order, so the two
edges that close their square are known without a run, and so is that they end in one state.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

from commutant.lang.interface import Interface
from commutant.symbolic.effects import independent, transfer
from commutant.symbolic.state import clone

Corner = tuple[int, ...]
"""The calls that have run, in ascending order."""


class Run:
    """A call's run: the corner that it started from, what it returned, and the state that it left."""

    __slots__ = ("result", "start", "state")

    def __init__(self, start: Corner, result: Any, state: Interface) -> None:
        self.start = start
        self.result = result
        self.state = state


class Cube:
    """The orders of `count` calls from one initial state.

    `perform(index, state)` runs a call on a state that it may change and returns the result; `same_result` and
    `equivalent` compare. With `confirm`, calls run even where their result is known, and it is told both.
    """

    def __init__(
        self,
        initial: Interface,
        count: int,
        perform: Callable[[int, Interface], Any],
        same_result: Callable[[Any, Any], bool],
        equivalent: Callable[[Interface, Interface], bool],
        confirm: Callable[[Any, Any], None] | None = None,
    ) -> None:
        self._count = count
        self._perform = perform
        self._same_result = same_result
        self._equivalent = equivalent
        self._confirm = confirm
        self._states: dict[Corner, Interface] = {(): initial}
        self._runs: dict[tuple[Corner, int], Run] = {}
        self._independent: dict[tuple[int, int], bool] = {}

    def first_difference(self) -> tuple[int | None, Corner] | None:
        """The first call whose result, or (None) the subset whose state, depends on the order; None without one."""
        results: dict[int, Any] = {}
        everyone = range(self._count)
        for size in range(1, self._count + 1):
            for subset in combinations(everyone, size):
                for last in reversed(subset):
                    run = self._run(_without(subset, last), last)
                    if results.setdefault(last, run.result) is not run.result and not self._same_result(
                        results[last], run.result
                    ):
                        return last, subset
                    if not self._joins(subset, last):
                        return None, subset
        return None

    def _run(self, start: Corner, index: int) -> Run:
        """The call's run from this corner: one from an earlier corner, if what has run since is independent of it."""
        for other in start:
            before = _without(start, other)
            if self._are_independent(before, other, index):
                run = self._runs[before, index]
                if self._confirm is not None:
                    self._confirm(run.result, self._perform(index, clone(self._state(start))))
                break
        else:
            state = clone(self._state(start))
            run = Run(start, self._perform(index, state), state)
        self._runs[start, index] = run
        return run

    def _are_independent(self, start: Corner, left: int, right: int) -> bool:
        mine, theirs = self._runs[start, left], self._runs[start, right]
        key = (id(mine), id(theirs))
        known = self._independent.get(key)
        if known is None:
            known = self._independent[key] = independent(mine.state, theirs.state)
        return known

    def _joins(self, subset: Corner, last: int) -> bool:
        """Whether the state after the subset, with this call as its last, is the one that other orders lead to."""
        position = subset.index(last)
        earlier = subset[position + 1 :]
        if not earlier:
            return True
        if any(self._are_independent(_without(_without(subset, last), other), last, other) for other in earlier):
            return True
        return self._equivalent(clone(self._state(subset)), clone(self._arrival(subset, last)))

    def _state(self, corner: Corner) -> Interface:
        """The state at a corner, on the first way that led there."""
        if corner not in self._states:
            self._states[corner] = self._arrival(corner, corner[-1])
        return self._states[corner]

    def _arrival(self, corner: Corner, last: int) -> Interface:
        """The state at a corner on the way that ends with this call."""
        start = _without(corner, last)
        run = self._runs[start, last]
        if run.start == start:
            return run.state
        state: Interface = clone(self._state(start))
        transfer(run.state, state)
        return state


def _without(corner: Corner, index: int) -> Corner:
    return tuple([other for other in corner if other != index])
