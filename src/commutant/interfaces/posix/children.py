"""Children of a process, whose calls are made by children that run: fork, exit and wait.

A child has descriptors and working directory in common with its parent, and a copy of its memory (clone(2) with
CLONE_FILES and CLONE_FS). It does nothing but exit. A test knows children by numbers of its own; a number in use is
refused before any process is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import Capacity, Errno, Interface, Invocation, Map, Process, Seq, Sort, Struct, call, invoke


class Child(Sort, numbered=True):
    """A child of the calling process."""


class Status(Sort, numbered=True, content=True):
    """What a process says when it ends: a byte."""


class ChildState(Struct):
    """A child that no one has waited for, and with which status it has ended, if it has."""

    ended: Annotated[Seq[Status], Capacity(1)]


class ChildCalls(Interface):
    """Processes as their children know them."""

    children: Map[tuple[Process, Child], ChildState]

    @call
    def fork(self, process: Process, child: Child) -> Errno | int:
        """clone(2) of a process, with CLONE_FILES and CLONE_FS."""
        if (process, child) in self.children:
            return Errno.EBUSY
        self.children[process, child] = ChildState(ended=Seq())
        return 0

    @call
    def exit(self, process: Process, child: Child, status: Status) -> Errno | int:
        """exit_group(2) of the child."""
        if (process, child) not in self.children or self.children[process, child].ended:
            return Errno.ESRCH
        self.children[process, child].ended.append(status)
        return 0

    @call
    def wait(self, process: Process, child: Child) -> Errno | Status:
        """waitpid(2) with WNOHANG for this child, which is none afterwards if it has ended; EAGAIN where it runs."""
        if (process, child) not in self.children:
            return Errno.ECHILD
        if not self.children[process, child].ended:
            return Errno.EAGAIN
        status: Status = self.children[process, child].ended[0]
        del self.children[process, child]
        return status

    def bear_children(self) -> Iterator[Invocation]:
        """Makes the children of this state; those that have ended do so now."""
        for (process, child), state in self.children.items():
            yield invoke("fork", process=process, child=child)
            for status in state.ended:
                yield invoke("exit", process=process, child=child, status=status)

    def observe_children(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """Waits for each child of a test."""
        for process in values[Process]:
            for child in values[Child]:
                yield invoke("wait", process=process, child=child)
