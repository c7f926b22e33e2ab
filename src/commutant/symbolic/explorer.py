"""Explores every path of a program over unknown values, by running it again for each.

A run follows a prefix of decisions and takes the true side of every branch behind it; each such branch leaves its other
side to be explored. Running again costs less than copying states, and a path is its list of decisions. Paths come in
the order of a depth-first search, so that the decisions of neighbours share a prefix.
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

    The context of a yielded path stays valid, and is the current one, until the next is asked for: its values can be
    compared further, which refines this path only.
    """
    pending: list[tuple[Decision, ...]] = [()]
    count = 0
    while pending:
        prefix = pending.pop()
        context = Context(prefix)
        before = install(context)
        try:
            feasible, result = True, None
            try:
                result = program(context)
            except Infeasible:
                feasible = False
            decisions = tuple(context.trail)
            if len(decisions) < len(prefix):
                raise UsageError(NOT_DETERMINISTIC)
            for position in range(len(prefix), len(decisions)):
                literal, holds = decisions[position]
                pending.append((*decisions[:position], Decision(literal, not holds)))
            count += 1
            if count > max_paths:
                raise UsageError(
                    f"the model has more than {max_paths} paths for one set of calls: expected fewer branches"
                )
            yield Path(decisions, feasible, result, context)
        finally:
            install(before)
