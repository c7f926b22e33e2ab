"""The state that the areas of POSIX share: directories, inodes, pipes, descriptors, address spaces.

Pages are the unit of file data, offsets and memory, as in the paper (section 6.1). Paths are one name in the working
directory of the caller; directories themselves do not change. Where Linux and POSIX differ the calls say which one they
follow; file systems are mounted with their defaults, so access times are left open (relatime) and never compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from commutant.lang import (
    Constant,
    Interface,
    Map,
    Process,
    Range,
    Sort,
    Struct,
    Time,
    Usually,
    now,
    well_formed,
)

Page = Annotated[int, Range(0, None)]
"""A page of a file, an offset or a length, in pages of 4,096 bytes."""

Number = Annotated[int, Range(0, None)]
"""A descriptor's number."""

Flag = Annotated[bool, Usually(True)]
"""A permission: granted unless a test is about its absence."""

PIPE_PAGES_AT_START = 2
"""The most pages that wait in a pipe of an initial state: empty, one and several are all that calls can tell apart."""

PIPE_CAPACITY_PAGES = 16
"""The pages that a pipe holds (Linux: PIPE_DEF_BUFFERS)."""


class Name(Sort):
    """One component of a path."""


class Directory(Sort):
    """A directory that processes may work in."""


class Inum(Sort, opaque=True):
    """An inode number; files and pipes have one."""


class Data(Sort, numbered=True, content=True):
    """The content of a page: every byte has this value."""


class Address(Sort, numbered=True):
    """A page of an address space within the range that tests reserve, counted from its start; or one of mmap's."""


class Inode(Struct):
    """A regular file. Pages below `length` that are not in `pages` are holes and read as zero."""

    nlink: int
    length: Page
    pages: Map[Page, Data]
    mtime: Time
    ctime: Time

    def __eq__(self, other: object) -> bool:
        """Pages beyond the end cannot be read, and a hole reads like a page of zeros."""
        if not isinstance(other, Inode):
            return NotImplemented
        return bool(
            self.nlink == other.nlink
            and self.length == other.length
            and self.mtime == other.mtime
            and self.ctime == other.ctime
            and self.pages.equal_where(other.pages, lambda page: page < self.length)
        )


class Pipe(Struct):
    """A pipe: pages `head` to `tail` of `pages` wait to be read. `other_readers` and `other_writers` tell whether an
    end is also open under descriptors that no call names."""

    head: Number
    tail: Number
    pages: Map[int, Data]
    other_readers: Flag
    other_writers: Flag
    mtime: Time

    def __eq__(self, other: object) -> bool:
        """Pages that have been read are gone."""
        if not isinstance(other, Pipe):
            return NotImplemented
        return bool(
            self.head == other.head
            and self.tail == other.tail
            and self.mtime == other.mtime
            and self.pages.equal_where(other.pages, lambda place: place >= self.head)
        )


class Descriptor(Struct):
    """An open file description and the one descriptor that refers to it: an end of a pipe, or a file with an offset."""

    pipe: bool
    write_end: bool
    inum: Inum
    offset: Page
    readable: Flag
    writable: Flag

    def relevant(self) -> Iterable[str]:
        """A pipe's end has no offset and no mode of its own."""
        if self.pipe:
            return ("pipe", "write_end", "inum")
        return ("pipe", "inum", "offset", "readable", "writable")


class MappedPage(Struct):
    """One mapped page: anonymous memory, or a page of a file, shared or private. `own` is what it holds by itself:
    anonymous memory, and a private page once it was written (`copied`)."""

    anonymous: bool
    shared: bool
    copied: bool
    writable: Flag
    may_write: Flag
    inum: Inum
    page: Page
    own: Data

    def relevant(self) -> Iterable[str]:
        """What the kind of mapping uses."""
        if self.anonymous:
            return ("anonymous", "writable", "own")
        if self.shared:
            return ("anonymous", "shared", "writable", "may_write", "inum", "page")
        if self.copied:
            return ("anonymous", "shared", "copied", "writable", "own", "inum", "page")
        return ("anonymous", "shared", "copied", "writable", "inum", "page")


class PosixState(Interface):
    """The state of all areas, and what every state fulfils."""

    working_directory: Map[Process, Directory]
    names: Map[tuple[Directory, Name], Inum]
    descriptors: Map[tuple[Process, Number], Descriptor]
    memory: Map[tuple[Process, Address], MappedPage]
    inodes: Map[Inum, Inode]
    pipes: Map[Inum, Pipe]
    zero: Annotated[Data, Constant(0)]

    @well_formed("names")
    def names_lead_to_files(self, key: tuple[Directory, Name], inum: Inum) -> bool:
        """No name dangles, and none leads to a pipe."""
        return inum in self.inodes

    @well_formed("descriptors")
    def descriptors_lead_somewhere(self, key: tuple[Process, int], descriptor: Descriptor) -> bool:
        """An open description has a file or a pipe behind it."""
        if descriptor.pipe:
            return descriptor.inum in self.pipes
        return descriptor.inum in self.inodes

    @well_formed("memory")
    def mappings_lead_to_files(self, key: tuple[Process, Address], mapping: MappedPage) -> bool:
        """A file mapping has a file behind it; a shared writable one comes from a descriptor open for writing."""
        if mapping.anonymous:
            return True
        if mapping.shared and mapping.writable and not mapping.may_write:
            return False
        return mapping.inum in self.inodes

    @well_formed("inodes")
    def files_are_no_pipes(self, inum: Inum, inode: Inode) -> bool:
        """Files and pipes share one space of inode numbers."""
        return inum not in self.pipes

    @well_formed("pipes")
    def pipes_hold_little(self, inum: Inum, pipe: Pipe) -> bool:
        """At most PIPE_PAGES_AT_START pages wait."""
        return inum not in self.inodes and pipe.head <= pipe.tail and pipe.tail - pipe.head <= PIPE_PAGES_AT_START

    def touch(self, arguments: Mapping[str, Any]) -> None:
        """Looks at the descriptor that a call names, so that "is another end open?" sees those of all calls."""
        if "fd" in arguments and not arguments.get("anonymous"):
            _ = (arguments["process"], arguments["fd"]) in self.descriptors

    def key(self, process: Process, name: Name) -> tuple[Directory, Name]:
        """Where a name is looked up: in the working directory of the process (POSIX.1-2017, 4.13)."""
        return self.working_directory[process], name

    def descriptor(self, process: Process, fd: int) -> Descriptor | None:
        """The open description behind a descriptor, or None (EBADF)."""
        return self.descriptors.get((process, fd))

    def end_is_open(self, inum: Inum, write_end: bool) -> bool:
        """Whether some descriptor of some process has this end of the pipe open."""
        pipe = self.pipes[inum]
        for _, descriptor in self.descriptors.touched():
            if descriptor.pipe and bool(descriptor.write_end) == write_end and descriptor.inum == inum:
                return True
        return bool(pipe.other_writers if write_end else pipe.other_readers)

    def read_page(self, inode: Inode, page: int) -> Data:
        """The content of a page below the end."""
        content: Data = inode.pages.get(page, self.zero)
        return content

    def write_page(self, inode: Inode, page: int, data: Data) -> None:
        """Writes a page and grows the file to hold it; marks the times (write, POSIX.1-2017)."""
        inode.pages[page] = data
        if page >= inode.length:
            inode.length = page + 1
        inode.mtime = inode.ctime = now()
