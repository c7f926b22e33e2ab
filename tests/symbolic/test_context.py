"""What a context says follows from its decisions, against Z3."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from commutant.support.errors import UsageError
from commutant.symbolic import Context, Infeasible, Literal, explore
from commutant.symbolic.engine import Decision

SORTED, FRESH, INTS, BOOLS = 4, 2, 3, 2

sames = st.tuples(st.integers(0, SORTED + FRESH - 1), st.integers(0, SORTED + FRESH - 1)).map(
    lambda pair: Literal("same", *sorted(pair))
)
bools = st.integers(0, BOOLS - 1).map(lambda index: Literal("bool", index, None))
comparisons = st.builds(
    lambda kind, row, constant: Literal(kind, (tuple((v, c) for v, c in enumerate(row) if c), constant), None),
    st.sampled_from(["<=", "=="]),
    st.lists(st.sampled_from([-1, 0, 1]), min_size=INTS, max_size=INTS),
    st.integers(-3, 3),
)
literals = st.one_of(sames, bools, comparisons)


class Mirror:
    """The unknowns of a context in Z3. Fresh values differ from all others."""

    def __init__(self) -> None:
        sort = z3.DeclareSort("S")
        self.values = [z3.Const(f"s{i}", sort) for i in range(SORTED + FRESH)]
        self.bools = [z3.Bool(f"b{i}") for i in range(BOOLS)]
        self.ints = [z3.Int(f"i{i}") for i in range(INTS)]
        self.solver = z3.Solver()
        self.solver.add([self.values[i] != self.values[SORTED + j] for i in range(SORTED) for j in range(FRESH)])
        self.solver.add(self.ints[0] >= 0, self.ints[0] <= 2)

    def formula(self, literal: Literal) -> z3.BoolRef:
        if literal.kind == "same":
            return self.values[literal.left] == self.values[literal.right]
        if literal.kind == "bool":
            return self.bools[literal.left]
        coefficients, constant = literal.left
        total = z3.Sum([c * self.ints[v] for v, c in coefficients]) + constant
        return total <= 0 if literal.kind == "<=" else total == 0

    def implied(self, literal: Literal) -> bool | None:
        if self.solver.check(z3.Not(self.formula(literal))) == z3.unsat:
            return True
        return False if self.solver.check(self.formula(literal)) == z3.unsat else None


def new_context() -> Context:
    return with_unknowns(Context())


def with_unknowns(context: Context) -> Context:
    for i in range(SORTED):
        context.new_sort_value("S", ("constant", f"s{i}"))
    for i in range(FRESH):
        context.new_sort_value("S", ("constant", f"f{i}"), fresh=True)
    for i in range(BOOLS):
        context.new_bool(("constant", f"b{i}"))
    context.new_int(("constant", "i0"), 0, 2)
    for i in range(1, INTS):
        context.new_int(("constant", f"i{i}"), None, None)
    return context


@given(st.lists(st.tuples(literals, st.booleans()), max_size=10), literals)
@settings(max_examples=200, deadline=None)
def test_implications(decisions: list[tuple[Literal, bool]], question: Literal) -> None:
    context, mirror = new_context(), Mirror()
    for literal, holds in decisions:
        expected = mirror.implied(literal)
        assert context.implied(literal) == expected, literal
        if expected is None:
            context.restrict(literal, holds)
            mirror.solver.add(mirror.formula(literal) == holds)
        elif expected != holds:
            with pytest.raises(Infeasible):
                context.restrict(literal, holds)
    assert context.implied(question) == mirror.implied(question)
    solution = context.int_solution()
    assert mirror.solver.check([mirror.ints[v] == value for v, value in solution.items()]) == z3.sat


@given(st.lists(literals, min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_paths_are_disjoint_and_complete(questions: list[Literal]) -> None:
    """Whatever a program asks, its paths split all states into parts, none of them empty."""

    def program(context: Context) -> None:
        with_unknowns(context)
        for question in questions:
            context.decide(question)

    mirror = Mirror()
    paths = [z3.And([mirror.formula(q) == holds for q, holds in p.decisions]) for p in explore(program)]
    assert all(mirror.solver.check(path) == z3.sat for path in paths)
    assert mirror.solver.check(z3.Not(z3.Or(paths))) == z3.unsat
    for number, path in enumerate(paths):
        assert mirror.solver.check(z3.And(path, z3.Or(paths[:number]))) == z3.unsat


def bools_asked(*indices: int) -> Callable[[Context], tuple[bool, ...]]:
    def program(context: Context) -> tuple[bool, ...]:
        for index in range(BOOLS):
            context.new_bool(("constant", f"b{index}"))
        return tuple(context.decide(Literal("bool", index, None)) for index in indices)

    return program


def test_a_question_asked_twice_is_one_branch() -> None:
    assert [path.result for path in explore(bools_asked(0, 0))] == [(True, True), (False, False)]


def test_paths_come_depth_first() -> None:
    order = [path.result for path in explore(bools_asked(0, 1))]
    assert order == [(True, True), (True, False), (False, True), (False, False)]


def test_too_many_paths_are_refused() -> None:
    with pytest.raises(UsageError, match="more than 3 paths"):
        list(explore(bools_asked(0, 1), max_paths=3))


def test_a_program_that_asks_something_else_the_second_time_is_refused() -> None:
    asked = iter([(0, 1), (1, 0)])

    with pytest.raises(UsageError, match="not deterministic"):
        list(explore(lambda context: bools_asked(*next(asked))(context)))


def test_a_program_that_asks_less_the_second_time_is_refused() -> None:
    asked = iter([(0, 1), (), (), ()])

    with pytest.raises(UsageError, match="not deterministic"):
        list(explore(lambda context: bools_asked(*next(asked))(context)))


def test_a_path_without_end_is_refused() -> None:
    def program(context: Context) -> None:
        while True:
            context.decide(Literal("bool", context.new_bool(("constant", "b")), None))

    with pytest.raises(UsageError, match="loop without bound"):
        list(explore(program))


def test_an_excluded_path_is_yielded_as_such() -> None:
    def program(context: Context) -> str:
        index = context.new_bool(("constant", "b"))
        context.restrict(Literal("bool", index, None), True)
        if not context.decide(Literal("bool", index, None)):
            raise AssertionError("the restriction is not honoured")
        other = context.new_bool(("constant", "c"))
        if context.decide(Literal("bool", other, None)):
            raise Infeasible
        return "reached"

    assert [(path.feasible, path.result) for path in explore(program)] == [(False, None), (True, "reached")]
    assert [path.decisions for path in explore(program)] == [
        (Decision(Literal("bool", 1, None), True),),
        (Decision(Literal("bool", 1, None), False),),
    ]


@given(
    st.lists(st.tuples(literals, st.booleans()), max_size=8), st.lists(st.tuples(literals, st.booleans()), max_size=4)
)
@settings(max_examples=100, deadline=None)
def test_what_is_taken_back_leaves_no_trace(
    before: list[tuple[Literal, bool]], after: list[tuple[Literal, bool]]
) -> None:
    """What is assumed follows as if it had been decided from the start; taken back, as if it never had been."""
    context, again = new_context(), new_context()
    for one in (context, again):
        _assume_all(one, before)
    questions = [literal for literal, _ in (*before, *after)]
    known = [context.implied(question) for question in questions]
    trail, solution = context.trail, context.int_solution()
    for _ in range(2):
        mark = context.mark()
        _assume_all(context, after)
        _assume_all(again, after)
        assert [context.implied(one) for one in questions] == [again.implied(one) for one in questions]
        assert (context.trail, context.int_solution()) == (again.trail, again.int_solution())
        context.take_back(mark)
        assert [context.implied(question) for question in questions] == known
        assert (context.trail, context.int_solution()) == (trail, solution)


def _assume_all(context: Context, decisions: list[tuple[Literal, bool]]) -> None:
    for literal, holds in decisions:
        if context.implied(literal) is None:
            context.assume(literal, holds)


def test_values_of_another_run_are_refused() -> None:
    """A value that a model kept outside of its state was a panic: its index is beyond what this run has made."""
    context = Context()
    assert not context.is_fresh(7)
    assert context.find(7) == 7
    for question in (Literal("same", 0, 7), Literal("bool", 7, None)):
        with pytest.raises(UsageError, match="keep nothing outside of the state"):
            context.implied(question)
