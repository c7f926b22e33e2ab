"""Concrete states and values in the words of people: `names {n0: i0}; inodes {i0: length 1}`."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from commutant.lang import Interface, OpaqueValue, SortType, Struct, struct_fields
from commutant.testgen.canonical import Anything


def state_text(state: Interface, *, zeros: bool = False) -> str:
    """What a state holds, attribute by attribute; what is empty, or may be anything, is left out.

    With `zeros`, numbers of records that are 0 are said: where no calls reach a state, one may be the cause.
    """
    parts = []
    for name, type_ in type(state).state_types().items():
        value = getattr(state, name)
        if isinstance(type_, SortType) and type_.constant is not None:
            continue
        if isinstance(value, dict):
            if value:
                parts.append(f"{name} {shown(value, zeros=zeros)}")
        elif not isinstance(value, Anything) and (text := shown(value, zeros=zeros)):
            parts.append(f"{name} {text}")
    return "; ".join(parts)


def shown(value: Any, *, zeros: bool = False) -> str:
    """A concrete value as people write it; empty for a record of which nothing is to be said."""
    if isinstance(value, OpaqueValue):
        return value.sort[0].lower() + value.label.removeprefix("initial.")
    if isinstance(value, Struct):
        return ", ".join(_fields(value, zeros))
    if isinstance(value, dict):
        texts = ((shown(key, zeros=zeros), shown(item, zeros=zeros)) for key, item in value.items())
        return f"{{{', '.join(f'{key}: {item}' if item else key for key, item in texts)}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(shown(item, zeros=zeros) for item in value)})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return value.name
    return "" if value is None else str(value)


def _fields(record: Struct, zeros: bool) -> Iterator[str]:
    types = struct_fields(type(record))
    for name in record.relevant():
        value = getattr(record, name)
        if isinstance(value, bool):
            if value != getattr(types[name], "usual", False):
                yield name if value else f"not {name}"
        elif not isinstance(value, Anything) and (value or (zeros and value == 0)):
            yield f"{name} {shown(value, zeros=zeros)}"
