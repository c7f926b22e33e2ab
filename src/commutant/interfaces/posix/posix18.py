"""`posix18`: the paper's 18 calls (section 6.1), frozen."""

from __future__ import annotations

from commutant.interfaces.posix.data import DataCalls
from commutant.interfaces.posix.descriptors import DescriptorCalls
from commutant.interfaces.posix.memory import MemoryCalls
from commutant.interfaces.posix.names import NameCalls


class Posix18(MemoryCalls, DataCalls, DescriptorCalls, NameCalls):
    """open link unlink rename stat, fstat lseek close, pipe read write pread pwrite, mmap munmap mprotect memread memwrite."""
