"""What the author of a model imports: `from commutant.lang import Interface, Map, Sort, Struct, call, Errno`."""

from commutant.lang.alike import SameValues as SameValues
from commutant.lang.alike import assuming_same as assuming_same
from commutant.lang.alike import names_in as names_in
from commutant.lang.errno import Errno, Signal
from commutant.lang.first_model import new_model as new_model
from commutant.lang.interface import WHOLE_STATE as WHOLE_STATE
from commutant.lang.interface import CallSignature as CallSignature
from commutant.lang.interface import Interface, Invocation, StepResult, call, invoke, setup_call, well_formed
from commutant.lang.load import ESCAPES as ESCAPES
from commutant.lang.load import SHIPPED, load_interface, model_hash

# What the engine asks of a model; authors need none of it.
from commutant.lang.load import is_hashed as is_hashed
from commutant.lang.load import source_hash as source_hash
from commutant.lang.nondeterminism import ConcreteOracle as ConcreteOracle
from commutant.lang.nondeterminism import answered_by as answered_by
from commutant.lang.nondeterminism import choose, now, unused
from commutant.lang.nondeterminism import finite_values as finite_values
from commutant.lang.places import call_places as call_places
from commutant.lang.types import BoolType as BoolType
from commutant.lang.types import (
    Capacity,
    Constant,
    Map,
    Only,
    Process,
    Range,
    Seq,
    Set,
    Sort,
    Struct,
    Time,
    Usually,
    Word,
)
from commutant.lang.types import EnumType as EnumType
from commutant.lang.types import IntType as IntType
from commutant.lang.types import MapType as MapType
from commutant.lang.types import OpaqueValue as OpaqueValue
from commutant.lang.types import OptionalType as OptionalType
from commutant.lang.types import Record as Record
from commutant.lang.types import SeqType as SeqType
from commutant.lang.types import SortType as SortType
from commutant.lang.types import StructType as StructType
from commutant.lang.types import TimeValue as TimeValue
from commutant.lang.types import TupleType as TupleType
from commutant.lang.types import Type as Type
from commutant.lang.types import container_fields as container_fields
from commutant.lang.types import describe_type as describe_type
from commutant.lang.types import held_as as held_as
from commutant.lang.types import struct_fields as struct_fields
from commutant.lang.types import types_within as types_within

__all__ = [
    "SHIPPED",
    "Capacity",
    "Constant",
    "Errno",
    "Interface",
    "Invocation",
    "Map",
    "Only",
    "Process",
    "Range",
    "Seq",
    "Set",
    "Signal",
    "Sort",
    "StepResult",
    "Struct",
    "Time",
    "Usually",
    "Word",
    "call",
    "call_places",
    "choose",
    "invoke",
    "load_interface",
    "model_hash",
    "now",
    "setup_call",
    "unused",
    "well_formed",
]
