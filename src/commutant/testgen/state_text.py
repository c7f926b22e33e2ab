"""Concrete states and values in the words of people: `names {n0: i0}; inodes {i0: length 1}`."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from commutant.lang import Interface, OpaqueValue, SortType, Struct, struct_fields
from commutant.testgen.canonical import Anything


def state_text(state: Interface) -> str:
    """What a state holds, attribute by attribute; what is empty, or may be anything, is left out."""
    parts = []
    for name, type_ in type(state).state_types().items():
        value = getattr(state, name)
        if isinstance(type_, SortType) and type_.constant is not None:
            continue
        if isinstance(value, dict):
            if value:
                parts.append(f"{name} {shown(value)}")
        elif not isinstance(value, Anything) and shown(value):
            parts.append(f"{name} {shown(value)}")
    return "; ".join(parts)


def shown(value: Any) -> str:
    """A concrete value as people write it; empty for a record of which nothing is to be said."""
    if isinstance(value, OpaqueValue):
        return value.sort[0].lower() + value.label.removeprefix("initial.")
    if isinstance(value, Struct):
        return ", ".join(_fields(value))
    if isinstance(value, dict):
        texts = ((shown(key), shown(item)) for key, item in value.items())
        return f"{{{', '.join(f'{key}: {item}' if item else key for key, item in texts)}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(shown, value))})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return value.name
    return "" if value is None else str(value)


def _fields(record: Struct) -> Iterator[str]:
    types = struct_fields(type(record))
    for name in record.relevant():
        value = getattr(record, name)
        if isinstance(value, bool):
            if value != getattr(types[name], "usual", False):
                yield name if value else f"not {name}"
        elif value and not isinstance(value, Anything):
            yield f"{name} {shown(value)}"
