"""Concrete values and states as plain tuples: equal ones mean that nothing tells two values apart, and a value can be
made of its tuple as often as one is needed.

`True`, `1` and a time of 1 are equal to Python and not to a test; so everything but plain integers, texts and opaque
values stands behind its class. Maps are in the order of their entries, which a model may show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from commutant.lang.errno import Errno, Signal
from commutant.lang.types import Map, OpaqueValue, Record, Seq, TimeValue
from commutant.testgen.canonical import Anything

Frozen = Any
"""An integer, a text, an opaque value, or a tuple that begins with the class of what it stands for."""

TRUE: Frozen = (bool, True)
FALSE: Frozen = (bool, False)

_AS_THEY_ARE = frozenset((int, str, OpaqueValue, type(None)))


class NotFrozen(Exception):
    """The value holds something that has no frozen form, such as an object of a model's own."""


def freeze(value: Any) -> Frozen:
    """The frozen form of a value; NotFrozen if it has none."""
    kind = value.__class__
    if kind in _AS_THEY_ARE:
        return value
    freezer = _FREEZERS.get(kind)
    if freezer is not None:
        return freezer(value)
    if isinstance(value, Record):
        held = value.__dict__
        return (kind, tuple(held), *[v if v.__class__ in _AS_THEY_ARE else freeze(v) for v in held.values()])
    raise NotFrozen


def _freeze_items(value: Any) -> Frozen:
    return (value.__class__, *map(freeze, value))


def _freeze_entries(value: Mapping[Any, Any]) -> Frozen:
    kind = value.__class__
    if not value:
        return (kind,)
    return (kind, *[(freeze(key), freeze(item)) for key, item in value.items()])


def _freeze_scalar(value: Any) -> Frozen:
    return (value.__class__, value)


_FREEZERS: dict[type, Callable[[Any], Frozen]] = {
    bool: lambda value: TRUE if value else FALSE,
    TimeValue: _freeze_scalar,
    Anything: _freeze_scalar,
    Errno: _freeze_scalar,
    Signal: _freeze_scalar,
    tuple: _freeze_items,
    list: _freeze_items,
    Seq: _freeze_items,
    dict: _freeze_entries,
    Map: _freeze_entries,
}


def thaw(frozen: Frozen) -> Any:
    """A value that nobody else has, equal to the one that was frozen."""
    if frozen.__class__ is not tuple:
        return frozen
    kind = frozen[0]
    thawer = _THAWERS.get(kind)
    if thawer is not None:
        return thawer(frozen)
    record = kind.__new__(kind)
    held = record.__dict__
    for name, value in zip(frozen[1], frozen[2:], strict=True):
        held[name] = value if value.__class__ is not tuple else thaw(value)
    return record


def _thaw_scalar(frozen: Frozen) -> Any:
    return frozen[1]


def _thaw_items(frozen: Frozen) -> Any:
    kind: Any = frozen[0]
    return kind([value if value.__class__ is not tuple else thaw(value) for value in frozen[1:]])


def _thaw_entries(frozen: Frozen) -> Any:
    kind: Any = frozen[0]
    return kind([(thaw(key), thaw(value)) for key, value in frozen[1:]]) if len(frozen) > 1 else kind()


_THAWERS: dict[type, Callable[[Frozen], Any]] = {
    bool: _thaw_scalar,
    TimeValue: _thaw_scalar,
    Anything: _thaw_scalar,
    Errno: _thaw_scalar,
    Signal: _thaw_scalar,
    tuple: _thaw_items,
    list: _thaw_items,
    Seq: _thaw_items,
    dict: _thaw_entries,
    Map: _thaw_entries,
}
