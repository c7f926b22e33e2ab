"""Linear integer constraints: is a conjunction satisfiable, and by which values?

Branches of models compare sums of a few variables, so constraints are `sum(coefficient * variable) + constant <= 0`, or
`== 0`, or `!= 0`. Equations with a unit coefficient are substituted, the rest is eliminated by Fourier and Motzkin's
method, which is exact over the integers as long as one of the two coefficients that meet is 1 or -1; the few systems
where it is not are handed to Z3. Disequalities are tried on the found solution and split only where they fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

Linear = tuple[tuple[tuple[int, int], ...], int]
"""`((variable, coefficient), ...)` sorted by variable without zero coefficients, and the constant."""

Constraint = tuple[str, Linear]
"""`("<=", linear)`, `("==", linear)` or `("!=", linear)`, each against 0."""


def add(left: Linear, right: Linear, factor: int = 1) -> Linear:
    """`left + factor * right`."""
    if not right[0]:
        return left[0], left[1] + factor * right[1]
    coefficients = dict(left[0])
    for variable, coefficient in right[0]:
        total = coefficients.get(variable, 0) + factor * coefficient
        if total:
            coefficients[variable] = total
        else:
            coefficients.pop(variable, None)
    return tuple(sorted(coefficients.items())), left[1] + factor * right[1]


def scale(linear: Linear, factor: int) -> Linear:
    """`factor * linear`."""
    if factor == 0:
        return (), 0
    return tuple((variable, factor * coefficient) for variable, coefficient in linear[0]), factor * linear[1]


def solve(constraints: Iterable[Constraint]) -> Mapping[int, int] | None:
    """Values for all variables of the constraints that satisfy them, or None if there are none.

    Values are small: as near to the tightest lower bound, or to zero, as the constraints allow.
    """
    return _solve_set(frozenset(constraints))


@lru_cache(maxsize=1 << 14)
def _solve_set(constraints: frozenset[Constraint]) -> dict[int, int] | None:
    """Neighbouring paths ask the same; the same under other names (`_solve_canonical`) takes longer to recognise."""
    ordered = sorted(constraints)
    names: dict[int, int] = {}
    for _, linear in ordered:
        for variable, _ in linear[0]:
            names.setdefault(variable, len(names))
    renamed = tuple((kind, (tuple(sorted((names[v], c) for v, c in linear[0])), linear[1])) for kind, linear in ordered)
    solution = _solve_canonical(renamed)
    return None if solution is None else {variable: solution[index] for variable, index in names.items()}


class Statistics(NamedTuple):
    """How often this process has asked `solve`, and how many of the questions had not been asked before."""

    calls: int
    distinct: int


def statistics() -> Statistics:
    """The counts since this process began."""
    asked = _solve_set.cache_info()
    return Statistics(asked.hits + asked.misses, _solve_canonical.cache_info().misses)


@lru_cache(maxsize=1 << 16)
def _solve_canonical(constraints: tuple[Constraint, ...]) -> dict[int, int] | None:
    inequalities = [linear for kind, linear in constraints if kind == "<="]
    equations = [linear for kind, linear in constraints if kind == "=="]
    different = [linear for kind, linear in constraints if kind == "!="]
    return _solve(inequalities, equations, different, {v for _, linear in constraints for v, _ in linear[0]})


def _solve(
    inequalities: list[Linear], equations: list[Linear], different: list[Linear], variables: set[int]
) -> dict[int, int] | None:
    try:
        solution = _eliminate(inequalities, equations, variables)
    except _NotExact:
        return _solve_with_z3(inequalities, equations, different, variables)
    if solution is None:
        return None
    for linear in different:
        if value_of(linear, solution) == 0:
            moved = _move(linear, solution, inequalities, equations, different)
            if moved is not None:
                return moved
            rest = [other for other in different if other is not linear]
            below = add(linear, ((), 1))
            above = add(scale(linear, -1), ((), 1))
            for side in (above, below):
                found = _solve([*inequalities, side], equations, rest, variables)
                if found is not None:
                    return found
            return None
    return solution


def _move(
    broken: Linear,
    solution: dict[int, int],
    inequalities: list[Linear],
    equations: list[Linear],
    different: list[Linear],
) -> dict[int, int] | None:
    """The solution with one variable of the broken disequality moved to the next value that no disequality forbids, if
    that breaks nothing else: long chains of `x != 0, x != 1, ...` need no split."""
    for variable, _ in broken[0]:
        forbidden = set()
        for linear in different:
            coefficient = dict(linear[0]).get(variable)
            if coefficient:
                value, remainder = divmod(coefficient * solution[variable] - value_of(linear, solution), coefficient)
                if not remainder:
                    forbidden.add(value)
        for step in (1, -1):
            value = solution[variable]
            while value in forbidden:
                value += step
            moved = {**solution, variable: value}
            if (
                all(value_of(linear, moved) <= 0 for linear in inequalities)
                and all(value_of(linear, moved) == 0 for linear in equations)
                and all(value_of(linear, moved) != 0 for linear in different)
            ):
                return moved
    return None


class _NotExact(Exception):
    """Elimination would lose exactness over the integers."""


def _eliminate(
    inequalities: Sequence[Linear], equations: Sequence[Linear], variables: set[int]
) -> dict[int, int] | None:
    pending = list(equations)
    rest = list(inequalities)
    steps: list[tuple[int, Linear | None, list[Linear], list[Linear]]] = []
    while pending:
        equation = pending.pop()
        if not equation[0]:
            if equation[1]:
                return None
            continue
        unit = next(((v, c) for v, c in equation[0] if c in (1, -1)), None)
        if unit is None:
            raise _NotExact
        variable, coefficient = unit
        # variable == definition
        definition = scale(add(equation, (((variable, coefficient),), 0), -1), -coefficient)
        pending = [_substitute(linear, variable, definition) for linear in pending]
        rest = [_substitute(linear, variable, definition) for linear in rest]
        steps.append((variable, definition, [], []))
    remaining = {v for linear in rest for v, _ in linear[0]}
    while remaining:
        variable = min(remaining, key=lambda v: (_growth(rest, v), v))
        remaining.discard(variable)
        lower: list[Linear] = []
        upper: list[Linear] = []
        others: list[Linear] = []
        for linear in rest:
            coefficient = dict(linear[0]).get(variable, 0)
            (upper if coefficient > 0 else lower if coefficient < 0 else others).append(linear)
        for low in lower:
            for high in upper:
                a, b = -dict(low[0])[variable], dict(high[0])[variable]
                if a != 1 and b != 1:
                    raise _NotExact
                others.append(add(scale(low, b), scale(high, a)))
        rest = list(set(others))
        steps.append((variable, None, lower, upper))
    if any(linear[1] > 0 for linear in rest if not linear[0]):
        return None
    solution: dict[int, int] = {}
    determined = {variable for variable, *_ in steps}
    for variable in variables - determined:
        solution[variable] = 0
    for variable, known, below, above in reversed(steps):
        if known is not None:
            for free, _ in known[0]:
                solution.setdefault(free, 0)
            solution[variable] = value_of(known, solution)
            continue
        lows = [_bound(linear, variable, solution) for linear in below]
        highs = [_bound(linear, variable, solution) for linear in above]
        lowest, highest = max(lows, default=None), min(highs, default=None)
        if lowest is not None and highest is not None and lowest > highest:
            return None
        solution[variable] = lowest if lowest is not None else 0 if highest is None else min(0, highest)
    return solution


def value_of(linear: Linear, values: dict[int, int]) -> int:
    """The value of a linear expression; every variable must have one."""
    return linear[1] + sum(coefficient * values[variable] for variable, coefficient in linear[0])


def _growth(constraints: Sequence[Linear], variable: int) -> int:
    signs = [dict(linear[0]).get(variable, 0) for linear in constraints]
    return sum(s > 0 for s in signs) * sum(s < 0 for s in signs)


def _substitute(linear: Linear, variable: int, definition: Linear) -> Linear:
    coefficient = dict(linear[0]).get(variable)
    if coefficient is None:
        return linear
    return add(add(linear, (((variable, coefficient),), 0), -1), definition, coefficient)


def _bound(linear: Linear, variable: int, values: dict[int, int]) -> int:
    """The bound that `linear <= 0` sets on `variable`: its lowest value if its coefficient is negative, else the
    highest."""
    coefficient = dict(linear[0])[variable]
    rest = linear[1] + sum(c * values.setdefault(v, 0) for v, c in linear[0] if v != variable)
    return -(-rest // -coefficient) if coefficient < 0 else (-rest) // coefficient


def _solve_with_z3(
    inequalities: list[Linear], equations: list[Linear], different: list[Linear], variables: set[int]
) -> dict[int, int] | None:
    import z3  # rarely needed, and slow to import

    solver = z3.Solver()
    unknown = {variable: z3.Int(f"v{variable}") for variable in variables}

    def term(linear: Linear) -> z3.ArithRef:
        return z3.IntVal(linear[1]) + sum(coefficient * unknown[variable] for variable, coefficient in linear[0])

    solver.add([term(linear) <= 0 for linear in inequalities])
    solver.add([term(linear) == 0 for linear in equations])
    solver.add([term(linear) != 0 for linear in different])
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    return {variable: model.eval(name, model_completion=True).as_long() for variable, name in unknown.items()}
