"""`posix-close-to-open`: the calls of `posix18`, with data of files that others see when a file is closed and opened.

Each process stands for a domain of its own. What it writes is its own (`unreleased`) until it closes the file: a
process that opens the file from then on reads it. Until then others read that or what there was, and so they do with a
file that they had opened before (`seen`): a page is as it was at the open, or as it is now. Of two that write one page,
the one that closes later is read.

Whatever else a process asks of a file, such as its status or its length, lets others know what it has written, and
shows it what there is. Names, descriptors, pipes and memory are as in `posix18`: a file is mapped where it lies, so
loads and stores are seen by all that look.

Before calls under test, all know all: nothing is unreleased, and no one has seen less than there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from commutant.interfaces.posix.data import DataCalls, Read
from commutant.interfaces.posix.descriptors import SEEK_END, SEEK_SET, DescriptorCalls, Fstat
from commutant.interfaces.posix.memory import MemoryCalls
from commutant.interfaces.posix.names import NameCalls
from commutant.interfaces.posix.observation import NameView, Observation
from commutant.interfaces.posix.opening import Open, Opening, OpenPipe
from commutant.interfaces.posix.operations import Operations, Stat
from commutant.interfaces.posix.setup.state import StateSetup
from commutant.interfaces.posix.state import (
    Address,
    Data,
    Descriptor,
    Directory,
    Inum,
    MappedPage,
    Name,
    Number,
    Page,
)
from commutant.lang import (
    Errno,
    Map,
    Process,
    Range,
    Seq,
    Signal,
    Struct,
    Time,
    call,
    choose,
    now,
    setup_call,
    well_formed,
)


class Unreleased(Struct):
    """What a process has written to a file and not let others know of: pages, where the last one ends, and when."""

    pages: Map[Page, Data]
    end: Page
    time: Time


class Seen(Struct):
    """A file as it was when a process last looked what there is."""

    length: Page
    pages: Map[Page, Data]

    def same_as(self, other: Seen, zero: Data) -> bool:
        """Whether its process cannot tell them apart: a hole reads like a page of zeros."""
        return bool(
            self.length == other.length
            and self.pages.equal_where(other.pages, lambda page: page < self.length, default=zero)
        )


def later(first: Time, second: Time) -> Time:
    """The later of two times; of calls under test, all of which run at one time, that is the second."""
    return max(first, second) if isinstance(first, int) and isinstance(second, int) else second


class Copies(Operations):
    """What processes have written and seen of files, and who knows of it. `caller` makes the call that is under way, or
    no one of them all while a test looks at directories."""

    unreleased: Map[tuple[Process, Inum], Unreleased]
    seen: Map[tuple[Process, Inum], Seen]
    caller: Process | None

    @well_formed("unreleased")
    def all_know_all(self, key: tuple[Process, Inum], unreleased: Unreleased) -> bool:
        """Before calls under test, nothing is unreleased."""
        return False

    @well_formed("seen")
    def nobody_has_seen_less(self, key: tuple[Process, Inum], seen: Seen) -> bool:
        """Before calls under test, who has a file open reads what there is."""
        return False

    compared_apart: ClassVar[Sequence[str]] = (*Operations.compared_apart, "seen", "caller")

    def equivalent(self, other: Any) -> Any:
        """As `FileState.equivalent`, no matter who made the last call."""
        return super().equivalent(other) and self.seen.equal_where(
            other.seen, lambda _: True, same=lambda mine, theirs: mine.same_as(theirs, self.zero)
        )

    def key(self, process: Process, name: Name) -> tuple[Directory, Name]:
        """As `Operations.key`, for a call of this process."""
        self.caller = process
        return super().key(process, name)

    def descriptor(self, process: Process, fd: int) -> Descriptor | None:
        """As `Operations.descriptor`, for a call of this process."""
        self.caller = process
        return super().descriptor(process, fd)

    def release(self, process: Process, inum: Inum) -> None:
        """Others know what the process has written to a file."""
        key = (process, inum)
        if key not in self.unreleased:
            return
        written = self.unreleased.pop(key)
        inode = self.inodes[inum]
        for page, data in written.pages.touched():
            inode.put(page, data)
            if key in self.seen:
                self.seen[key].pages[page] = data
        if written.end > inode.length:
            inode.length = written.end
        if key in self.seen and written.end > self.seen[key].length:
            self.seen[key].length = written.end
        inode.mtime = later(inode.mtime, written.time)
        inode.ctime = later(inode.ctime, written.time)

    def settle(self, inum: Inum) -> None:
        """Others may have let everybody know already what they have written to a file."""
        for (process, other), _ in list(self.unreleased.touched()):
            if process != self.caller and other == inum and choose(bool):
                self.release(process, inum)

    def look(self, inum: Inum) -> None:
        """The caller lets others know what it has written to a file, and sees what there is."""
        self.settle(inum)
        if self.caller is not None:
            self.release(self.caller, inum)
            self.see(inum)

    def _of_caller(self, inum: Inum) -> tuple[Process, Inum]:
        """What the caller has written and seen of a file, by this key: somebody has called."""
        caller: Any = self.caller
        return caller, inum

    def see(self, inum: Inum) -> None:
        """The caller sees what there is."""
        inode = self.inodes[inum]
        self.seen[self._of_caller(inum)] = Seen(length=inode.length, pages=inode.pages.copy())

    def page_read(self, inum: Inum, page: int) -> Data | None:
        """What the caller reads of a page; None at the end of the file."""
        key = self._of_caller(inum)
        written = self.unreleased.get(key)
        if written is not None and page in written.pages:
            return written.pages[page]
        content = self._page_known(inum, page)
        if content is None and written is not None and page < written.end:
            return self.zero
        return content

    def _page_known(self, inum: Inum, page: int) -> Data | None:
        """A page as the caller has seen it, or as it is now."""
        self.settle(inum)
        inode = self.inodes[inum]
        present = self.read_page(inode, page) if page < inode.length else None
        key = self._of_caller(inum)
        if key not in self.seen:
            return present
        seen = self.seen[key]
        before = seen.pages.get(page, self.zero) if page < seen.length else None
        if before is None and present is None:
            return None
        if before is not None and present is not None and before == present:
            return before
        if not choose(bool):
            return before
        if before is not None and present is not None:
            seen.pages[page] = present
        else:
            self.see(inum)
        return present

    def empty_file(self, inum: Inum) -> None:
        """As `Operations.empty_file`: what the caller has written before is cut, too."""
        self.look(inum)
        super().empty_file(inum)

    def stat_of_file(self, inum: Inum) -> Stat:
        """As `Operations.stat_of_file`: who asks has let others know, and reads what it was answered."""
        self.look(inum)
        return super().stat_of_file(inum)


class OpenedFiles(Opening, Copies):
    """What open does before it has a descriptor."""

    def open_name(
        self, process: Process, name: Name, creat: bool, excl: bool, trunc: bool, readable: bool, writable: bool
    ) -> Errno | Descriptor:
        """As `Opening.open_name`; the caller sees what there is."""
        opened = super().open_name(process, name, creat, excl, trunc, readable, writable)
        if not isinstance(opened, Errno):
            self.look(opened.inum)
        return opened


class CopiedData(DataCalls, Copies):
    """The calls that read and write."""

    def read_file(self, descriptor: Descriptor, page: int) -> Errno | Read:
        """Reads a page of a file."""
        if not descriptor.readable:
            return Errno.EBADF
        content = self.page_read(descriptor.inum, page)
        return Read(pages=0, data=self.zero) if content is None else Read(pages=1, data=content)

    def write_file(self, descriptor: Descriptor, page: int, data: Data) -> Errno | int:
        """Writes a page, of which others know later; returns the page after it."""
        if not descriptor.writable:
            return Errno.EBADF
        start = self.start_of_write(descriptor, page)
        key = self._of_caller(descriptor.inum)
        if key not in self.unreleased:
            self.unreleased[key] = Unreleased(pages=Map(), end=0, time=now())
        written = self.unreleased[key]
        written.pages[start] = data
        written.time = now()
        if start >= written.end:
            written.end = start + 1
        return start + 1


class CopiedDescriptors(DescriptorCalls, Copies):
    """The calls on descriptors that ask the owner of the file."""

    @call
    def close(self, process: Process, fd: Number) -> Errno | int:
        """close(2): who opens the file from now on reads what the caller has written."""
        descriptor = self.descriptor(process, fd)
        if descriptor is not None and not descriptor.pipe:
            self.settle(descriptor.inum)
            self.release(process, descriptor.inum)
        return super().close(process, fd)

    @call
    def lseek(
        self,
        process: Process,
        fd: Number,
        offset: Annotated[int, Range(-2, None)],
        whence: Annotated[int, Range(SEEK_SET, SEEK_END)],
    ) -> Errno | int:
        """lseek(2) by whole pages; counted from the end, it asks how long the file is."""
        descriptor = self.descriptor(process, fd)
        if descriptor is not None and not descriptor.pipe and whence == SEEK_END:
            self.look(descriptor.inum)
        return super().lseek(process, fd, offset, whence)


class CopiedMemory(MemoryCalls, Copies):
    """Loads and stores of files, which are where the file lies."""

    @call
    def memread(self, process: Process, address: Address) -> Signal | Data:
        """A load from a page."""
        self.caller = process
        return super().memread(process, address)

    @call
    def memwrite(self, process: Process, address: Address, data: Data) -> Signal | int:
        """A store of a whole page."""
        self.caller = process
        return super().memwrite(process, address, data)

    def load(self, mapping: MappedPage) -> Signal | Data:
        """As `FileOperations.load`."""
        if not mapping.anonymous:
            self.look(mapping.inum)
        return super().load(mapping)

    def store(self, mapping: MappedPage, data: Data) -> Signal | None:
        """As `FileOperations.store`; the caller sees what it has stored."""
        if mapping.anonymous:
            return super().store(mapping, data)
        self.look(mapping.inum)
        signal = super().store(mapping, data)
        self.see(mapping.inum)
        return signal


class CopiesObserved(Observation, Copies):
    """The calls that only observations make: who looks at a process is that process, at a
    directory somebody else."""

    @setup_call
    def peek_directory(self, directory: Directory, times: bool) -> Seq[NameView]:
        """As `Observation.peek_directory`."""
        self.caller = None
        return super().peek_directory(directory, times)

    def numbered(self, process: Process) -> list[tuple[Any, Descriptor]]:
        """As `FileOperations.numbered`, for a look at this process."""
        self.caller = process
        return super().numbered(process)

    def _mapped(self, process: Process) -> list[tuple[Any, MappedPage]]:
        self.caller = process
        return super()._mapped(process)


class PosixCloseToOpen(
    CopiedMemory,
    CopiedData,
    OpenPipe,
    CopiedDescriptors,
    Fstat,
    NameCalls,
    Open,
    OpenedFiles,
    CopiesObserved,
    StateSetup,
):
    """The calls of posix18 with such data."""

    interface_name = "posix-close-to-open"
