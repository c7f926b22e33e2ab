"""From a lock record to classes of locks, and what a change of one would gain."""

from commutant.lock_view.study.kernel_names import KernelAddressNames
from commutant.lock_view.study.names import AddressNames, Frame

__all__ = ["AddressNames", "Frame", "KernelAddressNames"]
