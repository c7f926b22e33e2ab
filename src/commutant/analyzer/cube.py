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
from functools import cache, partial
from itertools import combinations
from typing import Any, NamedTuple

from commutant.guard import ChoiceRefused
from commutant.lang import Interface
from commutant.symbolic import clone, current, independent, transfer

Corner = int
"""The calls that have run: a bit for each."""

Place = tuple[Corner, int]
"""Where a call runs: the corner that it starts from, and the call."""

Difference = tuple[int | None, tuple[int, ...]]
"""A call whose result, or (None) a subset whose state, depends on the order."""

NO_DIFFERENCE: Difference = (None, ())
"""Ends the walk before its last edge: none is left that could differ."""

REFUSED: Difference = (-1, ())
"""Ends the walk where a choice is not allowed."""


class Square(NamedTuple):
    """A face of the cube that an edge closes: `run` is the same call's run from its lowest corner, `left` and `right`
    are both runs from there, in the order of the calls."""

    run: Place
    left: Place
    right: Place


class Edge(NamedTuple):
    """One call, `last`, from one corner to another. `squares` are the faces of the cube that it closes. Over those in
    `joined` an edge before it leads to the same end; `is_first`: none does."""

    start: Corner
    last: int
    end: Corner
    squares: tuple[Square, ...]
    joined: tuple[Square, ...]
    is_first: bool


@cache
def _edges(count: int) -> tuple[Edge, ...]:
    """All edges of the cube of this many calls but those from its first corner, in the order in which they are
    walked."""
    edges = []
    for size in range(2, count + 1):
        for calls in combinations(range(count), size):
            end = sum(1 << call for call in calls)
            for last in reversed(calls):
                start = _without(end, last)
                squares = {other: _square(_without(start, other), last, other) for other in calls if other != last}
                joined = tuple(square for other, square in squares.items() if other > last)
                edges.append(Edge(start, last, end, tuple(squares.values()), joined, last == calls[-1]))
    return tuple(edges)


@cache
def _pairs(count: int) -> tuple[tuple[Place, Place], ...]:
    """All pairs of runs from the first corner."""
    return tuple(((0, left), (0, right)) for left, right in combinations(range(count), 2))


def _square(lowest: Corner, last: int, other: int) -> Square:
    return Square((lowest, last), (lowest, min(last, other)), (lowest, max(last, other)))


class CallRun:
    """A call's run: the corner that it started from, what it returned, and the state that it left."""

    __slots__ = ("result", "start", "state")

    def __init__(self, start: Corner, result: Any, state: Interface) -> None:
        self.start = start
        self.result = result
        self.state = state


class Cube:
    """The orders of `count` calls from one initial state.

    `perform(index, start, state)` runs a call from a corner on a state that it may change and returns the result;
    `same_result` and `equivalent` compare. With `confirm`, calls run even where their result is known, and it is given
    both.
    """

    def __init__(
        self,
        initial: Interface,
        count: int,
        perform: Callable[[int, Corner, Interface], Any],
        same_result: Callable[[Any, Any], bool],
        equivalent: Callable[[Interface, Interface], bool],
        confirm: Callable[[Any, Any], None] | None = None,
    ) -> None:
        self._count = count
        self._perform = perform
        self._same_result = same_result
        self._equivalent = equivalent
        self._confirm = confirm
        self._states: dict[Corner, Interface] = {0: initial}
        self._runs: dict[Place, CallRun] = {}
        self._independent: dict[tuple[CallRun, CallRun], bool] = {}

    def steps(self) -> list[Callable[[], Difference | None]]:
        """The walk in steps (`Context.first_of`); what the first tells that tells something is the first call whose
        result, or (None) the subset whose state, depends on the order, or NO_DIFFERENCE."""
        walk: list[Callable[[], Difference | None]] = [partial(self._begin, index) for index in range(self._count)]
        if self._count > 1:
            walk.append(self._none_if_strangers)
        for edge in _edges(self._count):
            walk += [partial(self._run, edge), partial(self._difference, edge)]
        return walk

    def first_results(self) -> list[Any]:
        """What the calls have returned that have run from the initial state."""
        return [run.result for (start, _), run in self._runs.items() if not start]

    def first_ends(self) -> list[Interface]:
        """The states that single calls left, of those that have run from the initial state."""
        return [run.state for (start, _), run in self._runs.items() if not start]

    def _begin(self, index: int) -> Difference | None:
        """Runs a call from the initial state. Of calls that have nothing to do with each other this is noted at once:
        it holds whatever those after them decide."""
        state = clone(self._states[0])
        try:
            run = CallRun(0, self._perform(index, 0, state), state)
        except ChoiceRefused:
            return REFUSED
        put = current().put
        put(self._runs, (0, index), run)
        if index < self._count - 1:
            for other in range(index):
                before = self._runs[0, other]
                if independent(before.state, state):
                    put(self._independent, (before, run), True)
        return None

    def _none_if_strangers(self) -> Difference | None:
        """Ends the walk where no call has anything to do with another: all that is to come would be known."""
        if self._confirm is not None:
            return None
        for left, right in _pairs(self._count):
            if not self._are_independent(left, right):
                return None
        return NO_DIFFERENCE

    def _run(self, edge: Edge) -> Difference | None:
        """Runs the call from this corner; not if what has run since an earlier corner is independent of it."""
        index, start = edge.last, edge.start
        try:
            for known, left, right in edge.squares:
                if self._are_independent(left, right):
                    run = self._runs[known]
                    if self._confirm is not None:
                        self._confirm(run.result, self._perform(index, start, clone(self._state(start))))
                    break
            else:
                state = clone(self._state(start))
                run = CallRun(start, self._perform(index, start, state), state)
        except ChoiceRefused:
            return REFUSED
        current().put(self._runs, (start, index), run)
        return None

    def _difference(self, edge: Edge) -> Difference | None:
        """What a caller could tell apart at the end of this edge from what came at the ends of those before."""
        first, result = self._runs[0, edge.last].result, self._runs[edge.start, edge.last].result
        if first is not result and not self._same_result(first, result):
            return edge.last, self._calls_of(edge.end)
        return None if self._joins(edge) else (None, self._calls_of(edge.end))

    def _are_independent(self, left: Place, right: Place) -> bool:
        runs = self._runs[left], self._runs[right]
        known = self._independent.get(runs)
        if known is None:
            known = independent(runs[0].state, runs[1].state)
            current().put(self._independent, runs, known)
        return known

    def _joins(self, edge: Edge) -> bool:
        """Whether the state at the end of the edge is the one that the edges before led to."""
        if edge.is_first:
            return True
        for _, left, right in edge.joined:
            if self._are_independent(left, right):
                return True
        return self._equivalent(clone(self._state(edge.end)), clone(self._arrival(edge.end, edge.last)))

    def _state(self, corner: Corner) -> Interface:
        """The state at a corner, on the first way that led there."""
        if corner not in self._states:
            current().put(self._states, corner, self._arrival(corner, corner.bit_length() - 1))
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

    def _calls_of(self, corner: Corner) -> tuple[int, ...]:
        return tuple([call for call in range(self._count) if corner >> call & 1])


def _without(corner: Corner, call: int) -> Corner:
    return corner & ~(1 << call)
