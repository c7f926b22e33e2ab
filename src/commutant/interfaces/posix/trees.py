"""`posix`: calls on names in nested directories, as Linux has them, with hard and symbolic links.

A path is absolute and has one component, or two (`deep`): `parent/name`. Lengths mix, for with one length alone no call
empties the directory that another removes. Directories nest as deep as they like below that.

**State**: each directory is a map of entries in a record of its own, so that a listing is one value. That a directory
has one name and that no walk meets a loop is said locally: the directory under an entry has that place as its own
(`Node.parent`, `Node.name`), and the root is no entry. Whether a directory is empty is asked of the *number* of its
entries: which of them calls have touched depends on their order. A symbolic link leads to one component of the root. In
initial states none stands there, so that links lead on to links that calls under test make.

Errors are Linux's, in Linux's order (fs/namei.c, 6.1). The link count of directories is left out, and so are times and
sizes. Callers may do everything. `open` reports success only: its descriptor is closed at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import (
    Errno,
    Interface,
    Invocation,
    Map,
    Only,
    Sort,
    Struct,
    call,
    invoke,
    unused,
    well_formed,
)

LINK_CALLS = ("symlink", "readlink", "open")
"""Symbolic links are in states of sets that have one of these calls: what links do to others shows there."""

MAX_FOLLOWED = 4
"""So many links in a row are a loop, where a set has at most three calls: no initial link leads on to another. Linux
gives up after 40 (MAXSYMLINKS)."""


class Name(Sort):
    """One component of a path."""


class Directory(Sort, opaque=True, word="directory"):
    """A directory's inode number."""


class Inum(Sort, opaque=True, word="file"):
    """The inode number of a file or of a symbolic link."""


class Entry(Struct):
    """What a name leads to: a directory, or a regular file or a symbolic link."""

    is_directory: bool
    directory: Directory
    inum: Inum

    def relevant(self) -> Iterable[str]:
        """What the kind of entry uses."""
        return ("is_directory", "directory") if self.is_directory else ("is_directory", "inum")


class Node(Struct):
    """A directory: its entries, and where it stands in initial states."""

    entries: Map[Name, Entry]
    parent: Directory
    name: Name

    def relevant(self) -> Iterable[str]:
        """Where it stands follows from the entries."""
        return ("entries",)


class Inode(Struct):
    """A regular file or a symbolic link: how many names it has, and where a link leads."""

    nlink: int
    is_link: Annotated[bool, Only(False, unless=LINK_CALLS)]
    target: Name

    def relevant(self) -> Iterable[str]:
        """A file leads nowhere."""
        return ("nlink", "is_link", "target") if self.is_link else ("nlink", "is_link")


class Stat(Struct):
    """What stat tells: the kind, which file it is, and how many names it has; of a directory, no number."""

    kind: int
    ino: Inum
    directory: Directory
    nlink: int


ASIDE = "aside"
"""A name in the root that no test has: set-ups make there what they move."""

REGULAR, DIRECTORY, SYMBOLIC_LINK = 1, 2, 3


class Trees(Interface):
    """Directories in directories."""

    root: Directory
    directories: Map[Directory, Node]
    inodes: Map[Inum, Inode]

    @well_formed
    def the_root_is_there(self) -> bool:
        """The root is a directory."""
        return self.root in self.directories

    @well_formed("directories.entries")
    def entries_lead_somewhere(self, directory: Directory, node: Node, name: Name, entry: Entry) -> bool:
        """No name dangles, no directory has two, and links stand in directories below the root."""
        if entry.is_directory:
            if entry.directory == self.root or entry.directory not in self.directories:
                return False
            below = self.directories[entry.directory]
            return below.parent == directory and below.name == name
        if entry.inum not in self.inodes:
            return False
        return not self._is_link(entry) or directory != self.root

    def _is_link(self, entry: Entry) -> bool:
        """Whether an entry that is no directory is a symbolic link."""
        return self.inodes[entry.inum].is_link

    def _followed(self, name: Name) -> Errno | Name:
        """The name in the root that a name there leads to, when links are followed; it need not be there."""
        entries = self.directories[self.root].entries
        for _ in range(MAX_FOLLOWED):
            if name not in entries:
                return name
            entry = entries[name]
            if entry.is_directory or not self._is_link(entry):
                return name
            name = self.inodes[entry.inum].target
        return Errno.ELOOP

    def _parent(self, deep: bool, parent: Name) -> Errno | Directory:
        """The directory that the last component is looked up in (Linux: link_path_walk)."""
        if not deep:
            return self.root
        name = self._followed(parent)
        if isinstance(name, Errno):
            return name
        entries = self.directories[self.root].entries
        if name not in entries:
            return Errno.ENOENT
        entry = entries[name]
        return entry.directory if entry.is_directory else Errno.ENOTDIR

    def _entry(self, deep: bool, parent: Name, name: Name, *, follow: bool) -> Errno | Entry:
        """What a path leads to (Linux: path_lookupat)."""
        directory = self._parent(deep, parent)
        if isinstance(directory, Errno):
            return directory
        entries = self.directories[directory].entries
        if name not in entries:
            return Errno.ENOENT
        entry = entries[name]
        if entry.is_directory or not follow or not self._is_link(entry):
            return entry
        target = self._followed(self.inodes[entry.inum].target)
        if isinstance(target, Errno):
            return target
        top = self.directories[self.root].entries
        if target not in top:
            return Errno.ENOENT
        return top[target]

    def _place_for(self, deep: bool, parent: Name, name: Name) -> Errno | Map[Name, Entry]:
        """The entries of the directory in which the name is free (Linux: filename_create)."""
        directory = self._parent(deep, parent)
        if isinstance(directory, Errno):
            return directory
        entries = self.directories[directory].entries
        return Errno.EEXIST if name in entries else entries

    def _new_file(self, entries: Map[Name, Entry], name: Name, inode: Inode) -> None:
        inum = unused(Inum)
        self.inodes[inum] = inode
        entries[name] = Entry(inum=inum)

    @call
    def mkdir(self, deep: bool, parent: Name, name: Name) -> Errno | int:
        """mkdir(2) (do_mkdirat)."""
        entries = self._place_for(deep, parent, name)
        if isinstance(entries, Errno):
            return entries
        directory = unused(Directory)
        self.directories[directory] = Node(entries=Map(), parent=self.root, name=name)
        entries[name] = Entry(is_directory=True, directory=directory)
        return 0

    @call
    def rmdir(self, deep: bool, parent: Name, name: Name) -> Errno | int:
        """rmdir(2) (do_rmdir, may_delete, simple_rmdir)."""
        directory = self._parent(deep, parent)
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
    def open(self, deep: bool, parent: Name, name: Name, creat: bool, excl: bool) -> Errno | int:
        """open(2) with O_RDWR and perhaps O_CREAT and O_EXCL (open_last_lookups, do_open)."""
        directory = self._parent(deep, parent)
        if isinstance(directory, Errno):
            return directory
        entries = self.directories[directory].entries
        if name in entries:
            if creat and excl:
                return Errno.EEXIST
            entry = entries[name]
            if entry.is_directory:
                return Errno.EISDIR
            if not self._is_link(entry):
                return 0
            target = self._followed(self.inodes[entry.inum].target)
            if isinstance(target, Errno):
                return target
            entries, name = self.directories[self.root].entries, target
            if name in entries:
                return Errno.EISDIR if entries[name].is_directory else 0
        if not creat:
            return Errno.ENOENT
        self._new_file(entries, name, Inode(nlink=1))
        return 0

    @call
    def symlink(self, target: Name, deep: bool, parent: Name, name: Name) -> Errno | int:
        """symlink(2) of a path of one component (do_symlinkat)."""
        entries = self._place_for(deep, parent, name)
        if isinstance(entries, Errno):
            return entries
        self._new_file(entries, name, Inode(nlink=1, is_link=True, target=target))
        return 0

    @call
    def readlink(self, deep: bool, parent: Name, name: Name) -> Errno | Name:
        """readlink(2) (do_readlinkat)."""
        entry = self._entry(deep, parent, name, follow=False)
        if isinstance(entry, Errno):
            return entry
        if entry.is_directory or not self._is_link(entry):
            return Errno.EINVAL
        return self.inodes[entry.inum].target

    @call
    def link(
        self, old_deep: bool, old_parent: Name, old: Name, new_deep: bool, new_parent: Name, new: Name
    ) -> Errno | int:
        """link(2): the old path is looked up first, and a link at its end is not followed (do_linkat, vfs_link)."""
        entry = self._entry(old_deep, old_parent, old, follow=False)
        if isinstance(entry, Errno):
            return entry
        entries = self._place_for(new_deep, new_parent, new)
        if isinstance(entries, Errno):
            return entries
        if entry.is_directory:
            return Errno.EPERM
        self.inodes[entry.inum].nlink += 1
        entries[new] = Entry(inum=entry.inum)
        return 0

    @call
    def unlink(self, deep: bool, parent: Name, name: Name) -> Errno | int:
        """unlink(2) (do_unlinkat, may_delete)."""
        directory = self._parent(deep, parent)
        if isinstance(directory, Errno):
            return directory
        entries = self.directories[directory].entries
        if name not in entries:
            return Errno.ENOENT
        entry = entries[name]
        if entry.is_directory:
            return Errno.EISDIR
        self.inodes[entry.inum].nlink -= 1
        del entries[name]
        return 0

    @call
    def rename(
        self, src_deep: bool, src_parent: Name, src: Name, dst_deep: bool, dst_parent: Name, dst: Name
    ) -> Errno | int:
        """rename(2): both parents are looked up before either name (do_renameat2, lock_rename, vfs_rename)."""
        source = self._parent(src_deep, src_parent)
        if isinstance(source, Errno):
            return source
        into = self._parent(dst_deep, dst_parent)
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
            elif moved.inum == replaced.inum:
                return 0
            else:
                self.inodes[replaced.inum].nlink -= 1
        if moved.is_directory:
            others[dst] = Entry(is_directory=True, directory=moved.directory)
        else:
            others[dst] = Entry(inum=moved.inum)
        del names[src]
        return 0

    @call
    def stat(self, deep: bool, parent: Name, name: Name) -> Errno | Stat:
        """stat(2)."""
        return self._stat(self._entry(deep, parent, name, follow=True))

    @call
    def lstat(self, deep: bool, parent: Name, name: Name) -> Errno | Stat:
        """lstat(2)."""
        return self._stat(self._entry(deep, parent, name, follow=False))

    def _stat(self, entry: Errno | Entry) -> Errno | Stat:
        if isinstance(entry, Errno):
            return entry
        left_out: Any = None
        if entry.is_directory:
            return Stat(kind=DIRECTORY, ino=left_out, directory=entry.directory, nlink=left_out)
        kind = SYMBOLIC_LINK if self._is_link(entry) else REGULAR
        return Stat(kind=kind, ino=entry.inum, directory=left_out, nlink=self.inodes[entry.inum].nlink)

    @call
    def access(self, deep: bool, parent: Name, name: Name) -> Errno | int:
        """access(2) with F_OK."""
        entry = self._entry(deep, parent, name, follow=True)
        return entry if isinstance(entry, Errno) else 0

    def complete(self) -> None:
        """Entries that no call looks at are regular files; files have as many names as lead to them."""
        names = [entry for node in self.directories.values() for entry in node.entries.values()]
        for entry in names:
            if not entry.is_directory and entry.inum not in self.inodes:
                self.inodes[entry.inum] = Inode(nlink=1)
        for inum, inode in self.inodes.items():
            inode.nlink = sum(not entry.is_directory and entry.inum == inum for entry in names)

    def setup(self) -> Iterator[Invocation]:
        """Makes each file under its first name and links the others to it. Directories of the root come first; one
        below them that holds something is made in the root and moved."""
        first: dict[Any, tuple[Any, Any]] = {}
        top = self.directories[self.root].entries
        yield from self._fill(top, None, first)
        for above, entry in top.items():
            if entry.is_directory:
                yield from self._fill(self.directories[entry.directory].entries, above, first)
        for above, entry in top.items():
            if entry.is_directory:
                for name, inner in self.directories[entry.directory].entries.items():
                    below = self.directories[inner.directory].entries if inner.is_directory else {}
                    if below:
                        yield invoke("mkdir", deep=False, parent=ASIDE, name=ASIDE)
                        yield from self._fill(below, ASIDE, first)
                        yield invoke("rename", **_place("src", None, ASIDE), **_place("dst", above, name))

    def _fill(
        self, entries: Mapping[Name, Entry], above: Any, first: dict[Any, tuple[Any, Any]]
    ) -> Iterator[Invocation]:
        for name, entry in entries.items():
            place = {"deep": above is not None, "parent": name if above is None else above, "name": name}
            if entry.is_directory:
                if above is None or above == ASIDE or not self.directories[entry.directory].entries:
                    yield invoke("mkdir", **place)
            elif entry.inum in first:
                yield invoke("link", **_place("old", *first[entry.inum]), **_place("new", above, name))
            else:
                first[entry.inum] = above, name
                if self._is_link(entry):
                    yield invoke("symlink", target=self.inodes[entry.inum].target, **place)
                else:
                    yield invoke("open", **place, creat=True, excl=True)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """Looks at every path of the test's names, not following links, and at where they lead."""
        for name in values[Name]:
            for asked in ("lstat", "readlink"):
                yield invoke(asked, deep=False, parent=name, name=name)
        for parent in values[Name]:
            for name in values[Name]:
                yield invoke("lstat", deep=True, parent=parent, name=name)


def _place(word: str, above: Any, name: Any) -> dict[str, Any]:
    """The parameters of one of two paths."""
    return {f"{word}_deep": above is not None, f"{word}_parent": name if above is None else above, word: name}


class Posix(Trees):
    """All of it."""

    interface_name = "posix"

    def __init__(self) -> None:
        """An empty root."""
        super().__init__()
        self.root = unused(Directory)
        self.directories[self.root] = Node(entries=Map(), parent=self.root, name=None)
