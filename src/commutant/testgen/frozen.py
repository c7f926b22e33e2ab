"""Concrete values and states as plain tuples: equal ones mean that nothing tells two values apart, and a value can be
made of its tuple as often as one is needed.

`True`, `1` and a time of 1 are equal to Python and not to a test; so everything but plain integers, texts and opaque
values stands after its class. Maps are in the order of their entries, which a model may show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from commutant.lang import Errno, Map, OpaqueValue, Record, Seq, Set, Signal, TimeValue
from commutant.testgen.canonical import Anything

Frozen = Any
"""An integer, a text, an opaque value, a tuple of these, or one that begins with the class of what it stands for."""

TRUE: Frozen = (bool, True)
FALSE: Frozen = (bool, False)

_AS_THEY_ARE = frozenset((int, str, OpaqueValue, type(None)))
_SCALARS = frozenset((*_AS_THEY_ARE, bool, TimeValue, Anything, Errno, Signal))


class _OfScalars:
    """Marks the form that most records have: class, names, and apart the classes of the values and the values."""


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
    if isinstance(value, Enum):
        return value
    if isinstance(value, Record):
        held = value.__dict__
        values = tuple(held.values())
        kinds = tuple(map(type, values))
        if _SCALARS.issuperset(kinds):
            return (_OfScalars, kind, tuple(held), kinds, values)
        return (kind, tuple(held), *[v if v.__class__ in _AS_THEY_ARE else freeze(v) for v in values])
    raise NotFrozen


def _freeze_tuple(value: Any) -> Frozen:
    return value if value and _AS_THEY_ARE.issuperset(map(type, value)) else _freeze_items(value)


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
    tuple: _freeze_tuple,
    list: _freeze_items,
    Seq: _freeze_items,
    dict: _freeze_entries,
    Map: _freeze_entries,
    Set: _freeze_entries,
}


def thaw(frozen: Frozen) -> Any:
    """A value that no one else has, equal to the one that was frozen."""
    if frozen.__class__ is not tuple:
        return frozen
    kind = frozen[0]
    thawer = _THAWERS.get(kind)
    if thawer is not None:
        return thawer(frozen)
    if kind.__class__ in _AS_THEY_ARE:
        return frozen
    record = kind.__new__(kind)
    held = record.__dict__
    for name, value in zip(frozen[1], frozen[2:], strict=True):
        held[name] = value if value.__class__ is not tuple else thaw(value)
    return record


def thaw_on_demand(frozen: Frozen) -> Any:
    """A record as `thaw` makes it, of which a part comes into being when it is first asked for."""
    if frozen[0] is _OfScalars:
        return thaw(frozen)
    kind, names = frozen[0], frozen[1]

    def origin(_: Record, name: str) -> Any:
        if name not in names:
            raise AttributeError(f"{kind.__name__} has no field {name!r}")
        return thaw(frozen[2 + names.index(name)])

    return kind.from_origin(origin)


def freeze_again(record: Record, before: Frozen) -> Frozen:
    """The frozen form of a record that was made as it was asked for: what no one asked for is as it was."""
    if before[0] is _OfScalars:
        return freeze(record)
    held = record.__dict__
    parts = [freeze(held[name]) if name in held else part for name, part in zip(before[1], before[2:], strict=True)]
    new = [name for name in held if name not in before[1]]
    return (before[0], (*before[1], *new) if new else before[1], *parts, *[freeze(held[name]) for name in new])


def complete(record: Record, before: Frozen) -> None:
    """Makes all parts of a record that `thaw_as_asked` made of `before`, so that it can do without."""
    if before[0] is not _OfScalars:
        for name in before[1]:
            getattr(record, name)


def _thaw_scalar(frozen: Frozen) -> Any:
    return frozen[1]


def _thaw_scalars(frozen: Frozen) -> Any:
    _, kind, names, _, values = frozen
    record = kind.__new__(kind)
    record.__dict__.update(zip(names, values, strict=True))
    return record


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
    _OfScalars: _thaw_scalars,
    tuple: _thaw_items,
    list: _thaw_items,
    Seq: _thaw_items,
    dict: _thaw_entries,
    Map: _thaw_entries,
    Set: _thaw_entries,
}
