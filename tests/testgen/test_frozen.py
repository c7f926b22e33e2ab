"""Frozen values: what thaws is what was frozen and no one else's, and nothing that a test distinguishes freezes
alike."""

from __future__ import annotations

import copy
import itertools
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commutant.lang import Errno, Interface, Map, Range, Seq, Signal, Sort, Struct
from commutant.lang.types import OpaqueValue, TimeValue
from commutant.testgen.canonical import Anything
from commutant.testgen.frozen import NotFrozen, complete, freeze, freeze_again, thaw, thaw_on_demand


class Key(Sort):
    """A key."""


class Item(Struct):
    content: int
    parts: Map[Key, int]


class Counter(Interface):
    count: int
    last: bool


class Store(Interface):
    items: Map[tuple[Key, Annotated[int, Range(0, None)]], Item]


def shown(value: Any) -> Any:
    """All that there is to a value, by other means."""
    if isinstance(value, Struct | Interface):
        return type(value), [(name, shown(part)) for name, part in vars(value).items()]
    if isinstance(value, dict):
        return type(value), [(shown(key), shown(part)) for key, part in value.items()]
    if isinstance(value, tuple | list):
        return type(value), [shown(part) for part in value]
    return type(value), value


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2),
    st.integers(0, 2).map(TimeValue),
    st.integers(0, 2).map(Anything),
    st.sampled_from(
        ["", "n0", Errno.ENOENT, Errno.EIO, Signal.SIGBUS, OpaqueValue("Inum", "n0"), OpaqueValue("P", "n0")]
    ),
)
keys = scalars | st.tuples(scalars, scalars)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3).map(Seq),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3).map(Map),
        st.builds(lambda content, parts: Item(content=content, parts=parts), inner, inner),
    ),
    max_leaves=6,
)


@given(values, values)
def test_what_is_frozen_says_all_and_only_what_there_is(left: Any, right: Any) -> None:
    assert shown(thaw(freeze(left))) == shown(left)
    assert (freeze(left) == freeze(right)) == (repr(shown(left)) == repr(shown(right)))
    assert freeze(left) != freeze(right) or hash(freeze(left)) == hash(freeze(right))


def test_numbers_that_python_calls_equal_are_told_apart() -> None:
    ones = [1, True, TimeValue(1), Anything(1)]
    assert not any(freeze(left) == freeze(right) for left, right in itertools.combinations(ones, 2))


def test_what_thaws_can_be_changed_alone() -> None:
    state = Store()
    state.items["k0", 0] = Item(content=1, parts=Map({"k1": 1}))
    frozen = freeze(state)
    first, second = thaw(frozen), thaw(frozen)
    first.items["k0", 0].parts["k2"] = 2
    first.items["k1", 1] = Item()
    assert freeze(second) == frozen == freeze(state) != freeze(first)


def test_a_copy_made_as_asked_freezes_as_if_it_were_whole() -> None:
    state = Store()
    state.items["k0", 0] = Item(content=1, parts=Map({"k1": 1}))
    state._beside = Map({1: 2})
    frozen = freeze(state)
    changes: list[Any] = [
        lambda copy: None,
        lambda copy: copy.items["k0", 0].parts.clear(),
        lambda copy: copy.items.update({("k1", 1): Item()}),
        lambda copy: setattr(copy, "items", Map()),
        lambda copy: setattr(copy, "_beside", True),
        lambda copy: setattr(copy, "_new", [1]),
        lambda copy: copy.items["k0", 0].__dict__.pop("parts"),
    ]
    for change in changes:
        whole, lazy = thaw(frozen), thaw_on_demand(frozen)
        change(whole)
        change(lazy)
        assert freeze_again(lazy, frozen) == freeze(whole)
    assert frozen == freeze(state)
    with pytest.raises(AttributeError, match="Store has no field 'other'"):
        _ = thaw_on_demand(frozen).other


def test_a_state_of_scalars_alone_is_copied_and_frozen_too() -> None:
    state = Counter()
    copy = thaw_on_demand(freeze(state))
    assert (copy.count, copy.last) == (0, False) and freeze_again(copy, freeze(state)) == freeze(state)
    copy.count = 1
    assert freeze_again(copy, freeze(state)) == freeze(copy) != freeze(state)
    copy.count = False
    assert freeze_again(copy, freeze(state)) != freeze(state)


def test_the_order_of_entries_is_kept() -> None:
    assert freeze(Map({"a": 1, "b": 2})) != freeze(Map({"b": 2, "a": 1}))


def test_an_object_of_a_models_own_has_no_frozen_form() -> None:
    with pytest.raises(NotFrozen):
        freeze(Seq([object()]))


def test_a_record_that_cannot_be_frozen_again_is_copied_whole() -> None:
    """What no one had asked for was lost: a copy takes the attributes that there are."""

    class Lamp(Interface):
        mode: int
        names: Map[Key, int]

    before = Lamp.__new__(Lamp)
    before.mode, before.names = 0, Map({})
    frozen = freeze(before)
    state = thaw_on_demand(frozen)
    state.mode = object()
    with pytest.raises(NotFrozen):
        freeze_again(state, frozen)
    complete(state, frozen)
    assert copy.deepcopy(state).names == {}
