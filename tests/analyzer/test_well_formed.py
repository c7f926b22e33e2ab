"""Conditions on initial states: for entries of attributes, and for those of maps within their records."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from commutant.analyzer import analyze
from commutant.lang import Interface, Map, Struct, call, well_formed
from commutant.support.errors import UsageError


class Box(Struct):
    """Items in places below `count`."""

    count: int
    items: Map[int, int]


class Boxes(Interface):
    """A call that would fail if an item lay beyond the end."""

    boxes: Map[int, Box]

    @well_formed("boxes.items")
    def items_are_counted(self, number: int, box: Box, place: int, item: int) -> bool:
        return place < box.count and item != number

    @call
    def look(self, number: int, place: int) -> bool:
        if number not in self.boxes or place not in self.boxes[number].items:
            return False
        assert place < self.boxes[number].count
        assert self.boxes[number].items[place] != number
        return True

    @call
    def put(self, number: int) -> None:
        self.boxes[number] = Box(count=1, items=Map({0: number + 1}))


def test_maps_within_records() -> None:
    one = analyze(Boxes, ["look", "put"]).sets[0]
    assert 0 < one.commutative_paths < one.paths


def test_the_condition_is_needed() -> None:
    class Unconditional(Boxes):
        """The same without the condition."""

        items_are_counted: ClassVar[Any] = None

    with pytest.raises(UsageError, match="AssertionError"):
        analyze(Unconditional, ["look"])
