"""Signals that a process sends to itself, blocks, and takes when it asks for them; and its number.

All threads of all processes block the signals of the model, so that they stay pending with the process until
`sigtimedwait` takes them. One that is pending already is not counted (POSIX.1-2017, 2.4.1).
"""

from __future__ import annotations

from commutant.lang import Errno, Interface, Process, Set, Sort, call


class SignalNumber(Sort, numbered=True):
    """A signal of those that are not queued: SIGUSR1, SIGUSR2, and others."""


class SignalCalls(Interface):
    """Processes as their own signals know them."""

    pending: Set[tuple[Process, SignalNumber]]

    @call
    def getpid(self, process: Process) -> int:
        """getpid(2), of which a test knows only that it does not fail."""
        return 0

    @call
    def kill(self, process: Process, signal: SignalNumber) -> int:
        """kill(2) of the calling process (Linux: prepare_signal, legacy_queue)."""
        self.pending.add((process, signal))
        return 0

    @call
    def sigpending(self, process: Process, signal: SignalNumber) -> bool:
        """sigpending(2): whether the signal is pending."""
        return (process, signal) in self.pending

    @call
    def sigtimedwait(self, process: Process, signal: SignalNumber) -> Errno | int:
        """sigtimedwait(2) for one signal, which does not wait."""
        if (process, signal) not in self.pending:
            return Errno.EAGAIN
        self.pending.remove((process, signal))
        return 0
