"""Calls that return descriptors: open and pipe, up to the numbers, and with the lowest free ones as POSIX has them."""

from __future__ import annotations

from commutant.interfaces.posix.operations import FileOperations, Operations
from commutant.interfaces.posix.state import Descriptor, Flag, Inode, Inum, Name, Pipe
from commutant.lang import Errno, Map, Process, Struct, call, now, unused


class Ends(Struct):
    """The two descriptors of a new pipe."""

    read_end: int
    write_end: int


class NewDescriptors(FileOperations):
    """Descriptors under the lowest numbers that are free."""

    def new_pipe(self) -> tuple[Descriptor, Descriptor]:
        """The ends of a new pipe, the read end first (pipe2(2) with O_NONBLOCK)."""
        inum = unused(Inum)
        self.pipes[inum] = Pipe(head=0, tail=0, pages=Map(), other_readers=False, other_writers=False, mtime=now())
        return (
            Descriptor(pipe=True, write_end=False, inum=inum, offset=0, readable=True, writable=False),
            Descriptor(pipe=True, write_end=True, inum=inum, offset=0, readable=False, writable=True),
        )

    def take_lowest(self, process: Process, description: Descriptor) -> int:
        """Gives the description the lowest free number (POSIX.1-2017, 2.14)."""
        raise AssertionError("the interface has no descriptors")


class Opening(NewDescriptors, Operations):
    """What open does before it has a descriptor."""

    def open_name(
        self, process: Process, name: Name, creat: bool, excl: bool, trunc: bool, readable: bool, writable: bool
    ) -> Errno | Descriptor:
        """open(2) with O_CREAT, O_EXCL, O_TRUNC.

        The access mode is O_RDWR, O_RDONLY, O_WRONLY, or, without either permission, Linux's mode 3, which opens for
        neither. O_TRUNC truncates whatever the mode, as on Linux (handle_truncate); POSIX leaves that undefined for
        O_RDONLY. O_EXCL without O_CREAT has no effect on a regular file, as on Linux; POSIX leaves it undefined.
        """
        key = self.key(process, name)
        if key in self.names:
            if creat and excl:
                return Errno.EEXIST
            inum = self.names[key]
            if trunc:
                self.empty_file(inum)
        elif not creat:
            return Errno.ENOENT
        else:
            inum = unused(Inum)
            self.inodes[inum] = Inode(nlink=1, length=0, pages=Map(), mtime=now(), ctime=now())
            self.names[key] = inum
        return Descriptor(pipe=False, write_end=False, inum=inum, offset=0, readable=readable, writable=writable)

    def take_lowest(self, process: Process, description: Descriptor) -> int:
        """Gives the description the lowest free number (POSIX.1-2017, 2.14)."""
        fd = self.descriptors.lowest_absent(process)
        self.descriptors[process, fd] = description
        return fd


class Open(Opening):
    """open as POSIX has it."""

    @call
    def open(
        self, process: Process, name: Name, creat: bool, excl: bool, trunc: bool, readable: Flag, writable: Flag
    ) -> Errno | int:
        """open(2); see `open_name`. Returns the lowest free descriptor."""
        opened = self.open_name(process, name, creat, excl, trunc, readable, writable)
        return opened if isinstance(opened, Errno) else self.take_lowest(process, opened)


class OpenPipe(NewDescriptors):
    """pipe as POSIX has it."""

    @call
    def pipe(self, process: Process) -> Ends:
        """pipe2(2) with O_NONBLOCK; takes the two lowest free descriptors."""
        read_end, write_end = self.new_pipe()
        return Ends(read_end=self.take_lowest(process, read_end), write_end=self.take_lowest(process, write_end))
