"""Long chains of comparisons: what a loop over an unknown number makes of the engine."""

from __future__ import annotations

from commutant.symbolic import Context, IntValue, explore
from commutant.symbolic.integers import Constraint, solve


def test_a_chain_of_disequalities_is_followed_without_a_split() -> None:
    """x >= 0 and x is none of 0..1999: splitting would recurse once per hole."""
    system: list[Constraint] = [("<=", (((0, -1),), 0)), *(("!=", (((0, 1),), -hole)) for hole in range(2000))]
    assert solve(system) == {0: 2000}


def test_a_loop_asks_each_question_once() -> None:
    """The second walk over the same numbers gets what the first has found."""

    def count_down(context: Context) -> int:
        unknown = IntValue.variable(context.new_int(("constant", "x"), 0, 40))
        steps = [0, 0]
        for walk in range(2):
            left = unknown
            while left != 0:
                left = left - 1
                steps[walk] += 1
        assert steps[0] == steps[1]
        return steps[0]

    assert [path.result for path in explore(count_down)] == list(range(41))
