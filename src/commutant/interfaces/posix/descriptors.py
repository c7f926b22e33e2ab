"""Calls on descriptors themselves: fstat, lseek, close."""

from __future__ import annotations

from typing import Annotated

from commutant.interfaces.posix.names import Stat, stat_of
from commutant.interfaces.posix.state import Number, PosixState
from commutant.lang import Errno, Process, Range, call

SEEK_SET, SEEK_CUR, SEEK_END = 0, 1, 2


class DescriptorCalls(PosixState):
    """The calls that need no data."""

    @call
    def fstat(self, process: Process, fd: Number) -> Errno | Stat:
        """fstat(2). A pipe's inode has one link and no size; its times change with writes (Linux: pipe_write)."""
        descriptor = self.descriptor(process, fd)
        if descriptor is None:
            return Errno.EBADF
        if descriptor.pipe:
            pipe = self.pipes[descriptor.inum]
            return Stat(ino=descriptor.inum, pipe=True, nlink=1, size=0, mtime=pipe.mtime, ctime=pipe.mtime)
        return stat_of(descriptor.inum, self.inodes[descriptor.inum])

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

    @call
    def close(self, process: Process, fd: Number) -> Errno | int:
        """close(2)."""
        if (process, fd) not in self.descriptors:
            return Errno.EBADF
        del self.descriptors[process, fd]
        return 0
