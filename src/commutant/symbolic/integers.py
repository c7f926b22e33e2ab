"""Linear integer constraints: is a conjunction satisfiable, and by which values?

Branches of models compare sums of a few variables, so constraints are `sum(coefficient * variable) + constant <= 0`, or
`== 0`, or `!= 0`. `solve` is native (crate `symbolic`): it substitutes equations with a unit coefficient and eliminates
the rest by Fourier and Motzkin's method. That is exact over the integers as long as one of the two coefficients that
meet is 1 or -1; the few systems where it is not, or whose numbers leave 64 bits, are handed to Z3. That is an extra,
since it is larger than all the rest together, and few models need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from commutant._native import add, scale, solve, solver_statistics, value_of
from commutant.support import UsageError

__all__ = ["Constraint", "Linear", "Statistics", "add", "scale", "solve", "solve_with_z3", "statistics", "value_of"]

Linear = tuple[tuple[tuple[int, int], ...], int]
"""`((variable, coefficient), ...)` sorted by variable without zero coefficients, and the constant."""

Constraint = tuple[str, Linear]
"""`("<=", linear)`, `("==", linear)` or `("!=", linear)`, each against 0."""


class Statistics(NamedTuple):
    """How often this thread has asked `solve`, and how many of the questions had not been asked before."""

    calls: int
    distinct: int


def statistics() -> Statistics:
    """The counts since the thread began."""
    return Statistics(*solver_statistics())


def solve_with_z3(
    inequalities: Sequence[Linear], equations: Sequence[Linear], different: Sequence[Linear], variable_count: int
) -> list[int] | None:
    """Values of the variables for which each inequality is at most 0, each equation 0 and each of the others not; None
    if there are none. Raises UsageError if Z3 is not installed."""
    try:
        import z3  # rarely needed, and slow to import
    except ImportError:
        raise UsageError(
            "the model's integers need Z3, a package that is not installed: pip install 'commutant[z3]'"
        ) from None

    solver = z3.Solver()
    unknown = [z3.Int(f"v{variable}") for variable in range(variable_count)]

    def term(linear: Linear) -> z3.ArithRef:
        return z3.IntVal(linear[1]) + sum(coefficient * unknown[variable] for variable, coefficient in linear[0])

    solver.add([term(linear) <= 0 for linear in inequalities])
    solver.add([term(linear) == 0 for linear in equations])
    solver.add([term(linear) != 0 for linear in different])
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    return [model.eval(name, model_completion=True).as_long() for name in unknown]
