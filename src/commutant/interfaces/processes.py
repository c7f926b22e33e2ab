"""Children of a process, as posix_spawn, fork, exec, exit and wait have them, with the descriptors that they get.

Calls do not wait: `wait` returns EAGAIN where `waitpid` with WNOHANG returns 0. A child is named by a number that the
test gives, not by the one that the system chooses; a number that is in use is refused before any process is made. All
calls are made by threads of the parent, in which two descriptors can be open; `exit`, `exec` and `sees` are what the
child of this number does.

Left out: process numbers, orphans, a wait for any child, file actions, memory, and children of children.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import (
    Capacity,
    Errno,
    Interface,
    Invocation,
    Map,
    Range,
    Seq,
    Sort,
    Struct,
    call,
    invoke,
    setup_call,
)

Child = Annotated[int, Range(0, 3)]
"""A child's number in the test."""

Descriptor = Annotated[int, Range(0, 1)]
"""A descriptor's number."""


class Status(Sort, numbered=True, content=True):
    """What a process says when it ends: a byte."""


class Open(Struct):
    """A descriptor that is open."""

    survives: bool


class Process(Struct):
    """A child that no one has waited for: its descriptors, and how it ended, if it has."""

    first: bool
    first_survives: bool
    second: bool
    second_survives: bool
    ended: Annotated[Seq[Status], Capacity(1)]

    def relevant(self) -> Iterable[str]:
        """Who has ended has no descriptors."""
        if self.ended:
            return ("ended",)
        return (
            "ended",
            "first",
            "second",
            *(["first_survives"] if self.first else []),
            *(["second_survives"] if self.second else []),
        )


class Processes(Interface):
    """A process and its children."""

    descriptors: Map[Descriptor, Open]
    children: Map[Child, Process]

    @call
    def spawn(self, child: Child) -> Errno | int:
        """posix_spawn(3): the child has the descriptors that survive exec."""
        if child in self.children:
            return Errno.EBUSY
        first = 0 in self.descriptors and self.descriptors[0].survives
        second = 1 in self.descriptors and self.descriptors[1].survives
        self.children[child] = Process(
            first=first, first_survives=first, second=second, second_survives=second, ended=Seq()
        )
        return 0

    @call
    def fork(self, child: Child) -> Errno | int:
        """fork(2): the child has all descriptors."""
        if child in self.children:
            return Errno.EBUSY
        first, second = 0 in self.descriptors, 1 in self.descriptors
        self.children[child] = Process(
            first=first,
            first_survives=first and self.descriptors[0].survives,
            second=second,
            second_survives=second and self.descriptors[1].survives,
            ended=Seq(),
        )
        return 0

    @call
    def exec(self, child: Child) -> Errno | int:
        """execve(2) in the child: descriptors that do not survive are closed."""
        if child not in self.children or self.children[child].ended:
            return Errno.ESRCH
        process = self.children[child]
        process.first = process.first and process.first_survives
        process.second = process.second and process.second_survives
        return 0

    @call
    def exit(self, child: Child, status: Status) -> Errno | int:
        """_exit(2) in the child."""
        if child not in self.children or self.children[child].ended:
            return Errno.ESRCH
        self.children[child].ended.append(status)
        return 0

    @call
    def wait(self, child: Child) -> Errno | Status:
        """waitpid(2) with WNOHANG for this child, which is none afterwards if it has ended."""
        if child not in self.children:
            return Errno.ECHILD
        if not self.children[child].ended:
            return Errno.EAGAIN
        status: Status = self.children[child].ended[0]
        del self.children[child]
        return status

    @call
    def sees(self, child: Child, descriptor: Descriptor) -> Errno | int:
        """fcntl(2) with F_GETFL in the child: whether the descriptor is open there."""
        if child not in self.children or self.children[child].ended:
            return Errno.ESRCH
        process = self.children[child]
        is_open = process.first if descriptor == 0 else process.second
        return 0 if is_open else Errno.EBADF

    @call
    def dup3(self, descriptor: Descriptor, survives: bool) -> Errno | int:
        """dup3(2) in the parent, of a descriptor that is always open; O_CLOEXEC if it does not survive."""
        self.descriptors[descriptor] = Open(survives=survives)
        return 0

    @call
    def drop(self, descriptor: Descriptor) -> Errno | int:
        """close(2) in the parent."""
        if descriptor not in self.descriptors:
            return Errno.EBADF
        del self.descriptors[descriptor]
        return 0

    @setup_call
    def make_parent(self) -> None:
        """The parent, with the descriptor that is always open."""

    @setup_call
    def make_child(self, child: Child, first: bool, first_survives: bool, second: bool, second_survives: bool) -> None:
        """A child with these descriptors."""
        self.children[child] = Process(
            first=first,
            first_survives=first_survives,
            second=second,
            second_survives=second_survives,
            ended=Seq(),
        )

    @setup_call
    def end_child(self, child: Child, status: Status) -> None:
        """The child has ended with this status."""
        self.children[child].ended.append(status)

    @setup_call
    def make_descriptor(self, descriptor: Descriptor, survives: bool) -> None:
        """A descriptor of the parent."""
        self.descriptors[descriptor] = Open(survives=survives)

    @setup_call
    def peek_child(self, child: Child) -> Errno | Seq[bool]:
        """Which descriptors a child that runs has, and which of them survive."""
        if child not in self.children:
            return Errno.ECHILD
        if self.children[child].ended:
            return Errno.ESRCH
        process = self.children[child]
        return Seq(
            [
                process.first,
                process.first and process.first_survives,
                process.second,
                process.second and process.second_survives,
            ]
        )

    @setup_call
    def peek_status(self, child: Child) -> Errno | Status:
        """How a child has ended; as `wait`."""
        if child not in self.children:
            return Errno.ECHILD
        if not self.children[child].ended:
            return Errno.EAGAIN
        status: Status = self.children[child].ended[0]
        del self.children[child]
        return status

    @setup_call
    def peek_parent(self) -> Seq[bool]:
        """Which descriptors the parent has, and which of them survive."""
        seen = []
        for number in range(_DESCRIPTORS):
            is_open = number in self.descriptors
            seen += [is_open, is_open and self.descriptors[number].survives]
        return Seq(seen)

    def setup(self) -> Iterator[Invocation]:
        """Makes the children, then the parent's own descriptors."""
        yield invoke("make_parent")
        for child, process in self.children.items():
            is_running = not process.ended
            first, second = is_running and process.first, is_running and process.second
            yield invoke(
                "make_child",
                child=child,
                first=first,
                first_survives=first and process.first_survives,
                second=second,
                second_survives=second and process.second_survives,
            )
            if process.ended:
                yield invoke("end_child", child=child, status=process.ended[0])
        for descriptor, opened in self.descriptors.items():
            yield invoke("make_descriptor", descriptor=descriptor, survives=opened.survives)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """Looks at what the parent and all children have."""
        yield invoke("peek_parent")
        for child in range(_CHILDREN):
            yield invoke("peek_child", child=child)
            yield invoke("peek_status", child=child)


_DESCRIPTORS = 2
_CHILDREN = 4
