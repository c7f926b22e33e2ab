"""Conditions on initial states: of them as a whole, of entries of attributes, and of those of maps within records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from commutant.analyzer import analyze
from commutant.lang import Interface, Map, Seq, Set, Struct, call, well_formed
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


class Store(Interface):
    """All that a state can have, and a call that looks at it."""

    box: Box
    row: Seq[int]
    numbers: Set[int]
    boxes: Map[int, Box]
    rows: Map[int, Seq[int]]

    @call
    def look(self, key: int, place: int) -> bool:
        if key not in self.boxes or key not in self.rows or key not in self.numbers:
            return False
        return place in self.boxes[key].items


def analyzed_with(about: Any, method: Callable[..., bool]) -> None:
    """Analyses `Store` under a condition."""

    class Conditional(Store):
        tidy = well_formed(about)(method) if about else well_formed(method)

    analyze(Conditional, ["look"])


def _grow(row: Any) -> None:
    row.append(1)


def _begin_anew(row: Any) -> None:
    if len(row) > 0:
        row[0] = 1


@pytest.mark.parametrize(
    ("about", "change"),
    [
        ("", lambda state: setattr(state.box, "count", 1)),
        ("", lambda state: state.numbers.clear()),
        ("", lambda state: state.numbers.add(1)),
        ("", lambda state: setattr(state, "seen", True)),
        ("", lambda state: _grow(state.row)),
        ("", lambda state: _begin_anew(state.row)),
        ("numbers", lambda state, key, _: state.numbers.remove(key)),
        ("boxes", lambda state, key, _: setattr(state.boxes[key], "count", 1)),
        ("boxes", lambda state, key, box: setattr(box, "count", 1)),
        ("boxes", lambda state, key, box: box.items.clear()),
        ("boxes", lambda state, key, box: state.numbers.add(key)),
        ("rows", lambda state, key, row: _grow(row)),
        ("rows", lambda state, key, row: _grow(state.rows[key])),
        ("boxes.items", lambda state, key, box, place, item: box.items.pop(place)),
        ("boxes.items", lambda state, key, box, place, item: state.boxes.pop(key)),
    ],
)
def test_a_condition_that_changes_the_state_is_refused(about: str, change: Callable[..., Any]) -> None:
    """Without a word, what a condition of entries changed was changed for the calls, too, and of the whole state for
    no call."""

    def tidy(*given: Any) -> bool:
        change(*given)
        return True

    with pytest.raises(UsageError, match=r"test_well_formed\.py:\d+: Conditional\.tidy: it changes the state"):
        analyzed_with(about, tidy)


@pytest.mark.parametrize(
    ("about", "look"),
    [
        ("", lambda state: len(state.row) == 0 or state.row[0] != 3),
        ("", lambda state: state.box.count > 3 and 3 not in state.numbers),
        ("numbers", lambda state, key, _: key in state.numbers and key not in state.rows),
        ("boxes", lambda state, key, box: state.boxes[key].count == box.count and 1 in box.items),
        ("rows", lambda state, key, row: len(row) == 0 or state.rows[key][0] == row[0]),
        ("boxes.items", lambda state, key, box, place, item: state.boxes[key].items[place] == item),
    ],
)
def test_a_condition_may_look_at_all(about: str, look: Callable[..., bool]) -> None:
    def tidy(*given: Any) -> bool:
        return look(*given)

    analyzed_with(about, tidy)
