"""Calls on names: link, unlink, rename, stat (and open: see `opening`)."""

from __future__ import annotations

from commutant.interfaces.naming import link_name, rename_name, unlink_name
from commutant.interfaces.posix.operations import Operations, Stat
from commutant.interfaces.posix.state import Inode, Name
from commutant.lang import Errno, Process, call, now


def touch_status(inode: Inode) -> None:
    """Marks the time of the last change of status."""
    inode.ctime = now()


class NameCalls(Operations):
    """The calls that take a name in the caller's working directory."""

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
