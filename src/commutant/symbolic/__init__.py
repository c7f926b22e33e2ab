"""Symbolic execution of ordinary Python: unknown values, lazy states, and the exploration of all paths.

Knows nothing of commutativity. `explore(program)` runs the program once per path.
"""

from commutant.symbolic.context import Context, Decision, Infeasible, Literal, Mark, Term, current
from commutant.symbolic.explorer import Path, explore
from commutant.symbolic.maps import MapContent, SymbolicMap
from commutant.symbolic.state import clone, term_of, unknown
from commutant.symbolic.values import BoolValue, IntValue, SortValue

__all__ = [
    "BoolValue",
    "Context",
    "Decision",
    "Infeasible",
    "IntValue",
    "Literal",
    "MapContent",
    "Mark",
    "Path",
    "SortValue",
    "SymbolicMap",
    "Term",
    "clone",
    "current",
    "explore",
    "term_of",
    "unknown",
]
