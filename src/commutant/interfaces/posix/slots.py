"""Descriptors of `posix`, several of which may lead to one open file description, and what they are made of.

That two descriptors share a description is unknown in sets of calls where it shows (`SHARING_CALLS`). In others each
description says which descriptor it has (`number`), so that no one asks whether two are the same. Descriptions are
shared within a process alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from commutant.interfaces.posix.opening import NewDescriptors
from commutant.interfaces.posix.state import PIPE_CAPACITY_PAGES, Descriptor, Flag, Number
from commutant.lang import Errno, Map, Only, Process, Sort, Struct, call, unused, well_formed

SHARING_CALLS = ("dup", "lseek")
"""Descriptors share descriptions in states of sets that have one of these calls."""


class DescriptionIdentity(Sort, opaque=True, word="open file description"):
    """What tells an open file description from others."""


class Slot(Struct):
    """What a descriptor's number leads to."""

    description: DescriptionIdentity
    survives_exec: Flag


class Description(Descriptor):
    """An open file description, whose writes go where its offset is unless it has O_APPEND. `process` and `number` say
    which descriptor it has in initial states, if it is not shared."""

    at_offset: Flag
    is_shared: Annotated[bool, Only(False, unless=SHARING_CALLS)]
    process: Process
    number: Number

    def relevant(self) -> Iterable[str]:
        """What calls can tell."""
        return (*super().relevant(), "at_offset")


class Slots(NewDescriptors):
    """Descriptors and open file descriptions."""

    descriptors: Map[tuple[Process, Number], Slot]
    descriptions: Map[DescriptionIdentity, Description]

    @well_formed("descriptors")
    def descriptors_lead_to_descriptions(self, key: tuple[Process, int], slot: Slot) -> bool:
        """A descriptor leads to a description of its process, alone unless it is shared."""
        if slot.description not in self.descriptions:
            return False
        description = self.descriptions[slot.description]
        if description.process != key[0]:
            return False
        return bool(description.is_shared or description.number == key[1])

    @well_formed("descriptions")
    def descriptions_lead_to_files(self, identity: DescriptionIdentity, description: Description) -> bool:
        """An open description has a regular file or a pipe behind it."""
        if description.pipe:
            return description.inum in self.pipes
        return description.inum in self.inodes

    def descriptor(self, process: Process, fd: int) -> Description | None:
        """The open description behind a descriptor, or None (EBADF)."""
        slot = self.descriptors.get((process, fd))
        return None if slot is None else self.descriptions[slot.description]

    def touched_descriptions(self) -> list[Descriptor]:
        """The open descriptions that calls may have touched and that a descriptor leads to."""
        return [self.descriptions[slot.description] for _, slot in self.descriptors.touched()]

    def put_descriptor(self, process: Process, fd: int, descriptor: Descriptor) -> None:
        """Gives an open description of its own to this number."""
        identity = unused(DescriptionIdentity)
        if not isinstance(descriptor, Description):
            fields = {name: getattr(descriptor, name) for name in _FIELDS}
            descriptor = Description(**fields, at_offset=True, process=process, number=fd)
        self.descriptions[identity] = descriptor
        self.descriptors[process, fd] = Slot(description=identity, survives_exec=True)

    def take_lowest(self, process: Process, description: Descriptor) -> int:
        """Gives the description the lowest free number (POSIX.1-2017, 2.14)."""
        fd: int = self.descriptors.lowest_absent(process)
        self.put_descriptor(process, fd, description)
        return fd

    def open_descriptors(self) -> list[tuple[Process, Any, Descriptor]]:
        """All of a concrete state, with their processes and numbers."""
        return [(process, fd, self.descriptions[slot.description]) for (process, fd), slot in self.descriptors.items()]

    def forget(self, process: Process, fd: int) -> None:
        """Closes a descriptor that is open; a description that it has alone goes with it."""
        slot = self.descriptors[process, fd]
        if not self.descriptions[slot.description].is_shared:
            del self.descriptions[slot.description]
        del self.descriptors[process, fd]

    def share(self, process: Process, slot: Slot, fd: int) -> None:
        """Lets a free number lead to the description of another."""
        self.descriptions[slot.description].is_shared = True
        self.descriptors[process, fd] = Slot(description=slot.description, survives_exec=True)

    def touch(self, arguments: Mapping[str, Any]) -> None:
        """Looks at the descriptors that a call names, also one that it replaces, so that "is another end open?" sees
        those of all calls; and at the page of memory, so that truncation finds its copy."""
        if "fd" in arguments and not arguments.get("anonymous"):
            _ = (arguments["process"], arguments["fd"]) in self.descriptors
            if "target" in arguments:
                _ = (arguments["process"], arguments["target"]) in self.descriptors
        if "address" in arguments and "fixed" not in arguments:
            _ = (arguments["process"], arguments["address"]) in self.memory


_FIELDS = ("pipe", "write_end", "inum", "offset", "readable", "writable")


class SlotCalls(Slots):
    """Calls on descriptors and their flags."""

    @call
    def close(self, process: Process, fd: Number) -> Errno | int:
        """close(2)."""
        if (process, fd) not in self.descriptors:
            return Errno.EBADF
        self.forget(process, fd)
        return 0

    @call
    def dup(self, process: Process, fd: Number) -> Errno | int:
        """dup(2)."""
        slot = self.descriptors.get((process, fd))
        if slot is None:
            return Errno.EBADF
        new: int = self.descriptors.lowest_absent(process)
        self.share(process, slot, new)
        return new

    @call
    def dup2(self, process: Process, fd: Number, target: Number) -> Errno | int:
        """dup2(2)."""
        slot = self.descriptors.get((process, fd))
        if slot is None:
            return Errno.EBADF
        if fd != target:
            if (process, target) in self.descriptors:
                self.forget(process, target)
            self.share(process, slot, target)
        return target

    @call
    def getfd(self, process: Process, fd: Number) -> Errno | bool:
        """fcntl(2) with F_GETFD: whether the descriptor survives exec, that is, has no FD_CLOEXEC."""
        slot = self.descriptors.get((process, fd))
        return Errno.EBADF if slot is None else slot.survives_exec

    @call
    def setfd(self, process: Process, fd: Number, survives_exec: bool) -> Errno | int:
        """fcntl(2) with F_SETFD."""
        slot = self.descriptors.get((process, fd))
        if slot is None:
            return Errno.EBADF
        slot.survives_exec = survives_exec
        return 0


class Mode(Struct):
    """What fcntl tells of an open file description."""

    readable: bool
    writable: bool
    at_offset: bool


class Ready(Struct):
    """What poll tells of a descriptor: POLLIN, POLLOUT, POLLHUP, POLLERR."""

    input: bool
    output: bool
    hangup: bool
    error: bool


class Readiness(Slots):
    """What poll and its kin find out."""

    def readiness(self, description: Description) -> Ready:
        """What is ready of an open description (Linux: pipe_poll; a file is always ready, whatever its mode)."""
        if not description.pipe:
            return Ready(input=True, output=True, hangup=False, error=False)
        pipe = self.pipes[description.inum]
        if description.write_end:
            room = bool(pipe.tail - pipe.head < PIPE_CAPACITY_PAGES)
            return Ready(input=False, output=room, hangup=False, error=not self.end_is_open(description.inum, False))
        waits = bool(pipe.head < pipe.tail)
        return Ready(input=waits, output=False, hangup=not self.end_is_open(description.inum, True), error=False)


class DescriptionCalls(Readiness):
    """Calls on open file descriptions that move no data."""

    @call
    def getfl(self, process: Process, fd: Number) -> Errno | Mode:
        """fcntl(2) with F_GETFL: access mode, and whether there is no O_APPEND."""
        description = self.descriptor(process, fd)
        if description is None:
            return Errno.EBADF
        if description.pipe:
            return Mode(
                readable=not description.write_end, writable=description.write_end, at_offset=description.at_offset
            )
        return Mode(readable=description.readable, writable=description.writable, at_offset=description.at_offset)

    @call
    def setfl(self, process: Process, fd: Number, at_offset: bool) -> Errno | int:
        """fcntl(2) with F_SETFL: O_APPEND unless writes go where the offset is."""
        description = self.descriptor(process, fd)
        if description is None:
            return Errno.EBADF
        description.at_offset = at_offset
        return 0

    @call
    def poll(self, process: Process, fd: Number) -> Errno | Ready:
        """poll(2) of one descriptor, which does not wait; EBADF stands for POLLNVAL."""
        description = self.descriptor(process, fd)
        return Errno.EBADF if description is None else self.readiness(description)

    @call
    def fsync(self, process: Process, fd: Number) -> Errno | int:
        """fsync(2)."""
        description = self.descriptor(process, fd)
        if description is None:
            return Errno.EBADF
        return Errno.EINVAL if description.pipe else 0
