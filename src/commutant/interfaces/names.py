"""File-name calls on one flat directory, as Linux has them: open, link, unlink, rename, stat, access.

Where Linux and the simplified Figure 4 differ, this follows Linux and POSIX.1-2017: renaming one of two links to one
inode to the other does nothing (rename, "If the old and new arguments resolve to ... the same existing file"). A path
name is one component, the caller may do everything, and `open` reports success only: its descriptor is closed at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from commutant.interfaces.naming import link_name, rename_name, unlink_name
from commutant.lang import Errno, Interface, Invocation, Map, Sort, Struct, call, invoke, unused, well_formed


class Name(Sort):
    """A file name in the one directory."""


class Inum(Sort, opaque=True, word="file"):
    """An inode number, picked by the file system."""


class Inode(Struct):
    """A regular file: `nlink` names point to it."""

    nlink: int


class Stat(Struct):
    """What stat tells: which file it is, and how many names it has."""

    ino: Inum
    nlink: int


class Names(Interface):
    """One directory of regular files and their names."""

    names: Map[Name, Inum]
    inodes: Map[Inum, Inode]

    @well_formed("names")
    def names_lead_to_inodes(self, name: Name, inum: Inum) -> bool:
        """No name dangles."""
        return inum in self.inodes

    @call
    def open(self, name: Name, creat: bool, excl: bool) -> Errno | int:
        """open(2) with O_RDWR and perhaps O_CREAT and O_EXCL (Linux: do_open, lookup_open).

        O_EXCL without O_CREAT has no effect on a regular file, as on Linux; POSIX leaves it undefined.
        """
        if name in self.names:
            return Errno.EEXIST if creat and excl else 0
        if not creat:
            return Errno.ENOENT
        inum = unused(Inum)
        self.inodes[inum] = Inode(nlink=1)
        self.names[name] = inum
        return 0

    @call
    def link(self, old: Name, new: Name) -> Errno | int:
        """link(2)."""
        return link_name(self.names, self.inodes, old, new)

    @call
    def unlink(self, name: Name) -> Errno | int:
        """unlink(2)."""
        return unlink_name(self.names, self.inodes, name)

    @call
    def rename(self, src: Name, dst: Name) -> Errno | int:
        """rename(2)."""
        return rename_name(self.names, self.inodes, src, dst)

    @call
    def stat(self, name: Name) -> Errno | Stat:
        """stat(2), inode number and link count."""
        if name not in self.names:
            return Errno.ENOENT
        inum = self.names[name]
        return Stat(ino=inum, nlink=self.inodes[inum].nlink)

    @call
    def access(self, name: Name) -> Errno | int:
        """access(2) with F_OK."""
        return 0 if name in self.names else Errno.ENOENT

    def setup(self) -> Iterable[Invocation]:
        """Creates each inode under its first name and links the others to it."""
        first: dict[Inum, Name] = {}
        for name, inum in self.names.items():
            if inum in first:
                yield invoke("link", old=first[inum], new=name)
            else:
                first[inum] = name
                yield invoke("open", name=name, creat=True, excl=True)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Asks for every name of the test."""
        for name in values[Name]:
            yield invoke("stat", name=name)
