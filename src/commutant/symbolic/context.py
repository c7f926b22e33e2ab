"""One run of a program over unknown values: what has been decided on the way, and what follows from it.

A branch on an unknown asks the current context for one literal: a boolean unknown, an equality of two values of a sort,
or a linear comparison of integers. If the literal or its negation follows from what was decided before, that is the
answer and no branch. Otherwise both sides are possible, and the context takes the side that its prefix prescribes, or
the true side if the prefix is used up. So a path is a conjunction of literals, and no solver is needed to follow it:
booleans are looked up, sorts are a union-find with disequalities, integers ask `integers.solve` about the constraints
they are connected with.

A context serves all paths of a program, one after the other. Going back to where the next path leaves the last one
takes back what came behind: a log notes with each change what undoes it. So what a `step` of the program made, its
unknowns and states included, stands for every path that goes through it.

All of this is native (crate `symbolic`), since a path asks hundreds of such questions.
"""

from __future__ import annotations

from typing import Any

from commutant._native import (
    MAX_DECISIONS_PER_PATH,
    NOT_DETERMINISTIC,
    OF_ANOTHER_RUN,
    Context,
    Decision,
    Infeasible,
    Literal,
    Mark,
    current,
    install,
)

__all__ = [
    "MAX_DECISIONS_PER_PATH",
    "NOT_DETERMINISTIC",
    "OF_ANOTHER_RUN",
    "Context",
    "Decision",
    "Infeasible",
    "Literal",
    "Mark",
    "Term",
    "current",
    "install",
]

Term = tuple[Any, ...]
"""What an unknown stands for, in the model's own names: `("constant", name)` or `("apply", function, arguments)` with
arguments that are terms, integers or booleans; or, since few terms are ever read, an object that has them as its
attribute `arguments`."""
