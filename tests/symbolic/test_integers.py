"""The integer solver against Z3 and against its own answers."""

from __future__ import annotations

import sys

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from commutant.support.errors import UsageError
from commutant.symbolic import IntValue
from commutant.symbolic.integers import Constraint, Linear, add, scale, solve, value_of

VARIABLES = 4


def linears(coefficients: st.SearchStrategy[int]) -> st.SearchStrategy[Linear]:
    return st.builds(
        lambda row, constant: (tuple((v, c) for v, c in enumerate(row) if c), constant),
        st.lists(coefficients, min_size=VARIABLES, max_size=VARIABLES),
        st.integers(-6, 6),
    )


def constraints(coefficients: st.SearchStrategy[int], most: int) -> st.SearchStrategy[list[Constraint]]:
    return st.lists(st.tuples(st.sampled_from(["<=", "==", "!="]), linears(coefficients)), max_size=most)


def in_z3(system: list[Constraint]) -> z3.BoolRef:
    unknowns = [z3.Int(f"v{number}") for number in range(VARIABLES)]
    formulas = []
    for kind, (coefficients, constant) in system:
        total = z3.Sum([c * unknowns[v] for v, c in coefficients]) + constant
        formulas.append(total <= 0 if kind == "<=" else total == 0 if kind == "==" else total != 0)
    return z3.And(formulas)


def satisfied(constraint: Constraint, values: dict[int, int]) -> bool:
    kind, linear = constraint
    value = value_of(linear, values)
    return value <= 0 if kind == "<=" else value == 0 if kind == "==" else value != 0


def agrees_with_z3(system: list[Constraint]) -> None:
    solver = z3.Solver()
    solver.add(in_z3(system))
    answer = solver.check()
    assert answer != z3.unknown
    solution = solve(system)
    assert (solution is not None) == (answer == z3.sat), system
    if solution is not None:
        assert all(satisfied(constraint, solution) for constraint in system), (system, solution)


@given(constraints(st.sampled_from([-1, 0, 0, 1]), 9))
@settings(max_examples=300, deadline=None)
def test_unit_coefficients_as_models_compare(system: list[Constraint]) -> None:
    agrees_with_z3(system)


@given(constraints(st.integers(-3, 3), 7))
@settings(max_examples=300, deadline=None)
def test_any_coefficients(system: list[Constraint]) -> None:
    agrees_with_z3(system)


@pytest.mark.long
@given(constraints(st.integers(-5, 5), 12))
@settings(max_examples=10_000, deadline=None)
def test_any_coefficients_at_length(system: list[Constraint]) -> None:
    agrees_with_z3(system)


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(0, 5))
def test_disequalities_that_fill_a_range(holes: list[int], top: int) -> None:
    """0 <= x <= top without the holes has a value as long as one is left."""
    system: list[Constraint] = [("<=", (((0, -1),), 0)), ("<=", (((0, 1),), -top))]
    system += [("!=", (((0, 1),), -hole)) for hole in holes]
    left = set(range(top + 1)) - set(holes)
    solution = solve(system)
    assert (solution is None) == (not left)
    assert solution is None or solution[0] in left


def test_no_constraint_needs_no_value() -> None:
    assert solve([]) == {}


def test_constants_alone() -> None:
    assert solve([("<=", ((), 0)), ("!=", ((), 1))]) == {}
    assert solve([("<=", ((), 1))]) is None
    assert solve([("==", ((), 1))]) is None
    assert solve([("!=", ((), 0))]) is None


def test_parity_needs_integers() -> None:
    """2x = 2y + 1 has a rational solution only."""
    assert solve([("==", (((0, 2), (1, -2)), -1))]) is None


def test_numbers_may_leave_64_bits_on_the_way() -> None:
    """x = 2^62, y = 2x - 2^62: the solution fits, twice 2^62 does not."""
    large = 1 << 62
    assert solve([("==", (((0, 1),), -large)), ("==", (((0, -2), (1, 1)), large))]) == {0: large, 1: large}


def test_what_does_not_fit_into_64_bits_is_refused() -> None:
    """Not cut off: the sum of two large numbers would be a small one."""
    large = (1 << 63) - 1
    for ask in (
        lambda: add(((), large), ((), 1)),
        lambda: scale((((0, large),), 0), 2),
        lambda: value_of((((0, 2),), 0), {0: large}),
        lambda: solve([("<=", ((), large + 1))]),
        lambda: IntValue.variable(0) + (large + 1),
        lambda: IntValue.variable(0) <= 1 << 70,
    ):
        with pytest.raises(UsageError, match="64 bits"):
            ask()


INEXACT: list[Constraint] = [("<=", (((0, 3), (1, -5)), 1)), ("<=", (((0, -3), (1, 5)), -2))]
"""-2 <= 3x - 5y <= -1: no coefficient is 1 or -1, so that elimination alone does not know."""


def test_without_z3_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = solve(INEXACT)
    assert expected is not None and all(satisfied(constraint, expected) for constraint in INEXACT)
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(UsageError, match=r"^the model's integers need Z3, .*: pip install 'commutant\[z3\]'$") as error:
        solve([*INEXACT, ("<=", (((2, 1),), 0))])
    assert "\n" not in str(error.value)
    assert solve([("<=", (((0, -1),), 7))]) == {0: 7}, "what needs no Z3 is answered as ever"


def test_values_are_small() -> None:
    assert solve([("<=", (((0, -1),), 3))]) == {0: 3}
    assert solve([("<=", (((0, 1),), 4))]) == {0: -4}
    assert solve([("<=", (((0, 1),), -4))]) == {0: 0}


@given(
    linears(st.integers(-3, 3)),
    linears(st.integers(-3, 3)),
    st.integers(-3, 3),
    st.lists(st.integers(-9, 9), min_size=4, max_size=4),
)
def test_sums_and_multiples(left: Linear, right: Linear, factor: int, values: list[int]) -> None:
    at = dict(enumerate(values))
    total = add(left, right, factor)
    assert value_of(total, at) == value_of(left, at) + factor * value_of(right, at)
    assert value_of(scale(left, factor), at) == factor * value_of(left, at)
    assert all(coefficient for _, coefficient in total[0])
    assert [variable for variable, _ in total[0]] == sorted({variable for variable, _ in total[0]})
