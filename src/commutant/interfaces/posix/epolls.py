"""epoll(7): instances of a process, which watch ends of pipes for all that poll tells of them (level-triggered).

Instances are given, and no test's descriptor leads to one. What an instance watches is a descriptor together with the
description behind it: one that was closed and opened again is not watched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commutant.interfaces.posix.slots import DescriptionIdentity, Readiness, Ready
from commutant.interfaces.posix.state import Number
from commutant.lang import Errno, Invocation, Map, Process, Seq, Sort, Struct, call, invoke, setup_call, well_formed


class Epoll(Sort, numbered=True):
    """An epoll instance of the calling process."""


class Watch(Struct):
    """The description that a descriptor had when it came to be watched."""

    description: DescriptionIdentity


class Epolls(Readiness):
    """What instances watch."""

    watches: Map[tuple[Process, Epoll, Number], Watch]

    @well_formed("watches")
    def watches_lead_to_pipes(self, key: tuple[Process, Epoll, Number], watch: Watch) -> bool:
        """Who watches a regular file is refused; and what is watched is open."""
        process, _, fd = key
        slot = self.descriptors.get((process, fd))
        if slot is None:
            return False
        return bool(slot.description == watch.description and self.descriptions[slot.description].pipe)

    def is_watched(self, process: Process, epoll: Epoll, fd: int) -> bool:
        """Whether the instance watches what this descriptor leads to."""
        watch = self.watches.get((process, epoll, fd))
        if watch is None:
            return False
        slot = self.descriptors.get((process, fd))
        return slot is not None and bool(slot.description == watch.description)

    def refused(self, process: Process, fd: int) -> Errno | None:
        """Why a descriptor cannot be watched (Linux: do_epoll_ctl)."""
        description = self.descriptor(process, fd)
        if description is None:
            return Errno.EBADF
        return None if description.pipe else Errno.EPERM

    @setup_call
    def peek_watches(self, process: Process, epoll: Epoll) -> Seq[int]:
        """The descriptors that an instance watches, ascending."""
        watched = (fd for owner, instance, fd in self.watches if (owner, instance) == (process, epoll))
        return Seq(sorted(fd for fd in watched if self.is_watched(process, epoll, fd)))

    def watch_all(self) -> Iterator[Invocation]:
        """Lets instances watch what they do in this state."""
        for process, epoll, fd in self.watches:
            yield invoke("epoll_add", process=process, epoll=epoll, fd=fd)

    def observe_epolls(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """Looks at what the instances of a test watch."""
        for process in values[Process]:
            for epoll in values[Epoll]:
                yield invoke("peek_watches", process=process, epoll=epoll)


class EpollCalls(Epolls):
    """Calls on instances."""

    @call
    def epoll_add(self, process: Process, epoll: Epoll, fd: Number) -> Errno | int:
        """epoll_ctl(2) with EPOLL_CTL_ADD, for EPOLLIN and EPOLLOUT."""
        refused = self.refused(process, fd)
        if refused is not None:
            return refused
        if self.is_watched(process, epoll, fd):
            return Errno.EEXIST
        self.watches[process, epoll, fd] = Watch(description=self.descriptors[process, fd].description)
        return 0

    @call
    def epoll_del(self, process: Process, epoll: Epoll, fd: Number) -> Errno | int:
        """epoll_ctl(2) with EPOLL_CTL_DEL."""
        refused = self.refused(process, fd)
        if refused is not None:
            return refused
        if not self.is_watched(process, epoll, fd):
            return Errno.ENOENT
        del self.watches[process, epoll, fd]
        return 0

    @call
    def epoll_wait(self, process: Process, epoll: Epoll, fd: Number) -> Ready:
        """epoll_wait(2), which does not wait: what it tells of one descriptor; nothing of one that is not watched."""
        if not self.is_watched(process, epoll, fd):
            return Ready(input=False, output=False, hangup=False, error=False)
        return self.readiness(self.descriptions[self.descriptors[process, fd].description])
