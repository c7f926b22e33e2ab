"""Equivalence classes of commutative states: on a commutative path, which values are equal and which are not?

One path still leaves patterns open that reach an implementation in different ways. Conflict coverage (paper, section
5.2) makes one test per pattern, and enumerating patterns is more of the same search: at a commutative leaf, decide what
is still open; each leaf below is one class.

The levels, each including the one before:

- `path`: nothing more is decided; one test per path. What the path leaves open is taken to be different.
- `conflict`: which touched entries of maps exist, and, per sort, which of the touched values are equal: arguments, keys
  of touched entries, and the values stored under those that exist.
- `full`: flags (boolean arguments) and boolean contents too, whether the path looks at them or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from commutant.analyzer.commute import Outcome
from commutant.lang.interface import Interface
from commutant.lang.types import Struct, struct_fields
from commutant.symbolic import BoolValue, MapContent, SortValue, SymbolicMap

Level = Literal["path", "conflict", "full"]
LEVELS: tuple[Level, ...] = ("path", "conflict", "full")


def refine(outcome: Outcome, level: Level) -> None:
    """Decides what the level asks for on the path under way."""
    if level == "path":
        return
    values: list[SortValue] = []
    flags: list[BoolValue] = []
    for arguments in outcome.arguments:
        for argument in arguments.values():
            _collect(argument, values, flags)
    for content in touched_maps(outcome.initial):
        for number, entry in enumerate(content.entries):
            _collect(entry.key, values, [])
            if content.initially_has(number):
                _collect(entry.value, values, flags)
    for attribute in type(outcome.initial).state_types():
        _collect(getattr(outcome.initial, attribute), values, flags)
    for position, value in enumerate(values):
        for other in values[:position]:
            if other.sort == value.sort:
                _ = other == value
    if level == "full":
        for flag in flags:
            bool(flag)


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


def _collect(value: Any, values: list[SortValue], flags: list[BoolValue]) -> None:
    if isinstance(value, SortValue):
        if not any(value is other for other in values):
            values.append(value)
    elif isinstance(value, BoolValue):
        flags.append(value)
    elif isinstance(value, tuple | list):
        for item in value:
            _collect(item, values, flags)
    elif isinstance(value, Struct):
        for field in struct_fields(type(value)):
            _collect(getattr(value, field), values, flags)
