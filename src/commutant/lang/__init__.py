"""What the author of a model imports: `from commutant.lang import Interface, Map, Sort, Struct, call, Errno`."""

from commutant.lang.errno import Errno
from commutant.lang.interface import Interface, Invocation, call, invoke, setup_call, well_formed
from commutant.lang.load import SHIPPED, load_interface, model_hash
from commutant.lang.nondeterminism import choose, unused
from commutant.lang.types import Capacity, Map, Process, Range, Seq, Sort, Struct

__all__ = [
    "SHIPPED",
    "Capacity",
    "Errno",
    "Interface",
    "Invocation",
    "Map",
    "Process",
    "Range",
    "Seq",
    "Sort",
    "Struct",
    "call",
    "choose",
    "invoke",
    "load_interface",
    "model_hash",
    "setup_call",
    "unused",
    "well_formed",
]
