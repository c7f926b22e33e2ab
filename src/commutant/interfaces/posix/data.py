"""Calls that move data of files and pipes, one page each: read, write, pread, pwrite.

Pipes are opened with O_NONBLOCK, so a call that would wait returns EAGAIN; SIGPIPE is ignored, so a pipe without
readers returns EPIPE.
"""

from __future__ import annotations

from commutant.interfaces.posix.operations import FileOperations
from commutant.interfaces.posix.state import PIPE_CAPACITY_PAGES, Data, Descriptor, Inum, Number, Page
from commutant.lang import Errno, Process, Struct, call


class Read(Struct):
    """What a read returns: how many pages (0 at the end) and what they hold."""

    pages: int
    data: Data


class DataCalls(FileOperations):
    """The calls that read and write."""

    @call
    def read(self, process: Process, fd: Number) -> Errno | Read:
        """read(2) of one page at the descriptor's offset, or of the pipe's first page."""
        descriptor = self.descriptor(process, fd)
        if descriptor is None:
            return Errno.EBADF
        if descriptor.pipe:
            if descriptor.write_end:
                return Errno.EBADF
            return self.read_pipe(descriptor.inum)
        result = self.read_file(descriptor, descriptor.offset)
        if isinstance(result, Read):
            descriptor.offset += result.pages
        return result

    def read_file(self, descriptor: Descriptor, page: int) -> Errno | Read:
        """Reads a page of a file."""
        if not descriptor.readable:
            return Errno.EBADF
        inode = self.inodes[descriptor.inum]
        if page >= inode.length:
            return Read(pages=0, data=self.zero)
        return Read(pages=1, data=self.read_page(inode, page))

    def read_pipe(self, inum: Inum) -> Errno | Read:
        """Takes the page of a pipe that came first."""
        pipe = self.pipes[inum]
        if pipe.head == pipe.tail:
            return Errno.EAGAIN if self.end_is_open(inum, True) else Read(pages=0, data=self.zero)
        data = pipe.pages.pop(pipe.head)
        pipe.head += 1
        return Read(pages=1, data=data)

    @call
    def write(self, process: Process, fd: Number, data: Data) -> Errno | int:
        """write(2) of one page at the descriptor's offset, or to the end of the pipe; returns the pages written."""
        descriptor = self.descriptor(process, fd)
        if descriptor is None:
            return Errno.EBADF
        if descriptor.pipe:
            if not descriptor.write_end:
                return Errno.EBADF
            return self.write_pipe(descriptor.inum, data)
        behind = self.write_file(descriptor, descriptor.offset, data)
        if isinstance(behind, Errno):
            return behind
        descriptor.offset = behind
        return 1

    def write_file(self, descriptor: Descriptor, page: int, data: Data) -> Errno | int:
        """Writes a page to a file; returns the page after it."""
        if not descriptor.writable:
            return Errno.EBADF
        start = self.start_of_write(descriptor, page)
        self.write_page(self.inodes[descriptor.inum], start, data)
        return start + 1

    def start_of_write(self, descriptor: Descriptor, page: int) -> int:
        """The page that is written where this one is asked for."""
        return page

    def write_pipe(self, inum: Inum, data: Data) -> Errno | int:
        """Puts a page into a pipe; returns the pages written."""
        if not self.end_is_open(inum, False):
            return Errno.EPIPE
        pipe = self.pipes[inum]
        if pipe.tail - pipe.head >= PIPE_CAPACITY_PAGES:
            return Errno.EAGAIN
        self.append_page(pipe, data)
        return 1

    @call
    def pread(self, process: Process, fd: Number, page: Page) -> Errno | Read:
        """pread(2) of one page. Linux tells a pipe (ESPIPE) before it looks at the mode (ksys_pread64)."""
        descriptor = self.descriptor(process, fd)
        if descriptor is None:
            return Errno.EBADF
        return Errno.ESPIPE if descriptor.pipe else self.read_file(descriptor, page)

    @call
    def pwrite(self, process: Process, fd: Number, page: Page, data: Data) -> Errno | int:
        """pwrite(2) of one page; returns the pages written."""
        descriptor = self.descriptor(process, fd)
        if descriptor is None:
            return Errno.EBADF
        if descriptor.pipe:
            return Errno.ESPIPE
        behind = self.write_file(descriptor, page, data)
        return behind if isinstance(behind, Errno) else 1
