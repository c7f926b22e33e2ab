"""Changes of section 4 of the paper that POSIX's own models do not have, each as two small models: as POSIX is, and
as it could be.

- `release` and `release-later`: munmap, and the close of a pipe's last read end, which POSIX wants to be seen as soon
  as they return; later, others may see the page, or write to the pipe, for some time ("release resources
  asynchronously").
- `events` and `events-any`: select and sigpending, which tell all that is ready; or any one thing that is ("embrace
  specification non-determinism").
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from commutant.lang import Errno, Interface, Map, Range, Set, Signal, Sort, Struct, call, choose, well_formed


class Address(Sort):
    """A page of an address space."""


class Data(Sort, content=True):
    """What a page holds."""


class PipeName(Sort, word="pipe"):
    """A pipe."""


class Mapped(Struct):
    """A page that is mapped, or that was and may still be seen."""

    content: Data
    is_leaving: bool


class Pipe(Struct):
    """A pipe: how many read ends are open, and how much waits to be read from them."""

    read_ends: Annotated[int, Range(0, 2)]
    waiting: Annotated[int, Range(0, None)]


class Release(Interface):
    """What is given up is gone as soon as the call returns. Pipes have room for all that is written."""

    later: ClassVar[bool] = False

    pages: Map[Address, Mapped]
    pipes: Map[PipeName, Pipe]

    @well_formed("pages")
    def pages_leave_later(self, address: Address, page: Mapped) -> bool:
        """No page leaves where it is gone at once."""
        return bool(self.later or not page.is_leaving)

    @well_formed("pipes")
    def nobody_waits(self, name: PipeName, pipe: Pipe) -> bool:
        """Nothing waits where no one can read it."""
        return bool(pipe.read_ends > 0 or pipe.waiting == 0)

    @call
    def mmap(self, address: Address, content: Data) -> int:
        """Maps a page that holds this, in the place of what was there (MAP_FIXED)."""
        self.pages[address] = Mapped(content=content, is_leaving=False)
        return 0

    @call
    def munmap(self, address: Address) -> int:
        """munmap(2) of one page."""
        if address in self.pages:
            if self.later:
                self.pages[address].is_leaving = True
            else:
                del self.pages[address]
        return 0

    @call
    def memread(self, address: Address) -> Signal | Data:
        """A load from a page."""
        return self.pages[address].content if self._is_seen(address) else Signal.SIGSEGV

    @call
    def memwrite(self, address: Address, content: Data) -> Signal | int:
        """A store of a whole page."""
        if not self._is_seen(address):
            return Signal.SIGSEGV
        self.pages[address].content = content
        return 0

    def _is_seen(self, address: Address) -> bool:
        if address not in self.pages:
            return False
        return bool(not self.pages[address].is_leaving or (self.later and choose(bool)))

    @call
    def open_pipe(self, pipe: PipeName) -> int:
        """Another read end of a pipe, which is made if it is not there."""
        if pipe not in self.pipes:
            self.pipes[pipe] = Pipe(read_ends=0, waiting=0)
        self.pipes[pipe].read_ends += 1
        return 0

    @call
    def close(self, pipe: PipeName) -> Errno | int:
        """close(2) of a read end; with the last one goes what waits."""
        if pipe not in self.pipes or self.pipes[pipe].read_ends == 0:
            return Errno.EBADF
        of = self.pipes[pipe]
        of.read_ends -= 1
        if of.read_ends == 0:
            of.waiting = 0
        return 0

    @call
    def write(self, pipe: PipeName) -> Errno | int:
        """write(2) to the pipe; EPIPE comes with SIGPIPE."""
        if pipe not in self.pipes:
            return Errno.EBADF
        of = self.pipes[pipe]
        if of.read_ends == 0:
            return 1 if self.later and choose(bool) else Errno.EPIPE
        of.waiting += 1
        return 1


class LaterRelease(Release):
    """What is given up is gone in time: until then accesses of the page, and writes to the pipe, may succeed."""

    interface_name = "release-later"
    later: ClassVar[bool] = True


class Item(Sort, word="event"):
    """A signal that may be pending, or a descriptor that may be ready."""


class Both(Struct):
    """Which of two things are ready."""

    first: bool
    second: bool


class Events(Interface):
    """What is ready: all of it is returned."""

    ready: Set[Item]

    @call
    def arrive(self, item: Item) -> int:
        """A signal is sent, or something comes in: not counted if it is there already."""
        self.ready.add(item)
        return 0

    @call
    def take(self, item: Item) -> Errno | int:
        """The signal is taken, or what came in is read."""
        if item not in self.ready:
            return Errno.EAGAIN
        self.ready.remove(item)
        return 0

    @call
    def select(self, first: Item, second: Item) -> Both:
        """select(2) of two descriptors, or sigpending(2) of two signals: which are ready."""
        return Both(first=first in self.ready, second=second in self.ready)


class AnyEvents(Interface):
    """What is ready: any one thing is returned."""

    interface_name = "events-any"
    arrive = Events.arrive
    take = Events.take

    ready: Set[Item]

    @call
    def select(self, first: Item, second: Item) -> Errno | Item:
        """One of the two that is ready; EAGAIN if neither is."""
        if first in self.ready and (second not in self.ready or choose(bool)):
            return first
        return second if second in self.ready else Errno.EAGAIN
