"""Calls on names: open, link, unlink, rename, stat."""

from __future__ import annotations

from commutant.interfaces.naming import link_name, rename_name, unlink_name
from commutant.interfaces.posix.operations import Operations, Stat
from commutant.interfaces.posix.state import Descriptor, Flag, Inode, Inum, Name
from commutant.lang import Errno, Map, Process, call, now, unused


def touch_status(inode: Inode) -> None:
    """Marks the time of the last change of status."""
    inode.ctime = now()


class NameCalls(Operations):
    """The calls that take a name in the caller's working directory."""

    @call
    def open(
        self, process: Process, name: Name, creat: bool, excl: bool, trunc: bool, readable: Flag, writable: Flag
    ) -> Errno | int:
        """open(2) with O_CREAT, O_EXCL, O_TRUNC; returns the lowest free descriptor (POSIX.1-2017, 2.14).

        The access mode is O_RDWR, O_RDONLY, O_WRONLY, or, without either permission, Linux's mode 3, which opens for
        neither. O_TRUNC truncates whatever the mode, as on Linux (handle_truncate); POSIX leaves that undefined for
        O_RDONLY.
        """
        key = self.key(process, name)
        if key in self.names:
            if creat and excl:
                return Errno.EEXIST
            inum = self.names[key]
            if trunc:
                self.truncate(inum)
        elif not creat:
            return Errno.ENOENT
        else:
            inum = unused(Inum)
            self.inodes[inum] = Inode(nlink=1, length=0, pages=Map(), mtime=now(), ctime=now())
            self.names[key] = inum
        fd = self.descriptors.lowest_absent(process)
        self.descriptors[process, fd] = Descriptor(
            pipe=False, write_end=False, inum=inum, offset=0, readable=readable, writable=writable
        )
        return fd

    @call
    def link(self, process: Process, old: Name, new: Name) -> Errno | int:
        """link(2)."""
        return link_name(self.names, self.inodes, self.key(process, old), self.key(process, new), touch_status)

    @call
    def unlink(self, process: Process, name: Name) -> Errno | int:
        """unlink(2)."""
        return unlink_name(self.names, self.inodes, self.key(process, name), touch_status)

    @call
    def rename(self, process: Process, src: Name, dst: Name) -> Errno | int:
        """rename(2)."""
        return rename_name(self.names, self.inodes, self.key(process, src), self.key(process, dst), touch_status)

    @call
    def stat(self, process: Process, name: Name) -> Errno | Stat:
        """stat(2)."""
        key = self.key(process, name)
        if key not in self.names:
            return Errno.ENOENT
        return self.stat_of_file(self.names[key])
