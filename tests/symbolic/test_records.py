"""Native records: what comes into being when it is asked for, what copies share, and that none outlives its use."""

from __future__ import annotations

import gc
import weakref
from typing import Any, ClassVar

import pytest

from commutant.lang import Interface, Map, Seq, Sort, Struct
from commutant.lang.types import Record
from commutant.symbolic import clone


class Name(Sort):
    """Names."""


class Inner(Struct):
    """A record in a record."""

    count: int


class Outer(Struct):
    """Fields of all kinds; names that a method of the engine's could have."""

    copy: int
    source: bool
    inner: Inner
    items: Seq[int]


def lazy_outer(asked: list[str]) -> Outer:
    """A record that notes what it was asked for."""
    values = {"copy": 3, "source": True, "inner": Inner(count=1), "items": Seq([1, 2])}

    def origin(_: Outer, name: str) -> Any:
        asked.append(name)
        if name not in values:
            raise AttributeError(name)
        return values[name]

    return Outer.from_origin(origin)


def test_each_value_is_asked_for_once_and_late() -> None:
    asked: list[str] = []
    record = lazy_outer(asked)
    assert asked == [] and vars(record) == {}
    assert (record.copy, record.copy, record.source) == (3, 3, True)
    assert asked == ["copy", "source"] and vars(record) == {"copy": 3, "source": True}
    with pytest.raises(AttributeError, match="colour"):
        _ = record.colour  # type: ignore[attr-defined]


def test_a_copy_changes_alone_and_holds_only_what_was_asked_of_it() -> None:
    asked: list[str] = []
    record = lazy_outer(asked)
    copy = clone(clone(record))
    assert asked == []
    copy.inner.count = 2
    copy.items.append(3)
    copy.copy = 4
    assert asked == ["inner", "items"]
    assert (record.inner.count, list(record.items), record.copy) == (1, [1, 2], 3)
    assert (copy.inner.count, list(copy.items), copy.copy) == (2, [1, 2, 3], 4)
    assert "source" not in vars(copy) and type(copy) is Outer


def test_a_copy_of_an_ordinary_record_changes_alone() -> None:
    record = Outer(copy=1, inner=Inner(count=5))
    copy = clone(record)
    assert copy == record and copy.inner is not record.inner
    copy.inner.count = 6
    assert record.inner.count == 5


class Given(Interface):
    """A state of which the class itself would answer for an attribute."""

    limit: int = 7
    names: Map[Name, int]
    instances: ClassVar[int] = 0


def test_what_the_class_gives_a_value_for_comes_from_the_origin_at_once() -> None:
    asked: list[str] = []

    def origin(_: Given, name: str) -> Any:
        asked.append(name)
        return 9

    state = Given.from_origin(origin)
    assert asked == ["limit"] and vars(state) == {"limit": 9}
    state.limit = 10
    assert vars(clone(state)) == {"limit": 10}
    assert Given().limit == 7


def test_records_that_hold_each_other_are_found_by_the_search_for_cycles() -> None:
    """What the origin of a record holds on to counts too."""

    def made() -> weakref.ref[Record]:
        record: Any = Inner.from_origin(lambda record, _: record)
        assert record.count is record
        other: Any = Inner.from_origin(lambda *_: other)
        copy: Any = clone(other)
        other.back = copy
        return weakref.ref(copy)

    left = made()
    gc.collect()
    assert left() is None
