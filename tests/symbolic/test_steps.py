"""What the steps of a program keep, against programs that run as a whole on every path."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from commutant.symbolic import Context, Infeasible, Literal, Path, explore
from tests.symbolic.test_context import literals, with_unknowns

parts = st.lists(st.lists(literals, min_size=1, max_size=2), min_size=1, max_size=4)


def _begin(context: Context) -> dict[int, Any]:
    """The unknowns of `new_context`, and what outlives the steps."""
    with_unknowns(context)
    return {}


def _ask(context: Context, kept: dict[int, Any], number: int, questions: list[Literal]) -> None:
    """Asks, makes an unknown and a restriction that depend on the answers, and keeps what was answered."""
    answers = [context.decide(question) for question in questions]
    if all(answers):
        variable = context.new_int(("constant", f"n{number}"), 0, None)
        context.restrict(Literal("<=", (((1, 1), (variable, -1)), 0), None))
    if answers[0] and number == 2:
        raise Infeasible
    context.put(kept, number % 2, (kept.get(number % 2), answers))


def _seen(path: Path[dict[int, Any]]) -> tuple[Any, ...]:
    """All that a path shows."""
    context = path.context
    fresh = [context.is_fresh(index) for index in range(len(context.sort_terms))]
    terms = (tuple(context.bool_terms), tuple(context.int_terms), tuple(context.sort_terms), fresh)
    result = None if path.result is None else dict(path.result)
    return path.decisions, path.feasible, result, tuple(context.restrictions), terms, context.int_solution()


@given(parts)
@settings(max_examples=200, deadline=None)
def test_paths_are_the_same_with_and_without_steps(asked: list[list[Literal]]) -> None:
    def in_steps(context: Context) -> dict[int, Any]:
        kept = context.step(lambda: _begin(context))
        context.first_of([partial(_ask, context, kept, *part) for part in enumerate(asked)])
        return kept

    def as_a_whole(context: Context) -> dict[int, Any]:
        kept = _begin(context)
        for part in enumerate(asked):
            _ask(context, kept, *part)
        return kept

    assert [_seen(path) for path in explore(in_steps)] == [_seen(path) for path in explore(as_a_whole)]


def _counted(runs: list[str], name: str, context: Context) -> Callable[[], str | None]:
    def ask() -> str | None:
        runs.append(name)
        return None if context.decide(Literal("bool", context.new_bool(("constant", name)), None)) else name

    return ask


def test_a_step_runs_once_for_all_paths_that_go_through_it_alike() -> None:
    runs: list[str] = []

    def program(context: Context) -> tuple[str | None, str | None]:
        first = context.step(_counted(runs, "a", context))
        return first, context.step(_counted(runs, "b", context))

    assert [path.result for path in explore(program)] == [(None, None), (None, "b"), ("a", None), ("a", "b")]
    assert runs == ["a", "b", "b", "a", "b", "b"]


def test_steps_behind_the_first_that_returns_something_are_not_made() -> None:
    runs: list[str] = []

    def program(context: Context) -> tuple[str | None, str | None]:
        found = context.first_of([_counted(runs, name, context) for name in ("a", "b")])
        return found, context.step(_counted(runs, "c", context))

    results = [path.result for path in explore(program)]
    assert results == [(None, None), (None, "c"), ("b", None), ("b", "c"), ("a", None), ("a", "c")]
    assert runs == ["a", "b", "c", "c", "b", "c", "c", "a", "c", "c"]
