"""Explores every path of a program over unknown values, by running it again for each.

A run follows a prefix of decisions and takes the true side of every branch behind it; the next one takes the other side
of the last branch whose other side is still to be explored. Paths come so in the order of a depth-first search, and
neighbours share most of their decisions: the program's steps (`Context.step`) before the first decision in which they
differ are not run again. Running the rest again costs less than copying states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from commutant.errors import UsageError
from commutant.symbolic.context import NOT_DETERMINISTIC, Context, Decision, Infeasible, install

T = TypeVar("T")

MAX_PATHS = 1_000_000


@dataclass(slots=True)
class Path(Generic[T]):
    """One path: the decisions taken, the program's result (None where the model's restrictions exclude the path)."""

    decisions: tuple[Decision, ...]
    feasible: bool
    result: T | None
    context: Context


def explore(program: Callable[[Context], T], max_paths: int = MAX_PATHS) -> Iterator[Path[T]]:
    """All paths of the program, excluded ones included; UsageError after `max_paths`.

    A yielded path's context, which is the current one, and what its steps have made stay valid until the next path is
    asked for: its values can be compared further, which refines this path only.
    """
    context = Context()
    prefix: tuple[Decision, ...] | None = ()
    count = 0
    while prefix is not None:
        before = install(context)
        try:
            context.go_back(prefix)
            feasible, result = True, None
            try:
                result = program(context)
            except Infeasible:
                feasible = False
            decisions = tuple(context.trail)
            if len(decisions) < len(prefix):
                raise UsageError(NOT_DETERMINISTIC)
            count += 1
            if count > max_paths:
                raise UsageError(
                    f"the model has more than {max_paths} paths for one set of calls: expected fewer branches"
                )
            yield Path(decisions, feasible, result, context)
        finally:
            install(before)
        prefix = _next_prefix(decisions)


def _next_prefix(decisions: tuple[Decision, ...]) -> tuple[Decision, ...] | None:
    """The decisions up to the last that was true, which becomes false; None if there is none: all is explored."""
    for position in range(len(decisions) - 1, -1, -1):
        literal, holds = decisions[position]
        if holds:
            return (*decisions[:position], Decision(literal, False))
    return None
