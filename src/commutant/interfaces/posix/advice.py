"""Calls on mapped memory that `posix18` lacks: msync and madvise, a page each."""

from __future__ import annotations

from commutant.interfaces.posix.operations import FileOperations
from commutant.interfaces.posix.state import Address
from commutant.lang import Errno, Process, call


class AdviceCalls(FileOperations):
    """What a caller asks of pages that are mapped already."""

    @call
    def msync(self, process: Process, address: Address) -> Errno | int:
        """msync(2) with MS_SYNC."""
        return Errno.ENOMEM if (process, address) not in self.memory else 0

    @call
    def madvise(self, process: Process, address: Address) -> Errno | int:
        """madvise(2) with MADV_DONTNEED: what a page holds by itself is lost (zap_page_range_single)."""
        mapping = self.memory.get((process, address))
        if mapping is None:
            return Errno.ENOMEM
        if mapping.anonymous:
            mapping.own = self.zero
        elif not mapping.shared:
            mapping.copied = False
        return 0
