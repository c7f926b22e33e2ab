"""Descriptors as `os` has them: numbers of open files of one file system, which are no descriptors of the system."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from scalefs.times import chosen_times

if TYPE_CHECKING:
    from scalefs import _native
    from scalefs.types import Data, Path

_READ, _WRITE, _CREATE, _EXCLUSIVE, _TRUNCATE, _DIRECTORY, _NO_FOLLOW = (1 << bit for bit in range(7))
_OFFERED = {
    os.O_CREAT: _CREATE,
    os.O_EXCL: _EXCLUSIVE,
    os.O_TRUNC: _TRUNCATE,
    os.O_DIRECTORY: _DIRECTORY,
    os.O_NOFOLLOW: _NO_FOLLOW,
}
_ACCESS = {os.O_RDONLY: _READ, os.O_WRONLY: _WRITE, os.O_RDWR: _READ | _WRITE}
_WITHOUT_EFFECT = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | os.O_SYNC | os.O_DSYNC | os.O_NOATIME


_OF_PROCESS, _OF_DESCRIPTION, _WHOLE_FILE = range(3)
_LOCK_MODES = {fcntl.LOCK_UN: 0, fcntl.LOCK_SH: 1, fcntl.LOCK_EX: 2}


def _lock_mode(command: int) -> int:
    """How `LOCK_SH` and its kin lock. ValueError for another number, as by `fcntl.lockf`."""
    mode = _LOCK_MODES.get(command & ~fcntl.LOCK_NB)
    if mode is None:
        raise ValueError("unrecognized lockf argument")
    return mode


class Descriptors:
    """The calls of `os` on descriptors: `files.descriptors.open(path, os.O_RDWR)` and its kin.

    Each raises OSError as that of `os` does, EBADF for a number that is not open.
    """

    def __init__(self, native: _native.Descriptors) -> None:
        """Of this file system, or of a transaction on it."""
        self._native = native

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        """Opens a file or directory under the lowest free number. ValueError for flags that are not offered."""
        wanted = _ACCESS.get(flags & os.O_ACCMODE)
        unknown = flags & ~(os.O_ACCMODE | os.O_APPEND | _WITHOUT_EFFECT)
        for flag, bit in _OFFERED.items():
            if flags & flag == flag and wanted is not None:
                wanted |= bit
                unknown &= ~flag
        if wanted is None or unknown:
            raise ValueError(f"expected flags of os.open that this file system has, got {flags:#o}")
        return self._native.open(path, wanted, mode & 0o7777, bool(flags & os.O_APPEND), False)

    def close(self, fd: int) -> None:
        """Closes a descriptor."""
        self._native.close(fd)

    def read(self, fd: int, n: int) -> bytes:
        """Up to n bytes at the descriptor's offset; none at the end."""
        return self._native.read(fd, n)

    def pread(self, fd: int, n: int, offset: int) -> bytes:
        """Up to n bytes at an offset."""
        return self._native.read_at(fd, n, offset)

    def write(self, fd: int, data: Data) -> int:
        """Writes at the descriptor's offset, and returns how many bytes."""
        return self._native.write(fd, data)

    def pwrite(self, fd: int, data: Data, offset: int) -> int:
        """Writes at an offset; at the end of a file opened with O_APPEND, as Linux does."""
        return self._native.write_at(fd, data, offset)

    def lseek(self, fd: int, position: int, whence: int = os.SEEK_SET) -> int:
        """Moves the descriptor's offset, and returns the new one."""
        return self._native.seek(fd, position, whence)

    def ftruncate(self, fd: int, length: int) -> None:
        """Makes a file longer by a hole, or shorter."""
        self._native.truncate(fd, length)

    def posix_fallocate(self, fd: int, offset: int, len: int) -> None:
        """Takes room for bytes of a file, and makes it as long as they reach."""
        self._native.allocate(fd, 0, offset, len)

    def fallocate(self, fd: int, mode: int, offset: int, len: int) -> None:
        """As Linux's `fallocate`: mode is 0, or FALLOC_FL_KEEP_SIZE (1), perhaps with FALLOC_FL_PUNCH_HOLE (2)."""
        self._native.allocate(fd, mode, offset, len)

    def getxattr(self, fd: int, attribute: Path) -> bytes:
        """The value of an extended attribute."""
        return self._native.get_attribute(fd, attribute)

    def setxattr(self, fd: int, attribute: Path, value: Data, flags: int = 0) -> None:
        """Sets an extended attribute, as `os.setxattr` does for a descriptor."""
        self._native.set_attribute(fd, attribute, value, flags)

    def removexattr(self, fd: int, attribute: Path) -> None:
        """Removes an extended attribute."""
        self._native.remove_attribute(fd, attribute)

    def listxattr(self, fd: int) -> list[str]:
        """The names of all extended attributes, sorted."""
        return [os.fsdecode(name) for name in self._native.list_attributes(fd)]

    def fstat(self, fd: int) -> os.stat_result:
        """What is known of an open file."""
        return self._native.stat(fd)

    def fchmod(self, fd: int, mode: int) -> None:
        """Sets the permission bits."""
        self._native.change_mode(fd, mode & 0o7777)

    def fchown(self, fd: int, uid: int, gid: int) -> None:
        """Sets owner and group, each unless it is -1."""
        self._native.change_owner(fd, None if uid == -1 else uid, None if gid == -1 else gid)

    def futime(self, fd: int, times: tuple[float, float] | None = None, *, ns: tuple[int, int] | None = None) -> None:
        """Sets the times of access and modification, as `os.utime` does for a descriptor."""
        self._native.set_times(fd, chosen_times(times, ns))

    def flock(self, fd: int, operation: int) -> None:
        """Locks all of a file, or unlocks it, as `fcntl.flock`: LOCK_SH, LOCK_EX or LOCK_UN, perhaps with LOCK_NB."""
        self._native.set_lock(fd, (_WHOLE_FILE, _lock_mode(operation)), (0, 0, 0), not operation & fcntl.LOCK_NB)

    def lockf(self, fd: int, cmd: int, len: int = 0, start: int = 0, whence: int = 0) -> None:
        """Locks a range, or unlocks it, as `fcntl.lockf`: for the file system's process, which all threads are."""
        self._lock_range(_OF_PROCESS, fd, cmd, (start, whence, len))

    def ofd_lockf(self, fd: int, cmd: int, len: int = 0, start: int = 0, whence: int = 0) -> None:
        """As `lockf`, for what the descriptor leads to (F_OFD_SETLK): it keeps out what was opened apart."""
        self._lock_range(_OF_DESCRIPTION, fd, cmd, (start, whence, len))

    def _lock_range(self, kind: int, fd: int, cmd: int, range_: tuple[int, int, int]) -> None:
        self._native.set_lock(fd, (kind, _lock_mode(cmd)), range_, not cmd & fcntl.LOCK_NB)

    def fsync(self, fd: int) -> None:
        """Nothing but a look whether the descriptor is open: nothing reaches a disk."""
        self._native.stat(fd)

    def dup(self, fd: int) -> int:
        """Another descriptor with the same offset, the lowest that is free."""
        return self._native.duplicate(fd, None)

    def dup2(self, fd: int, fd2: int) -> int:
        """Lets a number lead to the same open file as another one."""
        return self._native.duplicate(fd, fd2)
