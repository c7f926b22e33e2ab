"""What calls write next to what stood there: does a call that sets an offset move it?

A path leaves open whether a call changes what it writes where no result depends on it. An implementation may well tell:
it may write only what differs, or write always. So what is open is asked, per unknown that a call by itself writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from commutant.lang import Record, Struct, Time
from commutant.symbolic import BoolValue, Context, IntValue, Literal, SortValue, SymbolicMap


def changes(end: Record, context: Context) -> Iterator[Literal]:
    """Of the state that a call left: the statements that what it wrote is what stood there, settled ones included.

    What was overwritten unseen comes into being. Contents and times are left out: which are equal is never asked.
    """
    source = end._source
    if source is None:
        return
    for name, value in vars(end).items():
        yield from _changes(source._seen(name), value, context)


def _changes(before: Any, value: Any, context: Context) -> Iterator[Literal]:
    if value is before:
        return
    kind = value.__class__
    if kind is SymbolicMap:
        yield from _changes_of_map(value, context)
    elif isinstance(value, Struct) and isinstance(before, Struct):
        if value._source is before:
            yield from changes(value, context)
        elif type(value) is type(before):
            for name in value.relevant():
                yield from _changes(getattr(before, name), getattr(value, name), context)
    elif isinstance(value, tuple | list) and isinstance(before, tuple | list):
        for one, other in zip(before, value, strict=False):
            yield from _changes(one, other, context)
    else:
        yield from _is_same(before, value, context)


def _changes_of_map(view: SymbolicMap, context: Context) -> Iterator[Literal]:
    entries = view.content.entries
    for number, cell in view.cells:
        presence = entries[number].presence
        if not cell.present or isinstance(presence, bool) or not context.bool_value(presence.index):
            continue
        value = cell.value
        if cell.assigned:
            yield from _changes(entries[number].value, value, context)
        elif isinstance(value, SymbolicMap):
            yield from _changes_of_map(value, context)
        elif isinstance(value, Struct):
            yield from changes(value, context)


def _is_same(before: Any, value: Any, context: Context) -> Iterator[Literal]:
    if isinstance(before, SortValue) and isinstance(value, SortValue):
        if before.index != value.index and before.sort not in context.content_sorts and before.sort != Time.__name__:
            yield Literal("same", min(before.index, value.index), max(before.index, value.index))
    elif isinstance(before, BoolValue):
        if isinstance(value, bool):
            yield Literal("bool", before.index, None)
    elif isinstance(before, IntValue) or isinstance(value, IntValue):
        difference = value - before
        if isinstance(difference, IntValue):
            leads_positive = difference.linear[0][0][1] > 0
            yield Literal("==", (difference if leads_positive else -difference).linear, None)
