"""The state that the areas of POSIX share: directories, inodes, pipes, descriptors, address spaces.

Pages are the unit of file data, offsets and memory, as in the paper (section 6.1). Paths are one name in the working
directory of the caller; directories themselves do not change. Where Linux and POSIX differ the calls say which one they
follow; file systems are mounted with their defaults, so access times are left open (relatime) and never compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from commutant.lang import Constant, Interface, Map, Process, Range, Sort, Struct, Time, Usually, well_formed

Page = Annotated[int, Range(0, None)]
"""A page of a file, an offset or a length, in pages of 4,096 bytes."""

Number = Annotated[int, Range(0, None)]
"""A descriptor's number."""

Flag = Annotated[bool, Usually(True)]
"""A permission: granted unless a test is about its absence."""

PIPE_CAPACITY_PAGES = 16
"""The pages that a pipe holds (Linux: PIPE_DEF_BUFFERS)."""


class Name(Sort):
    """One component of a path."""


class Directory(Sort):
    """A directory that processes may work in."""


class Inum(Sort, opaque=True, word="file"):
    """An inode number; files and pipes have one."""


class Data(Sort, numbered=True, content=True):
    """The content of a page: every byte has this value."""


class Address(Sort, numbered=True):
    """A page of an address space within the range that tests reserve, counted from its start; or one of mmap's."""


class Inode(Struct):
    """A regular file. Pages below `length` that are not in `pages` are holes and read as zero; none lie beyond."""

    nlink: int
    length: Page
    pages: Map[Page, Data]
    mtime: Time
    ctime: Time

    def content(self, page: int, zero: Data) -> Data:
        """What a page below the end holds."""
        content: Data = self.pages.get(page, zero)
        return content

    def put(self, page: int, data: Data) -> None:
        """Changes what a page holds."""
        self.pages[page] = data

    def same_as(self, other: Inode, zero: Data) -> bool:
        """Whether no caller can tell the files apart: a hole reads like a page of zeros."""
        return bool(
            self.nlink == other.nlink
            and self.length == other.length
            and self.mtime == other.mtime
            and self.ctime == other.ctime
            and self.pages.equal_where(other.pages, lambda page: page < self.length, default=zero)
        )


class Pipe(Struct):
    """A pipe: pages `head` to `tail` of `pages` wait to be read, counted from the first that ever waited in a test.

    `other_readers` and `other_writers` tell whether an end is also open under descriptors that no call names."""

    head: Annotated[int, Range(0, 0)]
    tail: Annotated[int, Range(0, PIPE_CAPACITY_PAGES)]
    pages: Map[int, Data]
    other_readers: Flag
    other_writers: Flag
    mtime: Time


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


class _Places(Interface):
    """Names, in directories that do not change."""

    working_directory: Map[Process, Directory]
    names: Map[tuple[Directory, Name], Inum]


class _OwnDescriptions(Interface):
    """Descriptors each of which has an open file description of its own."""

    descriptors: Map[tuple[Process, Number], Descriptor]


class FileState(Interface):
    """What lies behind names and descriptors: files, pipes, and the memory that they are mapped into."""

    memory: Map[tuple[Process, Address], MappedPage]
    inodes: Map[Inum, Inode]
    pipes: Map[Inum, Pipe]
    zero: Annotated[Data, Constant(0)]

    compared_apart: ClassVar[Sequence[str]] = ("inodes",)
    """Parts of the state that may differ where no caller can tell: `equivalent` says how they are compared."""

    def __init__(self) -> None:
        """The empty state; `_files` and `_pipes` are those that a set-up is about to build (see `setup`)."""
        super().__init__()
        self._files: dict[int, Any] = {}
        self._pipes: dict[int, Any] = {}

    @well_formed("memory")
    def mappings_lead_to_files(self, key: tuple[Process, Address], mapping: MappedPage) -> bool:
        """A file mapping has a file behind it. A shared writable one comes from a descriptor open for writing, and the
        copy of a private one lies within the file (see `empty_file`)."""
        if mapping.anonymous:
            return True
        if mapping.shared and mapping.writable and not mapping.may_write:
            return False
        if mapping.inum not in self.inodes:
            return False
        return bool(mapping.shared or not mapping.copied or mapping.page < self.inodes[mapping.inum].length)

    @well_formed("inodes")
    def files_are_no_pipes(self, inum: Inum, inode: Inode) -> bool:
        """Files and pipes share one space of inode numbers."""
        return inum not in self.pipes

    @well_formed("inodes.pages")
    def pages_lie_within(self, inum: Inum, inode: Inode, page: int, data: Data) -> bool:
        """No file has pages beyond its end."""
        return page < inode.length

    @well_formed("pipes")
    def pipes_are_no_files(self, inum: Inum, pipe: Pipe) -> bool:
        """Files and pipes share one space of inode numbers."""
        return inum not in self.inodes

    @well_formed("pipes.pages")
    def pages_wait(self, inum: Inum, pipe: Pipe, place: int, data: Data) -> bool:
        """A pipe holds the pages that wait, and no others."""
        return pipe.head <= place and place < pipe.tail

    def equivalent(self, other: Any) -> Any:
        """All is compared as it is, but for the content of files.

        A file that nothing leads to any more counts too: no caller can tell, but no calls of this interface reach two
        states that differ in it alone.
        """
        return all(
            getattr(self, name) == getattr(other, name)
            for name in type(self).state_types()
            if name not in self.compared_apart
        ) and self.inodes.equal_where(
            other.inodes, lambda _: True, same=lambda mine, theirs: mine.same_as(theirs, self.zero)
        )


class PosixState(FileState, _OwnDescriptions, _Places):
    """The state of the areas of `posix18`, and what every state fulfils."""

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

    def touch(self, arguments: Mapping[str, Any]) -> None:
        """Looks at the descriptor that a call names, so that "is another end open?" sees those of all calls, and at the
        page of memory, so that truncation finds its copy."""
        if "fd" in arguments and not arguments.get("anonymous"):
            _ = (arguments["process"], arguments["fd"]) in self.descriptors
        if "address" in arguments and "fixed" not in arguments:
            _ = (arguments["process"], arguments["address"]) in self.memory
