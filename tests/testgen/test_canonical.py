"""States in an order that does not depend on the names of opaque values."""

from __future__ import annotations

from commutant.lang import Interface, Map, OpaqueValue, Sort
from commutant.testgen.canonical import Canonical


class Block(Sort, opaque=True):
    """A block."""


class Chain(Interface):
    """The way to an entry leads through maps that stand after its own."""

    third: Map[Block, int]
    second: Map[Block, Block]
    first: Map[int, Block]


def chain(*labels: str) -> Chain:
    one, other = (OpaqueValue("Block", label) for label in labels)
    state = Chain()
    state.first = Map({0: one})
    state.second = Map({one: other})
    state.third = Map({other: 5})
    return state


def test_what_is_reached_through_maps_that_stand_behind_counts() -> None:
    one, other = ("Block", 0), ("Block", 1)
    assert Canonical().state(chain("a", "b")) == [[(other, 5)], [(one, other)], [(0, one)]]
    assert Canonical().state(chain("b", "a")) == Canonical().state(chain("a", "b"))


def test_what_no_way_leads_to_does_not_count() -> None:
    state = chain("a", "b")
    state.second = Map({})
    assert Canonical().state(state) == [[], [], [(0, ("Block", 0))]]
