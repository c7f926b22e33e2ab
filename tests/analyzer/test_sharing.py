"""A record that stands in two places of a state is refused: ordinary values and the engine would tell it apart."""

from __future__ import annotations

from typing import Annotated

import pytest

from commutant.analyzer import analyze
from commutant.lang import Capacity, Interface, Map, Seq, Sort, Struct, call
from commutant.support.errors import UsageError


class Key(Sort):
    """A key."""


class Inner(Struct):
    count: int


class Outer(Struct):
    inner: Inner


class Sharing(Interface):
    one: Map[Key, Inner]
    two: Map[Key, Inner]
    record: Inner
    outer: Outer
    items: Annotated[Seq[Inner], Capacity(2)]
    nested: Map[Key, Map[Key, Inner]]
    numbers: Annotated[Seq[int], Capacity(1)]
    others: Annotated[Seq[int], Capacity(1)]

    @call
    def entry_twice(self, key: Key) -> None:
        if key in self.one:
            self.two[key] = self.one[key]

    @call
    def new_twice(self, key: Key) -> None:
        self.one[key] = self.two[key] = Inner(count=1)

    @call
    def argument_twice(self, key: Key, inner: Inner) -> None:
        self.one[key] = inner
        self.two[key] = inner

    @call
    def attribute(self, key: Key) -> None:
        if key in self.one:
            self.record = self.one[key]

    @call
    def field(self) -> None:
        self.outer.inner = self.record

    @call
    def item(self) -> None:
        self.items.append(self.record)

    @call
    def map_in_a_map(self, key: Key, other: Key) -> None:
        if key in self.nested and key != other:
            self.nested[other] = self.nested[key]

    @call
    def sequence(self) -> None:
        self.numbers = self.others


class Moving(Interface):
    one: Map[Key, Inner]
    two: Map[Key, Inner]

    @call
    def move(self, old: Key, new: Key) -> None:
        if old in self.one:
            self.one[new] = self.one.pop(old)

    @call
    def across(self, key: Key) -> None:
        if key in self.one:
            self.two[key] = self.one[key]
            del self.one[key]

    @call
    def copy(self, key: Key) -> None:
        if key in self.one:
            self.two[key] = Inner(count=self.one[key].count)

    @call
    def store(self, key: Key, inner: Inner) -> int:
        self.one[key] = inner
        inner.count += 1
        return inner.count


@pytest.mark.parametrize("name", Sharing.call_names())
def test_one_record_in_two_places_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=rf"test_sharing\.py:\d+: Sharing\.{name}: one \w+ stands in two places"):
        analyze(Sharing, [name], size=1)


@pytest.mark.parametrize("name", Moving.call_names())
def test_moving_and_copying_is_not_sharing(name: str) -> None:
    assert analyze(Moving, [name], size=1).sets[0].commutative_paths


def test_a_record_given_as_argument_is_the_calls_own() -> None:
    """The call changes what it was given; the other order must still see the argument as it was."""
    one = analyze(Moving, ["store", "store"]).sets[0]
    assert one.conditions == ["inner_count.0 = inner_count.1", "key.0 ≠ key.1"]
