"""Choices are eliminated exactly: against Z3's quantifier elimination, and against trying every value."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import Enum
from typing import Any

import pytest
import z3
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from commutant.analyzer.choices import Choices
from commutant.analyzer.condition import Conjunction, Fact, rename_constants
from commutant.analyzer.facts import Facts
from commutant.analyzer.oracle import AFTER, _kind_of_choice
from commutant.analyzer.simplify import _without_repeated_choices
from commutant.lang.types import (
    BoolType,
    EnumType,
    IntType,
    OptionalType,
    SeqType,
    Sort,
    SortType,
    TupleType,
    Type,
)
from tests.analyzer.interpretation import Signature, Undecided, World, Z3Terms, proved


class Key(Sort):
    """A key."""


SIGNATURES: dict[str, Signature] = {
    **dict.fromkeys(("x", "y", "c.choice.int", "c.choice.small"), ((), "Int")),
    **dict.fromkeys(("k", "l", "c.choice.key", "c.choice.other"), ((), "Key")),
    **dict.fromkeys(("b", "c.choice.bool"), ((), "Bool")),
    "m_has": (("Key",), "Bool"),
    "m_value": (("Key",), "Key"),
    "n_has": (("Int",), "Bool"),
    "f_has": (("Bool",), "Bool"),
}
CHOICES = Choices(
    {
        "c.choice.int": IntType(),
        "c.choice.small": IntType(0, 3),
        "c.choice.key": SortType(Key),
        "c.choice.other": SortType(Key),
        "c.choice.bool": BoolType(),
    },
    frozenset({"m_has", "n_has", "f_has"}),
)


def constant(name: str) -> tuple[str, str]:
    return ("constant", name)


integer_terms = st.sampled_from([constant(name) for name in ("x", "y", "c.choice.int", "c.choice.small")])
keys = st.sampled_from([constant(name) for name in ("k", "l", "c.choice.key", "c.choice.other")])
key_terms = st.one_of(keys, keys.map(lambda key: ("apply", "m_value", (key,))))
bool_terms = st.one_of(
    st.sampled_from([constant("b"), constant("c.choice.bool")]),
    keys.map(lambda key: ("apply", "m_has", (key,))),
    integer_terms.map(lambda key: ("apply", "n_has", (key,))),
    st.sampled_from([constant("b"), constant("c.choice.bool")]).map(lambda key: ("apply", "f_has", (key,))),
)


def linear_facts(coefficients: list[int]) -> st.SearchStrategy[Fact]:
    return st.builds(
        lambda kind, terms, rest, holds: Fact(kind, tuple(sorted(terms.items())), rest, holds),
        st.sampled_from(["<=", "=="]),
        st.dictionaries(integer_terms, st.sampled_from(coefficients), min_size=1, max_size=3),
        st.integers(-3, 3),
        st.booleans(),
    )


differences = st.builds(
    lambda kind, terms, rest, holds: Fact(kind, tuple(sorted(zip(terms, (1, -1), strict=False))), rest, holds),
    st.sampled_from(["<=", "=="]),
    st.lists(integer_terms, min_size=1, max_size=2, unique=True),
    st.integers(-3, 3),
    st.booleans(),
)


@given(st.lists(differences, max_size=5))
@settings(max_examples=150, deadline=None)
def test_comparisons_of_two_integers_are_eliminated_entirely(facts: list[Fact]) -> None:
    eliminated = CHOICES.eliminate(tuple(facts))
    assert not any(CHOICES.mentioned(cube) for cube in eliminated)
    check_with_z3(tuple(facts), eliminated)


@given(st.lists(linear_facts([-3, -2, -1, 1, 2, 3]), max_size=4))
@settings(max_examples=100, deadline=None)
def test_other_coefficients_are_eliminated_or_kept(facts: list[Fact]) -> None:
    check_with_z3(tuple(facts), CHOICES.eliminate(tuple(facts)))


def check_with_z3(cube: Conjunction, eliminated: list[Conjunction]) -> None:
    terms = Z3Terms(SIGNATURES)
    chosen, small = z3.Int("c.choice.int"), z3.Int("c.choice.small")
    before = z3.Exists([chosen, small], z3.And(terms.cube(cube), small >= 0, small <= 3))
    after = z3.Or([z3.Exists([chosen, small], terms.cube(part)) for part in eliminated])
    try:
        assert proved(before == after)
    except Undecided:
        reject()  # Hypothesis fails the test if this happens often


facts_of_all_kinds = st.one_of(
    st.builds(lambda term, holds: Fact("bool", term, None, holds), bool_terms, st.booleans()),
    st.builds(lambda left, right, holds: Fact("same", left, right, holds), key_terms, key_terms, st.booleans()),
    linear_facts([-1, 1]),
)
KEYS = ["k0", "k1"]
DOMAINS: dict[str, Sequence[Any]] = {
    "c.choice.int": range(-12, 13),
    "c.choice.small": range(4),
    "c.choice.key": [*KEYS, "k2", "new0", "new1", "new2"],
    "c.choice.other": [*KEYS, "k2", "new0", "new1", "new2"],
    "c.choice.bool": [False, True],
}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Small values for all but the choices; maps are finite, so keys far away are in none."""
    tables = {
        "x": {(): draw(st.integers(-3, 3))},
        "y": {(): draw(st.integers(-3, 3))},
        "k": {(): draw(st.sampled_from(KEYS))},
        "l": {(): draw(st.sampled_from(KEYS))},
        "b": {(): draw(st.booleans())},
        "m_has": {(key,): True for key in draw(st.sets(st.sampled_from([*KEYS, "k2"])))},
        "m_value": {(key,): draw(st.sampled_from(KEYS)) for key in DOMAINS["c.choice.key"]},
        "n_has": {(key,): True for key in draw(st.sets(st.integers(-2, 2)))},
        "f_has": {(key,): True for key in draw(st.sets(st.booleans()))},
    }
    return World(dict(SIGNATURES), tables)


@given(st.lists(facts_of_all_kinds, min_size=1, max_size=5), worlds())
@settings(max_examples=600, deadline=None)
def test_all_kinds_of_facts(facts: list[Fact], world: World) -> None:
    """`exists choice: facts` holds in a finite world just where one of the cubes does."""
    expected = world.all_hold_for_some_choice(tuple(facts), DOMAINS)
    assert any(world.all_hold_for_some_choice(cube, DOMAINS) for cube in CHOICES.eliminate(tuple(facts))) == expected


def test_what_remains_says_for_some_choice() -> None:
    """That a map has another key has no form without a quantifier."""
    present = Fact("bool", ("apply", "m_has", (constant("c.choice.key"),)), None, True)
    other = Fact("same", constant("c.choice.key"), constant("k"), False)
    assert CHOICES.eliminate((present, other)) == [(present, other)]
    assert CHOICES.eliminate((present.negated(), other)) == [()]


def test_bounds_of_a_choice_count() -> None:
    below = Fact("<=", ((constant("x"), 1), (constant("c.choice.small"), -1)), 0, True)
    assert CHOICES.eliminate((below,)) == [(Fact("<=", ((constant("x"), 1),), -3, True),)]


def test_combinations_of_holes_and_bounds() -> None:
    """Some value from 0 to 3 that is none of x, y."""
    holes = tuple(
        Fact("==", tuple(sorted({constant(name): 1, constant("c.choice.small"): -1}.items())), 0, False)
        for name in ("x", "y")
    )
    eliminated = CHOICES.eliminate(holes)
    for x, y in itertools.product(range(-1, 5), repeat=2):
        world = World(dict(SIGNATURES), {"x": {(): x}, "y": {(): y}})
        assert any(world.all_hold(cube) for cube in eliminated)


@pytest.mark.parametrize(("count", "kept"), [(1, 1), (4, 1), (5, 2)])
def test_of_cubes_that_differ_in_names_of_choices_one_stays_unless_too_many_have_to_be_tried(
    count: int, kept: int
) -> None:
    """The choices of the one are named backwards: of all orders of four, 24, the last is right. Of five all are 120."""
    names = [f"c.choice.{number}" for number in range(count)]
    choices = Choices(dict.fromkeys([*names, *(name + AFTER for name in names)], IntType()), frozenset({"n_has"}))

    def cube(of: list[str]) -> Conjunction:
        here = [Fact("bool", ("apply", "n_has", (constant(name),)), None, True) for name in of]
        return (
            *here,
            *(Fact("<=", ((constant(low), 1), (constant(high), -1)), 1, True) for low, high in itertools.pairwise(of)),
        )

    cubes = [cube([name + AFTER for name in reversed(names)]), cube(names)]
    assert len(_without_repeated_choices(cubes, choices)) == kept
    assert _without_repeated_choices(cubes, choices)[-1] == cube(names)


class Colour(Enum):
    RED = "red"


def test_questions_of_different_types_have_different_names() -> None:
    """In another order a call may have something else to ask, and the answer to that is another one."""
    simple: list[Type] = [BoolType(), IntType(), IntType(0, 3), IntType(0, None), SortType(Key), EnumType(Colour)]
    types = [
        *simple,
        *(OptionalType(item) for item in simple),
        *(SeqType(item, capacity) for item in simple for capacity in (2, 3)),
        *(TupleType((left, right)) for left in simple for right in simple),
    ]
    assert len(set(map(_kind_of_choice, types))) == len(types)


def test_choices_within_sums_are_renamed_too() -> None:
    def has(name: str) -> Conjunction:
        key = ("sum", ((constant(name), 2), (constant("x"), 1)), 5)
        return (Fact("bool", ("apply", "n_has", (key,)), None, True),)

    assert rename_constants(has("c.choice.int"), {"c.choice.int": "new"}) == has("new")


@pytest.mark.parametrize(("constant_part", "holds"), [(-3, True), (-4, False)])
def test_a_value_is_what_it_is(constant_part: int, holds: bool) -> None:
    is_there = Fact("==", ((("value", 3), 1),), constant_part, True)
    assert Facts().contradictory([is_there]) is not holds
    assert Facts().contradictory([is_there.negated()]) is holds
