"""The native engine (crate `symbolic`): contexts, unknown values, maps of unknown content, and effects of runs.

**Contexts**: one run of a program over unknown values: what has been decided on the way, and what follows from it.

A branch on an unknown asks the current context for one literal: a boolean unknown, an equality of two values of a sort,
or a linear comparison of integers. If the literal or its negation follows from what was decided before, that is the
answer and no branch. Otherwise both sides are possible, and the context takes the side that its prefix prescribes, or
the true side if the prefix is used up. So a path is a conjunction of literals, and no solver is needed to follow it:
booleans are looked up, sorts are a union-find with disequalities, integers ask `integers.solve` about the constraints
they are connected with.

A context serves all paths of a program, one after the other. Going back to where the next path leaves the last one
takes back what came after: a log notes with each change what undoes it. So what a `step` of the program made, its
unknowns and states included, stands for every path that goes through it.

**Values** that a model computes with, unknown: booleans, values of a sort, integers.

Comparisons are decided at once, so a comparison is a plain bool and a model's `if`, `and` and `not`
need no help. An unknown boolean is decided when Python asks for its truth. Unknown values are not hashable: a Python
dict or set would compare them behind the engine's back.

**Maps** of unknown content: the first access to a key decides whether it equals a key touched before; if not, an
initial entry with an unknown presence and an unknown value comes into being.

Initial entries (`MapContent`) are shared by all orders of the calls; what an order writes lies in its own view
(`SymbolicMap`), on top of the view that it is a copy of. Only touched keys can differ between two views, so comparing
those is comparing the states. No quantifier is needed anywhere.

**Effects**: what a run changes in a state, and whether two runs from one state have anything to do with each other.

A run works on a copy of a state, and the copy holds by itself what the run looked at and changed (`Record`,
`SymbolicMap`). Two runs that started from one state and of which neither changes what the other looked at are
independent: after one of them the other does the same again, and both orders end in one state.
"""

from __future__ import annotations

from typing import Any

from commutant._native import (
    MAX_DECISIONS_PER_PATH,
    NOT_DETERMINISTIC,
    OF_ANOTHER_RUN,
    BoolValue,
    Cell,
    Context,
    Decision,
    Entry,
    Infeasible,
    IntValue,
    Literal,
    MapContent,
    Mark,
    SortValue,
    SymbolicMap,
    changed,
    current,
    independent,
    install,
    transfer,
)
from commutant._native import len as length

__all__ = [
    "MAX_DECISIONS_PER_PATH",
    "NOT_DETERMINISTIC",
    "OF_ANOTHER_RUN",
    "BoolValue",
    "Cell",
    "Context",
    "Decision",
    "Entry",
    "Infeasible",
    "IntValue",
    "Literal",
    "MapContent",
    "Mark",
    "SortValue",
    "SymbolicMap",
    "Term",
    "changed",
    "current",
    "independent",
    "install",
    "length",
    "transfer",
]

Term = tuple[Any, ...]
"""What an unknown stands for, in the model's own names: `("constant", name)` or `("apply", function, arguments)` with
arguments that are terms, integers or booleans; or, since few terms are ever read, an object that has them as its
attribute `arguments`."""
