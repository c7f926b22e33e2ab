"""Symbolic execution of ordinary Python: unknown values, lazy states, and the exploration of all paths.

Knows nothing of commutativity. `explore(program)` runs the program once per path.
"""

from commutant.symbolic import integers
from commutant.symbolic.division import QUOTIENT, REMAINDER
from commutant.symbolic.engine import (
    NOT_DETERMINISTIC,
    BoolValue,
    Context,
    Decision,
    Infeasible,
    IntValue,
    Literal,
    MapContent,
    Mark,
    SortValue,
    SymbolicMap,
    Term,
    changed,
    current,
    independent,
    install,
    length,
    transfer,
)
from commutant.symbolic.explorer import Path, explore
from commutant.symbolic.integers import value_of
from commutant.symbolic.state import (
    CallsUnderWay,
    EntryHook,
    check_not_shared,
    clone,
    fits,
    is_scalar,
    may_share,
    shown,
    term_of,
    unknown,
    unknown_record,
    usual_class,
)

__all__ = [
    "NOT_DETERMINISTIC",
    "QUOTIENT",
    "REMAINDER",
    "BoolValue",
    "CallsUnderWay",
    "Context",
    "Decision",
    "EntryHook",
    "Infeasible",
    "IntValue",
    "Literal",
    "MapContent",
    "Mark",
    "Path",
    "SortValue",
    "SymbolicMap",
    "Term",
    "changed",
    "check_not_shared",
    "clone",
    "current",
    "explore",
    "fits",
    "independent",
    "install",
    "integers",
    "is_scalar",
    "length",
    "may_share",
    "shown",
    "term_of",
    "transfer",
    "unknown",
    "unknown_record",
    "usual_class",
    "value_of",
]
