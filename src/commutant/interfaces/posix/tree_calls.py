"""Calls of `posix` that take paths and leave no descriptor, made by the superuser: names, directories, links."""

from __future__ import annotations

from typing import Annotated, Any

from commutant.interfaces.posix.files import LinkNumber, SymbolicLink, User
from commutant.interfaces.posix.state import Inum, Name, Page
from commutant.interfaces.posix.trees import Directory, Entry, Trees
from commutant.lang import Errno, Only, Struct, Time, call, now, unused

REGULAR, DIRECTORY, SYMBOLIC_LINK = 1, 2, 3

_MIXED_WITH = (
    *("mkdir", "rmdir", "symlink", "readlink", "unlink", "stat", "lstat", "statx"),
    *("open", "truncate", "access", "chmod", "chown", "utimensat"),
)

Deep = Annotated[bool, Only(True, unless=_MIXED_WITH)]
"""Paths of link and rename have two components in sets without another call on paths: two of these calls have four
paths, whose mixed lengths make most of the work and show nothing that sets with other calls do not."""


class TreeStat(Struct):
    """What stat tells: the kind, which file it is, how many names it has, its size and its times; of a directory its
    rights, of a link no rights."""

    kind: int
    ino: Inum
    link: LinkNumber
    directory: Directory
    nlink: int
    size: Page
    mtime: Time
    ctime: Time
    owner: User
    owner_writes: bool
    others_write: bool


class TreeStats(Trees):
    """What stat tells."""

    def stat_of_entry(
        self, entry: Errno | Entry, *, nlink: bool = True, size: bool = True, times: bool = True, rights: bool = True
    ) -> Errno | TreeStat:
        """The answer for an entry, with what is asked for."""
        if isinstance(entry, Errno):
            return entry
        told: dict[str, Any] = dict.fromkeys(_FIELDS)
        of: Any
        if entry.is_directory:
            of = self.directories[entry.directory]
            told.update(kind=DIRECTORY, directory=entry.directory)
        elif entry.is_link:
            of = self.links[entry.link]
            told.update(kind=SYMBOLIC_LINK, link=entry.link)
        else:
            of = self.inodes[entry.inum]
            told.update(kind=REGULAR, ino=entry.inum)
            if size:
                told.update(size=of.length)
        if not entry.is_directory and nlink:
            told.update(nlink=of.nlink)
        if not entry.is_directory and times:
            told.update(mtime=of.mtime, ctime=of.ctime)
        if rights and (entry.is_directory or not entry.is_link):
            told.update({name: getattr(of, name) for name in RIGHTS})
        return TreeStat(**told)


RIGHTS = ("owner", "owner_writes", "others_write")
_FIELDS = ("kind", "ino", "link", "directory", "nlink", "size", "mtime", "ctime", *RIGHTS)


class NamedCalls(TreeStats):
    """The calls on paths, up to open."""

    @call
    def mkdir(self, deep: bool, parent: Name, name: Name) -> Errno | int:
        """mkdir(2) (do_mkdirat)."""
        entries = self.place_for(deep, parent, name)
        if isinstance(entries, Errno):
            return entries
        directory = unused(Directory)
        self.directories[directory] = self.new_directory(name)
        entries[name] = Entry(is_directory=True, directory=directory)
        return 0

    @call
    def rmdir(self, deep: bool, parent: Name, name: Name) -> Errno | int:
        """rmdir(2) (do_rmdir, may_delete, simple_rmdir)."""
        directory = self.parent_of(deep, parent)
        if isinstance(directory, Errno):
            return directory
        entries = self.directories[directory].entries
        if name not in entries:
            return Errno.ENOENT
        entry = entries[name]
        if not entry.is_directory:
            return Errno.ENOTDIR
        if len(self.directories[entry.directory].entries) > 0:
            return Errno.ENOTEMPTY
        del self.directories[entry.directory]
        del entries[name]
        return 0

    @call
    def symlink(self, target: Name, deep: bool, parent: Name, name: Name) -> Errno | int:
        """symlink(2) of a path of one component (do_symlinkat)."""
        entries = self.place_for(deep, parent, name)
        if isinstance(entries, Errno):
            return entries
        link = unused(LinkNumber)
        self.links[link] = SymbolicLink(nlink=1, target=target, mtime=now(), ctime=now())
        entries[name] = Entry(is_link=True, link=link)
        return 0

    @call
    def readlink(self, deep: bool, parent: Name, name: Name) -> Errno | Name:
        """readlink(2) (do_readlinkat)."""
        entry = self.entry_at(deep, parent, name, follow=False)
        if isinstance(entry, Errno):
            return entry
        if entry.is_directory or not entry.is_link:
            return Errno.EINVAL
        return self.target_of(entry)

    @call
    def link(
        self, old_deep: Deep, old_parent: Name, old: Name, new_deep: Deep, new_parent: Name, new: Name
    ) -> Errno | int:
        """link(2): the old path is looked up first, and a link at its end is not followed (do_linkat, vfs_link)."""
        entry = self.entry_at(old_deep, old_parent, old, follow=False)
        if isinstance(entry, Errno):
            return entry
        entries = self.place_for(new_deep, new_parent, new)
        if isinstance(entries, Errno):
            return entries
        if entry.is_directory:
            return Errno.EPERM
        self.named_anew(entry, 1)
        entries[new] = self.entry_again(entry)
        return 0

    @call
    def unlink(self, deep: bool, parent: Name, name: Name) -> Errno | int:
        """unlink(2) (do_unlinkat, may_delete)."""
        directory = self.parent_of(deep, parent)
        if isinstance(directory, Errno):
            return directory
        entries = self.directories[directory].entries
        if name not in entries:
            return Errno.ENOENT
        entry = entries[name]
        if entry.is_directory:
            return Errno.EISDIR
        self.named_anew(entry, -1)
        del entries[name]
        return 0

    @call
    def rename(
        self, src_deep: Deep, src_parent: Name, src: Name, dst_deep: Deep, dst_parent: Name, dst: Name
    ) -> Errno | int:
        """rename(2): both parents are looked up before either name (do_renameat2, lock_rename, vfs_rename)."""
        source = self.parent_of(src_deep, src_parent)
        if isinstance(source, Errno):
            return source
        into = self.parent_of(dst_deep, dst_parent)
        if isinstance(into, Errno):
            return into
        names, others = self.directories[source].entries, self.directories[into].entries
        if src not in names:
            return Errno.ENOENT
        moved = names[src]
        if moved.is_directory and moved.directory == into:
            return Errno.EINVAL  # into itself
        if dst in others:
            replaced = others[dst]
            if replaced.is_directory and replaced.directory == source:
                return Errno.ENOTEMPTY  # the directory that it stands in
            if moved.is_directory:
                if not replaced.is_directory:
                    return Errno.ENOTDIR
                if moved.directory == replaced.directory:
                    return 0
                if len(self.directories[replaced.directory].entries) > 0:
                    return Errno.ENOTEMPTY
                del self.directories[replaced.directory]
            elif replaced.is_directory:
                return Errno.EISDIR
            elif self.leads_to_the_same(moved, replaced):
                return 0
            else:
                self.named_anew(replaced, -1)
        if not moved.is_directory:
            self.named_anew(moved, 0)
        others[dst] = self.entry_again(moved)
        del names[src]
        return 0

    @call
    def stat(self, deep: bool, parent: Name, name: Name) -> Errno | TreeStat:
        """stat(2)."""
        return self.stat_of_entry(self.entry_at(deep, parent, name, follow=True))

    @call
    def lstat(self, deep: bool, parent: Name, name: Name) -> Errno | TreeStat:
        """lstat(2)."""
        return self.stat_of_entry(self.entry_at(deep, parent, name, follow=False))

    @call
    def statx(
        self, deep: bool, parent: Name, name: Name, nlink: bool, size: bool, times: bool, rights: bool
    ) -> Errno | TreeStat:
        """statx(2): the kind and which file it is, and what else is asked for; what was not is None."""
        entry = self.entry_at(deep, parent, name, follow=True)
        return self.stat_of_entry(entry, nlink=nlink, size=size, times=times, rights=rights)
