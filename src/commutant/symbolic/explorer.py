"""Explores every path of a program over unknown values, by running it again for each.

A run follows a prefix of decisions and takes the true side of every branch after it; the next one takes the other side
of the last branch whose other side is still to be explored. Paths come so in the order of a depth-first search, and
neighbours share most of their decisions: the program's steps (`Context.step`) before the first decision in which they
differ are not run again. Running the rest again costs less than copying states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from commutant.support import UsageError
from commutant.symbolic.engine import Context, Decision, Infeasible, install

T = TypeVar("T")

MAX_PATHS = 1_000_000


class Path(Generic[T]):
    """One path: whether the model's restrictions admit it, and, if so, the program's result."""

    __slots__ = ("_decided", "context", "feasible", "result")

    def __init__(self, context: Context, decided: int, feasible: bool, result: T | None) -> None:
        self.context = context
        self.feasible = feasible
        self.result = result
        self._decided = decided

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions taken."""
        return self.context.decided(0, self._decided)


def explore(program: Callable[[Context], T], max_paths: int = MAX_PATHS) -> Iterator[Path[T]]:
    """All paths of the program, excluded ones included; UsageError after `max_paths`.

    A yielded path, its context, which is the current one, and what its steps have made stay valid until the next path
    is asked for: its values can be compared further, which refines this path only.
    """
    context = Context()
    count, is_left = 0, True
    while is_left:
        before = install(context)
        try:
            feasible, result = True, None
            try:
                result = program(context)
            except Infeasible:
                feasible = False
            decided = context.end_path()
            count += 1
            if count > max_paths:
                raise UsageError(
                    f"the model has more than {max_paths} paths for one set of calls: expected fewer branches"
                )
            yield Path(context, decided, feasible, result)
            is_left = context.next_path(decided)
        finally:
            install(before)
