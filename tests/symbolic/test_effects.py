"""Which runs are independent, and that the changes of one can be carried over to the state that another left."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest

from commutant.lang import Interface, Map, Seq, Sort, Struct
from commutant.lang.types import IntType, SortType
from commutant.symbolic import Context, clone, explore, unknown
from commutant.symbolic.engine import independent, transfer
from commutant.symbolic.state import unknown_record


class Key(Sort):
    """A key."""


class Group(Sort):
    """The first part of a key."""


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Entry(Struct):
    count: int
    flag: bool
    inner: Map[Key, int]


class State(Interface):
    number: int
    other: int
    entries: Map[Key, Entry]
    slots: Map[tuple[Group, int], int]
    items: Seq[int]
    rows: Map[Key, Seq[int]]
    colours: Map[Key, Colour]


def set_number(state: Any, _: Any) -> None:
    state.number = 1


def see_number(state: Any, _: Any) -> None:
    assert state.number is not None


def see_other(state: Any, _: Any) -> None:
    assert state.other is not None


def count_a(state: Any, keys: Any) -> None:
    state.entries[keys["a"]].count += 1


def count_b(state: Any, keys: Any) -> None:
    state.entries[keys["b"]].count += 1


def see_count_a(state: Any, keys: Any) -> None:
    assert state.entries[keys["a"]].count is not None


def flag_a(state: Any, keys: Any) -> None:
    state.entries[keys["a"]].flag = True


def is_a_there(state: Any, keys: Any) -> None:
    _ = keys["a"] in state.entries


def remove_a(state: Any, keys: Any) -> None:
    state.entries.pop(keys["a"], None)


def inner_a(state: Any, keys: Any) -> None:
    state.entries[keys["a"]].inner[keys["b"]] = 1


def empty_inner_a(state: Any, keys: Any) -> None:
    state.entries[keys["a"]].inner.clear()


def grow_row_a(state: Any, keys: Any) -> None:
    state.rows[keys["a"]].append(1)


def see_row_and_colour_b(state: Any, keys: Any) -> None:
    assert len(state.rows[keys["b"]]) >= 0
    assert state.colours[keys["b"]] != 3


def paint_a(state: Any, keys: Any) -> None:
    state.colours[keys["a"]] = Colour.RED


def lowest_g(state: Any, keys: Any) -> None:
    state.slots.lowest_absent(keys["g"])


def take_g(state: Any, keys: Any) -> None:
    state.slots[keys["g"], 7] = 1


def take_h(state: Any, keys: Any) -> None:
    state.slots[keys["h"], 7] = 1


def all_slots(state: Any, _: Any) -> None:
    state.slots.touched()


def empty_slots(state: Any, _: Any) -> None:
    state.slots.clear()


SORTS = {"a": Key, "b": Key, "g": Group, "h": Group}

Step = Callable[[Any, Any], None]


def both(left: Step, right: Step, then: Callable[[Any, Any, Any], Any]) -> list[Any]:
    """`then(initial state, left's, right's)` on every path on which a and b, and g and h, differ and entries has a
    and b."""

    def program(context: Context) -> Any:
        initial = unknown_record(State, State.state_types())
        keys = {name: unknown(SortType(sort), name) for name, sort in SORTS.items()}
        if keys["a"] == keys["b"] or keys["g"] == keys["h"]:
            return None
        for name in ("a", "b"):
            assert initial.entries[keys[name]] is not None  # excludes states without these entries
        mine, theirs = clone(initial), clone(initial)
        left(mine, keys)
        right(theirs, keys)
        return then(initial, mine, theirs)

    return [path.result for path in explore(program) if path.result is not None]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (see_number, see_number),
        (set_number, see_other),
        (count_a, count_b),
        (count_a, flag_a),
        (count_a, is_a_there),
        (see_count_a, flag_a),
        (inner_a, count_a),
        (remove_a, count_b),
        (lowest_g, take_h),
        (lowest_g, lowest_g),
        (all_slots, count_a),
        (all_slots, all_slots),
    ],
)
def test_runs_that_do_not_meet(left: Step, right: Step) -> None:
    assert all(both(left, right, lambda _, mine, theirs: independent(mine, theirs)))
    assert all(both(right, left, lambda _, mine, theirs: independent(mine, theirs)))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (set_number, see_number),
        (set_number, set_number),
        (count_a, count_a),
        (count_a, see_count_a),
        (remove_a, is_a_there),
        (remove_a, see_count_a),
        (empty_inner_a, inner_a),
        (lowest_g, take_g),
        (all_slots, take_g),
        (empty_slots, take_g),
        (empty_slots, lowest_g),
    ],
)
def test_runs_that_meet(left: Step, right: Step) -> None:
    assert not any(both(left, right, lambda _, mine, theirs: independent(mine, theirs)))
    assert not any(both(right, left, lambda _, mine, theirs: independent(mine, theirs)))


def test_what_another_made_known_counts_for_who_looked_at_all() -> None:
    """A call that looked at all known entries would have seen one that another call has looked at since."""
    found = both(all_slots, lambda state, keys: (keys["g"], 7) in state.slots, lambda _, a, b: independent(a, b))
    assert found
    assert not any(found)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (set_number, count_a),
        (count_a, flag_a),
        (inner_a, count_b),
        (remove_a, take_g),
        (take_h, count_a),
        (grow_row_a, see_row_and_colour_b),
        (paint_a, see_row_and_colour_b),
    ],
)
def test_changes_carried_over_are_those_of_a_run_there(left: Step, right: Step) -> None:
    """A sequence or a member of an enumeration that a map held and a run had looked at was taken for a changed map."""

    def same(_: Any, mine: Any, theirs: Any) -> bool:
        assert independent(mine, theirs)
        carried, the_other_way = clone(mine), clone(theirs)
        transfer(theirs, carried)
        transfer(mine, the_other_way)
        return bool(carried.equivalent(the_other_way))

    assert all(both(left, right, same))


def test_bounds_that_meet_are_a_number() -> None:
    assert unknown(IntType(3, 3), "n") == 3
