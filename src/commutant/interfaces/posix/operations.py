"""What several calls do to the state, and set-ups and observations too: looking up, reading, writing, telling."""

from __future__ import annotations

from typing import Any

from commutant.interfaces.posix.state import (
    Data,
    Descriptor,
    Directory,
    FileState,
    Inode,
    Inum,
    MappedPage,
    Name,
    Page,
    Pipe,
    PosixState,
)
from commutant.lang import Map, Process, Signal, Struct, Time, now


class Stat(Struct):
    """What stat and fstat tell; sizes in pages. Access time and device are left out."""

    ino: Inum
    pipe: bool
    nlink: int
    size: Page
    mtime: Time
    ctime: Time


class FileOperations(FileState):
    """The operations that the areas share, however descriptors lead to open file descriptions."""

    def descriptor(self, process: Process, fd: int) -> Descriptor | None:
        """The open description behind a descriptor, or None (EBADF)."""
        raise AssertionError("the interface has no descriptors")

    def touched_descriptions(self) -> list[Descriptor]:
        """The open descriptions that calls may have touched."""
        raise AssertionError("the interface has no descriptors")

    def numbered(self, process: Process) -> list[tuple[Any, Descriptor]]:
        """The open descriptors of a process with their numbers, ascending."""
        own = [(fd, descriptor) for owner, fd, descriptor in self.open_descriptors() if owner == process]
        return sorted(own, key=lambda entry: entry[0])

    def put_descriptor(self, process: Process, fd: int, descriptor: Descriptor) -> None:
        """Gives an open description of its own to this number."""
        raise AssertionError("the interface has no descriptors")

    def open_descriptors(self) -> list[tuple[Process, Any, Descriptor]]:
        """All of a concrete state, with their processes and numbers."""
        raise AssertionError("the interface has no descriptors")

    def new_inode(self, length: int) -> Inode:
        """A file without names, of this many pages that are holes."""
        return Inode(nlink=0, length=length, pages=Map(), mtime=now(), ctime=now())

    def end_is_open(self, inum: Inum, write_end: bool) -> bool:
        """Whether some descriptor of some process has this end of the pipe open."""
        pipe = self.pipes[inum]
        for descriptor in self.touched_descriptions():
            if descriptor.pipe and bool(descriptor.write_end) == write_end and descriptor.inum == inum:
                return True
        return bool(pipe.other_writers if write_end else pipe.other_readers)

    def read_page(self, inode: Inode, page: int) -> Data:
        """The content of a page below the end."""
        return inode.content(page, self.zero)

    def write_page(self, inode: Inode, page: int, data: Data) -> None:
        """Writes a page and grows the file to hold it; marks the times (write, POSIX.1-2017)."""
        inode.put(page, data)
        if page >= inode.length:
            inode.length = page + 1
        inode.mtime = inode.ctime = now()

    def empty_file(self, inum: Inum) -> None:
        """Empties a file and marks its times, even if it was empty (Linux: do_truncate).

        Private copies of its pages are lost too: what happens to them is unspecified in POSIX, and Linux unmaps them
        (truncate_pagecache, unmap_mapping_range with even_cows).
        """
        inode = self.inodes[inum]
        inode.pages.clear()
        inode.length = 0
        inode.mtime = inode.ctime = now()
        for _, mapping in self.memory.touched():
            if not mapping.anonymous and not mapping.shared and mapping.inum == inum:
                mapping.copied = False

    def append_page(self, pipe: Pipe, data: Data) -> None:
        """Puts a page after those that wait in a pipe; marks its times (Linux: pipe_write)."""
        pipe.pages[pipe.tail] = data
        pipe.tail += 1
        pipe.mtime = now()

    def load(self, mapping: MappedPage) -> Signal | Data:
        """What a mapped page holds. Beyond the end of the file, SIGBUS (mmap, POSIX.1-2017)."""
        if mapping.anonymous or (not mapping.shared and mapping.copied):
            return mapping.own
        inode = self.inodes[mapping.inum]
        if mapping.page >= inode.length:
            return Signal.SIGBUS
        return self.read_page(inode, mapping.page)

    def store(self, mapping: MappedPage, data: Data) -> Signal | None:
        """Changes a mapped page; a shared file mapping's store reaches the file. Permission comes before the end of the
        file (Linux: do_user_addr_fault)."""
        if not mapping.writable:
            return Signal.SIGSEGV
        if mapping.anonymous or (not mapping.shared and mapping.copied):
            mapping.own = data
            return None
        inode = self.inodes[mapping.inum]
        if mapping.page >= inode.length:
            return Signal.SIGBUS
        if mapping.shared:
            inode.put(mapping.page, data)
        else:
            mapping.copied = True
            mapping.own = data
        return None

    def stat_of_file(self, inum: Inum) -> Stat:
        """The answer for a regular file."""
        inode = self.inodes[inum]
        return Stat(ino=inum, pipe=False, nlink=inode.nlink, size=inode.length, mtime=inode.mtime, ctime=inode.ctime)

    def stat_of_pipe(self, inum: Inum) -> Stat:
        """The answer for a pipe: one link and no size; writes mark its times (Linux: pipe_write)."""
        pipe = self.pipes[inum]
        return Stat(ino=inum, pipe=True, nlink=1, size=0, mtime=pipe.mtime, ctime=pipe.mtime)


class Operations(FileOperations, PosixState):
    """The operations of the areas of `posix18`."""

    def key(self, process: Process, name: Name) -> tuple[Directory, Name]:
        """Where a name is looked up: in the working directory of the process (POSIX.1-2017, 4.13)."""
        return self.working_directory[process], name

    def descriptor(self, process: Process, fd: int) -> Descriptor | None:
        """The open description behind a descriptor, or None (EBADF)."""
        return self.descriptors.get((process, fd))

    def touched_descriptions(self) -> list[Descriptor]:
        """The open descriptions that calls may have touched."""
        return [descriptor for _, descriptor in self.descriptors.touched()]

    def put_descriptor(self, process: Process, fd: int, descriptor: Descriptor) -> None:
        """Gives an open description of its own to this number."""
        self.descriptors[process, fd] = descriptor

    def open_descriptors(self) -> list[tuple[Process, Any, Descriptor]]:
        """All of a concrete state, with their processes and numbers."""
        return [(process, fd, descriptor) for (process, fd), descriptor in self.descriptors.items()]
