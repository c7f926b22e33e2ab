"""Equivalence classes of commutative states: on a commutative path, which values are equal and which are not?

One path still leaves patterns open that reach an implementation in different ways. Conflict coverage (paper, section
5.2) makes one test per pattern, and enumerating patterns is more of the same search: at a commutative leaf, decide what
is still open; each leaf below is one class.

The levels, each including the one before:

- `path`: nothing more is decided; one test per path. What the path leaves open is taken to be different.
- `conflict`: which touched entries of maps exist, and, per sort, which of the touched values are equal: arguments, keys
  of touched entries, and what is stored under those that exist. Integer keys of one map need no more: a path has
  compared them. Contents are not compared.
- `full`: flags (boolean arguments and contents), whether the path looks at them or not, and which contents are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from commutant.analyzer.commute import Outcome
from commutant.lang.interface import Interface
from commutant.lang.types import Struct, Time, struct_fields
from commutant.symbolic import BoolValue, MapContent, SortValue, SymbolicMap, current

Level = Literal["path", "conflict", "full"]
LEVELS: tuple[Level, ...] = ("path", "conflict", "full")


def refine(outcome: Outcome, level: Level) -> None:
    """Decides what the level asks for on the path under way."""
    if level == "path":
        return
    touched = Touched([], [])
    for arguments in outcome.arguments:
        for argument in arguments.values():
            touched.add(argument)
    for content in touched_maps(outcome.initial):
        for number, entry in enumerate(content.entries):
            touched.add(entry.key)
            if content.initially_has(number):
                touched.add(entry.value)
    for attribute in type(outcome.initial).state_types():
        touched.add(getattr(outcome.initial, attribute))
    contents = current().content_sorts
    _decide_equalities([value for value in touched.values if value.sort not in contents])
    if level == "full":
        _decide_equalities([value for value in touched.values if value.sort in contents])
        for flag in touched.flags:
            bool(flag)


def _decide_equalities(values: list[SortValue]) -> None:
    for position, value in enumerate(values):
        for other in values[:position]:
            if other.sort == value.sort and value.sort != Time.__name__:
                _ = other == value


@dataclass(slots=True)
class Touched:
    """The unknowns that a path has touched: values of sorts, and flags."""

    values: list[SortValue]
    flags: list[BoolValue]

    def add(self, value: Any) -> None:
        """Adds an unknown, or those that a tuple, sequence or struct holds."""
        if isinstance(value, SortValue):
            if not any(value is other for other in self.values):
                self.values.append(value)
        elif isinstance(value, BoolValue):
            self.flags.append(value)
        elif isinstance(value, tuple | list):
            for item in value:
                self.add(item)
        elif isinstance(value, Struct):
            for field in value.relevant():
                self.add(getattr(value, field))


def touched_maps(initial: Interface) -> Iterator[MapContent]:
    """Every map of the initial state that a path may have touched, those within entries included; grows while read."""
    pending = [value for value in vars(initial).values() if isinstance(value, SymbolicMap | Struct)]
    while pending:
        value = pending.pop(0)
        if isinstance(value, Struct):
            pending += [getattr(value, field) for field in struct_fields(type(value))]
        elif isinstance(value, SymbolicMap):
            yield value.content
            pending += [entry.value for entry in value.content.entries if entry.known]
