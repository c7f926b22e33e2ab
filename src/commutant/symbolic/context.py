"""One run of a program over unknown values: what has been decided on the way, and what follows from it.

A branch on an unknown asks `Context.decide` for one literal: a boolean unknown, an equality of two values of a sort, or
a linear comparison of integers. If the literal or its negation follows from what was decided before, that is the answer
and no branch. Otherwise both sides are possible, and the context takes the side that its prefix prescribes, or the true
side if the prefix is used up. So a path is a conjunction of literals, and no solver is needed to follow it: booleans
are looked up, sorts are a union-find with disequalities, integers ask `integers.solve` about the constraints they are
connected with.

A context serves all paths of a program, one after the other. Going back to where the next path leaves the last one
takes back what came behind: a log notes with each change what undoes it. So what a `step` of the program made, its
unknowns and states included, stands for every path that goes through it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from commutant.errors import UsageError
from commutant.symbolic import integers
from commutant.symbolic.integers import Constraint, Linear

T = TypeVar("T")

Term = tuple[Any, ...]
"""What an unknown stands for, in the model's own names: `("constant", name)` or `("apply", function, arguments)` with
arguments that are terms, integers or booleans; or, since few terms are ever read, an object that has them as its
attribute `arguments`."""

MAX_DECISIONS_PER_PATH = 500

_NOTHING: frozenset[int] = frozenset()

_ABSENT: Any = object()

NOT_DETERMINISTIC = (
    "the model is not deterministic: run again with the same values, it asked something else; "
    "use choose() for what the specification leaves open"
)


class Literal(NamedTuple):
    """An atomic statement: kind `bool` (an unknown), `same` (two values of a sort) or `<=`, `==` (a linear expression
    against 0). Operands are indices of unknowns, or a `Linear`."""

    kind: str
    left: Any
    right: Any


class Decision(NamedTuple):
    """A literal and the side taken."""

    literal: Literal
    holds: bool


class Infeasible(Exception):
    """The path contradicts a restriction that the model puts on its states: it says nothing about commutativity."""


Change = tuple[Callable[..., object], tuple[Any, ...]]
"""What takes a change back: a function and its arguments."""


class Context:
    """The unknowns, decisions and consequences of one path; `prefix` prescribes its first decisions.

    `trail` holds the branches taken. `restrictions` holds what was taken for granted without a branch. While
    `in_restriction`, branches ask what the model demands of its states; `restricted` are the positions in the trail of
    those about presence and flags, which a reader need not be told. `may_share` is set where a record that a state
    holds was stored again.
    """

    def __init__(self, prefix: tuple[Decision, ...] = ()) -> None:
        self.prefix = prefix
        self.trail: list[Decision] = []
        self.restrictions: list[Decision] = []
        self.in_restriction = False
        self.restricted: set[int] = set()
        self.may_share = False
        self.bool_terms: list[Term] = []
        self.int_terms: list[Term] = []
        self.sort_terms: list[Term] = []
        self.sort_names: list[str] = []
        self.fresh: set[int] = set()
        self.bool_usual: dict[int, bool] = {}
        self.content_sorts: set[str] = set()
        self.constants: dict[int, int] = {}
        self.bool_values: dict[int, bool] = {}
        self._steps: list[tuple[int, int, Any]] = []
        self._next_step = 0
        self._log: list[Change] = []
        self._drop_bool: Change = (self.bool_terms.pop, ())
        self._drop_int: Change = (self.int_terms.pop, ())
        self._drop_sort_value: tuple[Change, ...] = ((self.sort_terms.pop, ()), (self.sort_names.pop, ()))
        self._drop_restriction: Change = (self.restrictions.pop, ())
        self._parent: dict[int, int] = {}
        self._distinct: dict[int, frozenset[int]] = {}
        self._compared: dict[Literal, bool] = {}
        self._constraints_of: dict[int, tuple[Constraint, ...]] = {}

    def fork(self) -> Context:
        """A context in which as much is decided as in this one, and from which both go on alone.

        They share the unknowns: none may come into being any more in either.
        """
        fork = Context.__new__(Context)
        fork.__dict__.update(self.__dict__)
        fork._log = []
        fork.trail = self.trail.copy()
        fork.restrictions = self.restrictions.copy()
        fork.restricted = self.restricted.copy()
        fork.bool_values = self.bool_values.copy()
        fork._parent = self._parent.copy()
        fork._distinct = self._distinct.copy()
        fork._compared = self._compared.copy()
        fork._constraints_of = self._constraints_of.copy()
        return fork

    # -- paths

    def step(self, function: Callable[[], T]) -> T:
        """What a part of the program returns: it runs unless a path before has gone through it in the same way.

        All that has come into being or was changed in it stands as if it had run. So it changes what it did not make
        itself by way of `put` and `undo_with` alone, unknowns come into being in steps or behind the last one, and the
        program asks for the same steps again where it has decided the same. No step is part of another.
        """
        number = self._next_step
        self._next_step = number + 1
        if number < len(self._steps):
            kept: T = self._steps[number][2]
            return kept
        result = function()
        self._steps.append((len(self.trail), len(self._log), result))
        return result

    def first_of(self, functions: Sequence[Callable[[], T | None]]) -> T | None:
        """What the first of several steps returns that does not return None; those behind it are not made."""
        steps, trail, log = self._steps, self.trail, self._log
        kept = min(len(functions), len(steps) - self._next_step)
        self._next_step += kept
        result: T | None = steps[self._next_step - 1][2] if kept else None
        if result is None:
            for function in functions[kept:]:
                result = function()
                steps.append((len(trail), len(log), result))
                if result is not None:
                    break
            self._next_step = len(steps)
        return result

    def put(self, mapping: dict[Any, Any], key: Any, value: Any) -> None:
        """Sets a key of a mapping that outlives the step."""
        before = mapping.get(key, _ABSENT)
        self._log.append((mapping.pop, (key,)) if before is _ABSENT else (mapping.__setitem__, (key, before)))
        mapping[key] = value

    def undo_with(self, function: Callable[..., object], *arguments: Any) -> None:
        """Says what takes a change back that the step is about to make."""
        self._log.append((function, arguments))

    def go_back(self, prefix: tuple[Decision, ...]) -> None:
        """Begins the path with these decisions: all but the last are those of the path before. Keeps the steps in which
        none but those were taken."""
        self.prefix = prefix
        self.may_share = False
        steps = self._steps
        while steps and steps[-1][0] >= len(prefix):
            steps.pop()
        self._next_step = 0
        decisions, changes, _ = steps[-1] if steps else (0, 0, None)
        del self.trail[decisions:]
        undone = self._log[changes:]
        del self._log[changes:]
        for function, arguments in reversed(undone):
            function(*arguments)

    # -- unknowns

    def new_bool(self, term: Term) -> int:
        """The index of a new boolean unknown."""
        self.bool_terms.append(term)
        self._log.append(self._drop_bool)
        return len(self.bool_terms) - 1

    def new_int(self, term: Term, low: int | None, high: int | None) -> int:
        """The index of a new integer unknown with inclusive bounds (None: unbounded)."""
        self.int_terms.append(term)
        self._log.append(self._drop_int)
        index = len(self.int_terms) - 1
        if low is not None:
            self._constrain(("<=", (((index, -1),), low)))
        if high is not None:
            self._constrain(("<=", (((index, 1),), -high)))
        return index

    def new_sort_value(self, sort: str, term: Term, *, fresh: bool = False) -> int:
        """The index of a new value of a sort; a fresh one differs from every value that is not fresh."""
        self.sort_terms.append(term)
        self.sort_names.append(sort)
        self._log += self._drop_sort_value
        index = len(self.sort_terms) - 1
        if fresh:
            self.fresh.add(index)
            self._log.append((self.fresh.discard, (index,)))
        return index

    # -- decisions

    def decide(self, literal: Literal) -> bool:
        """Whether the literal holds on this path."""
        position = len(self.trail)
        if position < len(self.prefix) and self.prefix[position].literal == literal:
            # It was open when the run before came here, and this run has decided the same until now.
            return self.branch(literal)
        known = self.implied(literal)
        return self.branch(literal) if known is None else known

    def branch(self, literal: Literal) -> bool:
        """Which side of an open literal this path takes."""
        position = len(self.trail)
        if position < len(self.prefix):
            recorded = self.prefix[position]
            if recorded.literal != literal:
                raise UsageError(NOT_DETERMINISTIC)
        else:
            if position >= MAX_DECISIONS_PER_PATH:
                raise UsageError(
                    f"the model took more than {MAX_DECISIONS_PER_PATH} decisions on one path: "
                    "expected calls that end; is a loop without bound?"
                )
            recorded = Decision(literal, True)
        if self.in_restriction and literal.kind == "bool":
            self.restricted.add(position)
            self._log.append((self.restricted.discard, (position,)))
        self.trail.append(recorded)
        self._assert(literal, recorded.holds)
        return recorded.holds

    def restrict(self, literal: Literal, holds: bool = True) -> None:
        """Excludes states in which the literal is not as said; Infeasible if this path needs such a state."""
        known = self.implied(literal)
        if known is None:
            self.restrictions.append(Decision(literal, holds))
            self._log.append(self._drop_restriction)
            self._assert(literal, holds)
        elif known != holds:
            raise Infeasible

    def assume(self, literal: Literal, holds: bool) -> None:
        """Decides an open literal without asking the prefix."""
        self.trail.append(Decision(literal, holds))
        self._assert(literal, holds)

    def implied(self, literal: Literal) -> bool | None:
        """The truth of the literal if what was decided settles it, else None."""
        if literal.kind == "bool":
            return self.bool_values.get(literal.left)
        if literal.kind == "same":
            return self.implied_same(literal.left, literal.right)
        known = self._compared.get(literal)
        return self._implied_linear(literal.kind, literal.left) if known is None else known

    def _assert(self, literal: Literal, holds: bool) -> None:
        if literal.kind == "bool":
            self.bool_values[literal.left] = holds
            self._log.append((self.bool_values.pop, (literal.left,)))
        elif literal.kind == "same":
            self._assert_same(literal.left, literal.right, holds)
        else:
            self.put(self._compared, literal, holds)
            self._constrain(_constraint(literal.kind, literal.left, holds))

    # -- sorts

    def find(self, index: int) -> int:
        """The representative of the values that are known to equal this one."""
        parent = self._parent
        while index in parent:
            index = parent[index]
        return index

    def implied_same(self, left: int, right: int) -> bool | None:
        """Whether two values of a sort are equal, if what was decided settles it, else None."""
        parent = self._parent
        while left in parent:
            left = parent[left]
        while right in parent:
            right = parent[right]
        if left == right:
            return True
        if left in self._distinct and right in self._distinct[left]:
            return False
        if self.fresh and (left in self.fresh) != (right in self.fresh):
            return False
        return None

    def _assert_same(self, left: int, right: int, holds: bool) -> None:
        left, right = self.find(left), self.find(right)
        distinct, put = self._distinct, self.put
        if not holds:
            put(distinct, left, distinct.get(left, _NOTHING) | {right})
            put(distinct, right, distinct.get(right, _NOTHING) | {left})
            return
        low, high = min(left, right), max(left, right)
        put(self._parent, high, low)
        others = distinct.get(high)
        if others:
            put(distinct, low, distinct.get(low, _NOTHING) | others)
            for other in others:
                put(distinct, other, distinct[other] - {high} | {low})

    # -- integers

    def _constrain(self, constraint: Constraint) -> None:
        for variable, _ in constraint[1][0]:
            self.put(self._constraints_of, variable, (*self._constraints_of.get(variable, ()), constraint))

    def _connected(self, linear: Linear) -> set[Constraint]:
        found: set[Constraint] = set()
        seen: set[int] = set()
        queue = [variable for variable, _ in linear[0]]
        while queue:
            variable = queue.pop()
            if variable in seen:
                continue
            seen.add(variable)
            for constraint in self._constraints_of.get(variable, ()):
                if constraint not in found:
                    found.add(constraint)
                    queue.extend(other for other, _ in constraint[1][0])
        return found

    def _implied_linear(self, kind: str, linear: Linear) -> bool | None:
        if not linear[0]:
            return linear[1] <= 0 if kind == "<=" else linear[1] == 0
        connected = self._connected(linear)
        if not connected and any(coefficient in (1, -1) for _, coefficient in linear[0]):
            return None
        # What one solution shows need not be asked: only the other side is in doubt.
        known = integers.solve(connected) or {}
        shown = linear[1] + sum(coefficient * known.get(variable, 0) for variable, coefficient in linear[0])
        side = shown <= 0 if kind == "<=" else shown == 0
        other = integers.solve((*connected, _constraint(kind, linear, not side)))
        return side if other is None else None

    def int_solution(self) -> dict[int, int]:
        """Small values for all integer unknowns that satisfy every decision."""
        solution: dict[int, int] = {}
        for variable in range(len(self.int_terms)):
            if variable not in solution:
                constraints: Iterable[Constraint] = self._constraints_of.get(variable, ())
                if any(len(linear[0]) > 1 for _, linear in constraints):  # else none is connected with another
                    constraints = self._connected((((variable, 1),), 0))
                solution.update(integers.solve(constraints) or {variable: 0})
        return solution

    def constrained_ints(self) -> set[int]:
        """The integer unknowns that some decision or restriction (bounds apart) mentions."""
        decided = [*self.trail, *self.restrictions]
        return {v for d in decided if d.literal.kind in ("<=", "==") for v, _ in d.literal.left[0]}


def _constraint(kind: str, linear: Linear, holds: bool) -> Constraint:
    if kind == "==":
        return ("==" if holds else "!=", linear)
    return ("<=", linear if holds else integers.add(((), 1), linear, -1))


class _Thread(threading.local):
    """The context of the run that a thread is in."""

    context: Context | None = None


_thread = _Thread()


def current() -> Context:
    """The context of the run under way."""
    context = _thread.context
    assert context is not None, "an unknown value was used outside of symbolic exploration"
    return context


def install(context: Context | None) -> Context | None:
    """Makes a context the current one and returns the one before."""
    before, _thread.context = _thread.context, context
    return before
