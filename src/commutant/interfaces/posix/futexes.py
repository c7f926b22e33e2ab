"""Calls of futex(2) that do not wait and find no thread that waits, on words of the caller's own pages."""

from __future__ import annotations

from commutant.interfaces.posix.operations import FileOperations
from commutant.interfaces.posix.state import Address, Data
from commutant.lang import Errno, Process, Signal, call


class FutexCalls(FileOperations):
    """futex(2) with FUTEX_PRIVATE_FLAG: the word is the first of a page, of which every byte has the page's content."""

    def holds(self, process: Process, address: Address, data: Data) -> Errno | bool:
        """Whether the word has this content; EFAULT where a load from it raises a signal."""
        mapping = self.memory.get((process, address))
        found = Signal.SIGSEGV if mapping is None else self.load(mapping)
        return Errno.EFAULT if isinstance(found, Signal) else found == data

    @call
    def futex_wake(self, process: Process, word: Address) -> int:
        """FUTEX_WAKE, which wakes no thread. The word is not looked at, and need not be there (futex_wake)."""
        return 0

    @call
    def futex_wait(self, process: Process, address: Address, data: Data) -> Errno:
        """FUTEX_WAIT with a time limit that is over at once."""
        holds = self.holds(process, address, data)
        if isinstance(holds, Errno):
            return holds
        return Errno.ETIMEDOUT if holds else Errno.EAGAIN

    @call
    def futex_requeue(self, process: Process, address: Address, data: Data, target: Address) -> Errno | int:
        """FUTEX_CMP_REQUEUE, which finds no thread to wake or to move. The word of the target is not looked at."""
        holds = self.holds(process, address, data)
        if isinstance(holds, Errno):
            return holds
        return 0 if holds else Errno.EAGAIN
