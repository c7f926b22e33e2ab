"""Calls on descriptors themselves: fstat, lseek, close."""

from __future__ import annotations

from typing import Annotated

from commutant.interfaces.posix.operations import FileOperations, Operations, Stat
from commutant.interfaces.posix.state import Number
from commutant.lang import Errno, Process, Range, call

SEEK_SET, SEEK_CUR, SEEK_END = 0, 1, 2


class Fstat(FileOperations):
    """fstat as POSIX has it."""

    @call
    def fstat(self, process: Process, fd: Number) -> Errno | Stat:
        """fstat(2)."""
        descriptor = self.descriptor(process, fd)
        if descriptor is None:
            return Errno.EBADF
        return self.stat_of_pipe(descriptor.inum) if descriptor.pipe else self.stat_of_file(descriptor.inum)


class Seek(FileOperations):
    """The call that moves a descriptor's offset."""

    @call
    def lseek(
        self,
        process: Process,
        fd: Number,
        offset: Annotated[int, Range(-2, None)],
        whence: Annotated[int, Range(SEEK_SET, SEEK_END)],
    ) -> Errno | int:
        """lseek(2) by whole pages; returns the new offset."""
        descriptor = self.descriptor(process, fd)
        if descriptor is None:
            return Errno.EBADF
        if descriptor.pipe:
            return Errno.ESPIPE
        if whence == SEEK_SET:
            target = offset
        elif whence == SEEK_CUR:
            target = descriptor.offset + offset
        else:
            target = self.inodes[descriptor.inum].length + offset
        if target < 0:
            return Errno.EINVAL
        descriptor.offset = target
        return target


class DescriptorCalls(Seek, Operations):
    """The calls that need no data."""

    @call
    def close(self, process: Process, fd: Number) -> Errno | int:
        """close(2)."""
        if (process, fd) not in self.descriptors:
            return Errno.EBADF
        del self.descriptors[process, fd]
        return 0
