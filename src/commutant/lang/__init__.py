"""What the author of a model imports: `from commutant.lang import Interface, Map, Sort, Struct, call, Errno`."""

from commutant.lang.errno import Errno, Signal
from commutant.lang.interface import Interface, Invocation, call, invoke, setup_call, well_formed
from commutant.lang.load import SHIPPED, load_interface, model_hash
from commutant.lang.nondeterminism import choose, now, unused
from commutant.lang.types import Capacity, Constant, Map, Process, Range, Seq, Sort, Struct, Time, Usually

__all__ = [
    "SHIPPED",
    "Capacity",
    "Constant",
    "Errno",
    "Interface",
    "Invocation",
    "Map",
    "Process",
    "Range",
    "Seq",
    "Signal",
    "Sort",
    "Struct",
    "Time",
    "Usually",
    "call",
    "choose",
    "invoke",
    "load_interface",
    "model_hash",
    "now",
    "setup_call",
    "unused",
    "well_formed",
]
