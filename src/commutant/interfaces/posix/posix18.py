"""`posix18`: the paper's 18 calls (section 6.1), frozen."""

from __future__ import annotations

from commutant.interfaces.posix.data import DataCalls
from commutant.interfaces.posix.descriptors import DescriptorCalls, Fstat
from commutant.interfaces.posix.memory import MemoryCalls
from commutant.interfaces.posix.names import NameCalls
from commutant.interfaces.posix.observation import Observation
from commutant.interfaces.posix.opening import Open, OpenPipe
from commutant.interfaces.posix.setup.state import StateSetup


class Posix18(MemoryCalls, DataCalls, OpenPipe, DescriptorCalls, Fstat, NameCalls, Open, Observation, StateSetup):
    """The calls on names, descriptors, data and memory, with the names of section 6.1."""
