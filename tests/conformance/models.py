"""Models for these tests: `names` with planted mistakes, and small ones for choices, times, reuse and all types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from commutant.interfaces.names import Inode, Name, Names, Stat
from commutant.lang import (
    Constant,
    Errno,
    Interface,
    Invocation,
    Map,
    Process,
    Range,
    Seq,
    Set,
    Sort,
    Struct,
    Time,
    call,
    choose,
    invoke,
    now,
    unused,
)


class LinkForgetsToCount(Names):
    """link does not raise the count. Shortest: open, link, and the state that is left."""

    @call
    def link(self, old: Name, new: Name) -> Errno | int:
        result = super().link(old, new)
        if result == 0:
            self.inodes[self.names[old]].nlink -= 1
        return result


class RenameOfLinksRemoves(Names):
    """Figure 4's rename: of two links to one inode the source goes. Shortest: open, link, rename."""

    @call
    def rename(self, src: Name, dst: Name) -> Errno | int:
        same = src != dst and src in self.names and dst in self.names and self.names[src] == self.names[dst]
        result = super().rename(src, dst)
        if same:
            self.inodes[self.names[src]].nlink -= 1
            del self.names[src]
        return result


class ExclusiveIsIgnored(Names):
    """O_EXCL has no effect. Shortest: open to create, open to create with excl."""

    @call
    def open(self, name: Name, creat: bool, excl: bool) -> Errno | int:
        return super().open(name, creat, False)


class ThirdNameFails(Names):
    """A directory has room for two names. Shortest: open or link twice, and open once more."""

    @call
    def open(self, name: Name, creat: bool, excl: bool) -> Errno | int:
        if creat and name not in self.names and len(self.names) == 2:
            return Errno.ENOSPC
        return super().open(name, creat, excl)


class InodesAreReusedTooEarly(Names):
    """A new file gets the inode of a file that still has a name. Shortest: two opens to create, and what is left."""

    @call
    def open(self, name: Name, creat: bool, excl: bool) -> Errno | int:
        new = creat and name not in self.names
        if new and self.inodes:
            inum = next(iter(self.inodes))
            self.names[name] = inum
            self.inodes[inum] = Inode(nlink=1)
            return 0
        return super().open(name, creat, excl)


SHORTEST = {
    LinkForgetsToCount: 2,
    RenameOfLinksRemoves: 3,
    ExclusiveIsIgnored: 2,
    ThirdNameFails: 3,
    InodesAreReusedTooEarly: 2,
}
"""The number of calls of a shortest sequence that shows each mistake."""


class Ticket(Sort, opaque=True):
    """What `Tickets` hands out."""


class Tickets(Interface):
    """Tickets are taken and given back; a ticket that was given back may be picked again."""

    held: Map[Ticket, Process]

    @call
    def take(self, process: Process) -> Ticket:
        ticket = unused(Ticket)
        self.held[ticket] = process
        return ticket

    @call
    def give(self, process: Process, ticket: Ticket) -> Errno | int:
        if self.held.get(ticket) != process:
            return Errno.EINVAL
        del self.held[ticket]
        return 0

    @call
    def holds(self, process: Process, ticket: Ticket) -> bool:
        return self.held.get(ticket) == process


class TicketsAgain(Tickets):
    """Picks the last ticket that was given back."""

    def __init__(self) -> None:
        super().__init__()
        self._free: list[Any] = []

    @call
    def take(self, process: Process) -> Ticket:
        if not self._free:
            return super().take(process)
        ticket = self._free.pop()
        self.held[ticket] = process
        return ticket

    @call
    def give(self, process: Process, ticket: Ticket) -> Errno | int:
        result = super().give(process, ticket)
        if result == 0:
            self._free.append(ticket)
        return result


class ThirdTicketIsNotHeld(Tickets):
    """What process 1 takes third it does not hold; so a sequence that shows it must keep what it refers to."""

    taken: int

    @call
    def take(self, process: Process) -> Ticket:
        ticket = super().take(process)
        self.taken += process == 1
        if process == 1 and self.taken == 3:
            self.held[ticket] = 0
        return ticket


class Key(Sort):
    """A key of `Cache`."""


class Cache(Interface):
    """A cache that may forget at any time: `get` finds what was put, or nothing; how much it keeps is left open."""

    kept: Map[Key, int]
    room: Annotated[int, Range(0, 3)] = 3

    @call
    def put(self, key: Key, value: Annotated[int, Range(0, 3)]) -> int:
        self.kept[key] = value
        return 0

    @call
    def get(self, key: Key) -> Errno | int:
        if key in self.kept and choose(bool):
            return self.kept[key]
        self.kept.pop(key, None)
        return Errno.ENOENT

    @call
    def size(self) -> int:
        return choose(Annotated[int, Range(0, 4)], lambda number: number <= len(self.kept))

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        for key in values[Key]:
            yield invoke("get", key=key)


class CacheInvents(Cache):
    """Finds 3 under a key that was never put. Shortest: one get."""

    @call
    def get(self, key: Key) -> Errno | int:
        return super().get(key) if key in self.kept else 3


class CacheComesBack(Cache):
    """A key that was forgotten is found again. Shortest: put, get that does not find it, and what is left."""

    @call
    def get(self, key: Key) -> Errno | int:
        return self.kept[key] if key in self.kept and choose(bool) else Errno.ENOENT


class Stamped(Struct):
    """Times of two kinds."""

    changed: Time
    read: Time


class Clock(Interface):
    """A cell that knows when it was last written; a read may or may not be noted."""

    value: int
    changed: Time
    read_at: Time

    def __init__(self) -> None:
        super().__init__()
        self.changed = self.read_at = now()

    @call
    def write(self, value: Annotated[int, Range(0, 9)]) -> int:
        self.value = value
        self.changed = now()
        return 0

    @call
    def read(self) -> int:
        if choose(bool):
            self.read_at = now()
        return self.value

    @call
    def stat(self) -> Stamped:
        return Stamped(changed=self.changed, read=self.read_at)


class ClockGoesBack(Clock):
    """A write does not change the time, but a read does."""

    @call
    def write(self, value: Annotated[int, Range(0, 9)]) -> int:
        self.value = value
        return 0

    @call
    def read(self) -> int:
        self.changed = self.read_at = now()
        return self.value


class Data(Sort, numbered=True):
    """Numbered contents; 0 is in every state."""


class Pair(Struct):
    """An argument of several parts."""

    key: Key
    data: Data


class AllTypes(Interface):
    """Every type that a parameter can have."""

    zero: Annotated[Data, Constant(0)]
    seen: Map[tuple[Key, Annotated[int, Range(0, None)]], Data]
    begun: int

    @call
    def every(
        self,
        process: Process,
        flag: bool,
        small: Annotated[int, Range(3, 5)],
        large: Annotated[int, Range(0, None)],
        any_number: int,
        couple: tuple[Key, bool],
        pair: Pair,
        items: Seq[Data],
    ) -> int:
        if not self.begun:
            raise ValueError("begin was not run")
        self.seen[couple[0], large] = pair.data
        return large

    @call
    def with_ticket(self, process: Process, ticket: Ticket) -> int:
        return 0

    @call
    def ticket(self, process: Process) -> Ticket:
        return unused(Ticket)

    @call
    def begin_all(self, process: Process) -> int:
        self.begun = 1
        return 0

    def begin(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        for process in values[Process]:
            yield invoke("begin_all", process=process)


__all__ = ["SHORTEST", "AllTypes", "Cache", "Clock", "Names", "Stat", "Tickets"]


class Ball(Sort):
    """What is drawn."""


class Urn(Interface):
    """Draws from a set, a sequence, and among the values of a sort."""

    kept: Set[Ball]
    order: Seq[Ball]

    @call
    def put(self, ball: Ball) -> None:
        self.kept.add(ball)
        if len(self.order) < 2:
            self.order.append(ball)

    @call
    def any(self) -> Errno | Ball:
        return choose(self.kept) if self.kept else Errno.ENOENT

    @call
    def early(self) -> Errno | Ball:
        return choose(self.order) if self.order else Errno.ENOENT

    @call
    def of_sort(self) -> Errno | Ball:
        return choose(Ball, lambda ball: ball in self.kept) if self.kept else Errno.ENOENT


class UrnOfOthers(Urn):
    """Draws early what was put late."""

    @call
    def early(self) -> Errno | Ball:
        return choose(self.kept) if self.kept else Errno.ENOENT
