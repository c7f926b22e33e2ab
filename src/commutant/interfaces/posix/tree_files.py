"""Calls of `posix` that take paths and ask for rights: open, truncate, access, and those that change rights and times.

A process is that of the superuser, or of another user (`Caller`). Rights to execute, groups and set-id bits are left
out: all may search all directories.
"""

from __future__ import annotations

from commutant.interfaces.posix.files import File, User, new_file
from commutant.interfaces.posix.slots import Description, Slots
from commutant.interfaces.posix.state import Flag, Inum, Name, Number, Page
from commutant.interfaces.posix.trees import Entry, Node, Trees
from commutant.lang import Errno, Process, call, now


class CutCalls(Slots, Trees):
    """Files that are cut or made longer."""

    def truncate_to(self, inum: Inum, length: int) -> None:
        """Makes a file so long and marks its times. Private copies of pages that are cut away are lost (see
        `empty_file`)."""
        file = self.inodes[inum]
        file.cut(length)
        file.mtime = file.ctime = now()
        for _, mapping in self.memory.touched():
            if not mapping.anonymous and not mapping.shared and mapping.inum == inum and mapping.page >= length:
                mapping.copied = False

    @call
    def ftruncate(self, process: Process, fd: Number, length: Page) -> Errno | int:
        """ftruncate(2) to whole pages; marks the times whatever the size was (do_sys_ftruncate)."""
        description = self.descriptor(process, fd)
        if description is None:
            return Errno.EBADF
        if description.pipe or not description.writable:
            return Errno.EINVAL
        self.truncate_to(description.inum, length)
        return 0


class OpenPath(CutCalls):
    """open."""

    @call
    def open(
        self,
        process: Process,
        deep: bool,
        parent: Name,
        name: Name,
        creat: bool,
        excl: bool,
        trunc: bool,
        at_offset: Flag,
        readable: bool,
    ) -> Errno | int:
        """open(2) with O_RDWR or O_WRONLY, and perhaps O_CREAT, O_EXCL and O_TRUNC, and O_APPEND unless `at_offset`.

        Returns the lowest free descriptor (open_last_lookups, do_open, handle_truncate).
        """
        inum = self._opened(process, deep, parent, name, creat, excl, trunc)
        if isinstance(inum, Errno):
            return inum
        description = Description(
            pipe=False,
            write_end=False,
            inum=inum,
            offset=0,
            readable=readable,
            writable=True,
            at_offset=at_offset,
            process=process,
            number=0,
        )
        return self.take_lowest(process, description)

    def _opened(
        self,
        process: Process,
        deep: bool,
        parent: Name,
        name: Name,
        creat: bool,
        excl: bool,
        trunc: bool,
    ) -> Errno | Inum:
        directory = self.parent_of(deep, parent)
        if isinstance(directory, Errno):
            return directory
        entries = self.directories[directory].entries
        if name in entries:
            if creat and excl:
                return Errno.EEXIST
            entry = entries[name]
            if entry.is_directory or not entry.is_link:
                return self._opened_entry(process, entry, trunc)
            target = self.followed(self.target_of(entry))
            if isinstance(target, Errno):
                return target
            directory, name = self.root, target
            entries = self.directories[directory].entries
            if name in entries:
                return self._opened_entry(process, entries[name], trunc)
        if not creat:
            return Errno.ENOENT
        if not self.may_write(process, self.directories[directory]):
            return Errno.EACCES
        return self.new_file_under(entries, name, new_file(0, self.user_of(process), nlink=1))

    def _opened_entry(self, process: Process, entry: Entry, trunc: bool) -> Errno | Inum:
        if entry.is_directory:
            return Errno.EISDIR
        if not self.may_write(process, self.inodes[entry.inum]):
            return Errno.EACCES
        if trunc:
            self.truncate_to(entry.inum, 0)
        return entry.inum


class RightCalls(Trees):
    """The calls about rights and times."""

    @call
    def access(self, process: Process, deep: bool, parent: Name, name: Name, write: bool) -> Errno | int:
        """access(2) with W_OK or F_OK."""
        found = self.object_at(deep, parent, name)
        if isinstance(found, Errno):
            return found
        return 0 if not write or self.may_write(process, found) else Errno.EACCES

    @call
    def chmod(
        self,
        process: Process,
        deep: bool,
        parent: Name,
        name: Name,
        owner_writes: bool,
        others_write: bool,
    ) -> Errno | int:
        """chmod(2) (chmod_common, setattr_prepare)."""
        found = self.object_at(deep, parent, name)
        if isinstance(found, Errno):
            return found
        if not self._is_owner(process, found):
            return Errno.EPERM
        found.owner_writes, found.others_write = owner_writes, others_write
        self._status_changed(found)
        return 0

    @call
    def chown(self, process: Process, deep: bool, parent: Name, name: Name, owner: User) -> Errno | int:
        """chown(2) of the user alone: the superuser gives files away, and an owner may give them to itself
        (setattr_prepare, chown_ok)."""
        found = self.object_at(deep, parent, name)
        if isinstance(found, Errno):
            return found
        caller = self.calling_user(process)
        if caller is not None and not (found.owner == caller.user and owner == caller.user):
            return Errno.EPERM
        found.owner = owner
        self._status_changed(found)
        return 0

    @call
    def utimensat(self, process: Process, deep: bool, parent: Name, name: Name) -> Errno | int:
        """utimensat(2) of both times to now, which anyone who may write may do too (may_setattr)."""
        found = self.object_at(deep, parent, name)
        if isinstance(found, Errno):
            return found
        if not self._is_owner(process, found) and not self.may_write(process, found):
            return Errno.EACCES
        if isinstance(found, File):
            found.mtime = now()
        self._status_changed(found)
        return 0

    def _is_owner(self, process: Process, found: File | Node) -> bool:
        """Whether the process may do what the owner may (Linux: inode_owner_or_capable)."""
        caller = self.calling_user(process)
        return caller is None or bool(found.owner == caller.user)

    def _status_changed(self, found: File | Node) -> None:
        if isinstance(found, File):
            found.ctime = now()


class Truncate(CutCalls):
    """truncate."""

    @call
    def truncate(self, process: Process, deep: bool, parent: Name, name: Name, length: Page) -> Errno | int:
        """truncate(2) to whole pages; marks the times where the size changes (vfs_truncate, shmem_setattr)."""
        entry = self.entry_at(deep, parent, name, follow=True)
        if isinstance(entry, Errno):
            return entry
        if entry.is_directory:
            return Errno.EISDIR
        file = self.inodes[entry.inum]
        if not self.may_write(process, file):
            return Errno.EACCES
        if file.length != length:
            self.truncate_to(entry.inum, length)
        return 0
