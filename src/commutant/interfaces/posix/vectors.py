"""Data calls of `posix` that `posix18` lacks: readv and writev of two pages; and O_APPEND."""

from __future__ import annotations

from commutant.interfaces.posix.data import DataCalls, Read
from commutant.interfaces.posix.slots import Slots
from commutant.interfaces.posix.state import Data, Descriptor, Number
from commutant.lang import Errno, Process, Struct, call


class ReadPages(Struct):
    """What a read of two pages returns: how many (0 at the end) and what they hold."""

    pages: int
    first: Data
    second: Data


class VectorCalls(DataCalls, Slots):
    """Reads and writes of two pages."""

    def start_of_write(self, descriptor: Descriptor, page: int) -> int:
        """The end of the file with O_APPEND, for pwrite too (pwrite(2): a fault of Linux; POSIX has the page)."""
        length: int = self.inodes[descriptor.inum].length
        return page if descriptor.at_offset else length

    @call
    def readv(self, process: Process, fd: Number) -> Errno | ReadPages:
        """readv(2) of two buffers of a page each."""
        descriptor = self.descriptor(process, fd)
        if descriptor is None:
            return Errno.EBADF
        first = self._read_next(descriptor)
        if isinstance(first, Errno):
            return first
        if first.pages == 0:
            return ReadPages(pages=0, first=self.zero, second=self.zero)
        second = self._read_next(descriptor)
        if isinstance(second, Errno):  # a pipe from which nothing more can be had now
            return ReadPages(pages=1, first=first.data, second=self.zero)
        return ReadPages(pages=1 + second.pages, first=first.data, second=second.data)

    def _read_next(self, descriptor: Descriptor) -> Errno | Read:
        if descriptor.pipe:
            return Errno.EBADF if descriptor.write_end else self.read_pipe(descriptor.inum)
        result = self.read_file(descriptor, descriptor.offset)
        if isinstance(result, Read):
            descriptor.offset += result.pages
        return result

    @call
    def writev(self, process: Process, fd: Number, first: Data, second: Data) -> Errno | int:
        """writev(2) of two pages; returns the pages written, of which a pipe takes as many as have room."""
        descriptor = self.descriptor(process, fd)
        if descriptor is None:
            return Errno.EBADF
        if descriptor.pipe:
            if not descriptor.write_end:
                return Errno.EBADF
            written = self.write_pipe(descriptor.inum, first)
            if isinstance(written, Errno):
                return written
            return 1 if isinstance(self.write_pipe(descriptor.inum, second), Errno) else 2
        behind = self.write_file(descriptor, descriptor.offset, first)
        if isinstance(behind, Errno):
            return behind
        self.write_page(self.inodes[descriptor.inum], behind, second)
        descriptor.offset = behind + 1
        return 2
