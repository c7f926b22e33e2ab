"""Names in nested directories, with hard and symbolic links, as Linux has them: the state of `posix`, and lookups.

A path is absolute and has one component, or two (`deep`): `parent/name`. Lengths mix, for with one length alone no call
empties the directory that another removes. Directories nest as deep as they like below that.

**State**: each directory is a map of entries in a record of its own, so that a listing is one value. That a directory
has one name and that no walk meets a loop is said locally: the directory under an entry has that place as its own
(`Node.parent`, `Node.name`), and the root is no entry. Whether a directory is empty is asked of the *number* of its
entries: which of them calls have touched depends on their order. A symbolic link leads to one component of the root. In
initial states none stands there, so that links lead on to links that calls under test make.

Errors are Linux's, in Linux's order (fs/namei.c, 6.1). Link count, times and size of directories are left out. Every
directory may be searched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from commutant.interfaces.posix.files import (
    LINK_CALLS,
    RIGHT_CALLS,
    File,
    LinkNumber,
    Right,
    SymbolicLink,
    User,
    new_file,
)
from commutant.interfaces.posix.operations import FileOperations
from commutant.interfaces.posix.state import Inode, Inum, Name
from commutant.lang import Constant, Errno, Map, Only, Process, Sort, Struct, now, unused, well_formed

MAX_FOLLOWED = 4
"""This many links in a row are a loop, where a set has at most three calls: no initial link leads on to another. Linux
gives up after 40 (MAXSYMLINKS)."""


class Directory(Sort, opaque=True, word="directory"):
    """A directory's inode number."""


class Entry(Struct):
    """What a name leads to: a directory, a symbolic link or a regular file."""

    is_directory: bool
    is_link: Annotated[bool, Only(False, unless=LINK_CALLS)]
    directory: Directory
    link: LinkNumber
    inum: Inum

    def relevant(self) -> Iterable[str]:
        """What the kind of entry uses."""
        if self.is_directory:
            return ("is_directory", "directory")
        return ("is_directory", "is_link", "link" if self.is_link else "inum")


class Node(Struct):
    """A directory: its entries, whose it is and who may list and change it; and where it stands in initial states."""

    entries: Map[Name, Entry]
    parent: Directory
    name: Name
    owner: User
    owner_writes: Right
    others_write: Right

    def relevant(self) -> Iterable[str]:
        """Where it stands follows from the entries."""
        return ("entries", "owner", "owner_writes", "others_write")


class Caller(Struct):
    """Who makes the calls of a process."""

    is_superuser: Annotated[bool, Only(True, unless=RIGHT_CALLS)]
    user: User

    def relevant(self) -> Iterable[str]:
        """There is one superuser."""
        return ("is_superuser",) if self.is_superuser else ("is_superuser", "user")


class Trees(FileOperations):
    """Directories in directories, and who calls."""

    root: Directory
    directories: Map[Directory, Node]
    inodes: Map[Inum, File]  # type: ignore[assignment]
    links: Map[LinkNumber, SymbolicLink]
    callers: Map[Process, Caller]
    superuser: Annotated[User, Constant(0)]

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
        if entry.is_link:
            return directory != self.root and entry.link in self.links
        return entry.inum in self.inodes

    @well_formed("inodes.later")
    def nothing_was_cut(self, inum: Inum, file: File, page: int, data: Any) -> bool:
        """No file was cut before the calls."""
        return False

    @well_formed("callers")
    def users_are_not_the_superuser(self, process: Process, caller: Caller) -> bool:
        """A user has a number of its own."""
        return bool(caller.is_superuser or caller.user != self.superuser)

    def calling_user(self, process: Process) -> Caller | None:
        """The user who makes the calls of a process; None for the superuser."""
        caller = self.callers[process]
        return None if caller.is_superuser else caller

    def user_of(self, process: Process) -> User:
        """The user whose files the process makes."""
        caller = self.calling_user(process)
        return self.superuser if caller is None else caller.user

    def may_write(self, process: Process, file: File | Node) -> bool:
        """Whether the process may write (Linux: generic_permission, of a world without groups)."""
        caller = self.calling_user(process)
        if caller is None:
            return True
        return bool(file.owner_writes if file.owner == caller.user else file.others_write)

    def target_of(self, entry: Entry) -> Name:
        """Where a symbolic link leads: a name in the root."""
        return self.links[entry.link].target

    def followed(self, name: Name) -> Errno | Name:
        """The name in the root that a name there leads to, when links are followed; it need not be there."""
        entries = self.directories[self.root].entries
        for _ in range(MAX_FOLLOWED):
            if name not in entries:
                return name
            entry = entries[name]
            if entry.is_directory or not entry.is_link:
                return name
            name = self.target_of(entry)
        return Errno.ELOOP

    def parent_of(self, deep: bool, parent: Name) -> Errno | Directory:
        """The directory that the last component is looked up in (Linux: link_path_walk)."""
        if not deep:
            return self.root
        name = self.followed(parent)
        if isinstance(name, Errno):
            return name
        entries = self.directories[self.root].entries
        if name not in entries:
            return Errno.ENOENT
        entry = entries[name]
        return entry.directory if entry.is_directory else Errno.ENOTDIR

    def entry_at(self, deep: bool, parent: Name, name: Name, *, follow: bool) -> Errno | Entry:
        """What a path leads to (Linux: path_lookupat)."""
        directory = self.parent_of(deep, parent)
        if isinstance(directory, Errno):
            return directory
        entries = self.directories[directory].entries
        if name not in entries:
            return Errno.ENOENT
        entry = entries[name]
        if entry.is_directory or not follow or not entry.is_link:
            return entry
        target = self.followed(self.target_of(entry))
        if isinstance(target, Errno):
            return target
        top = self.directories[self.root].entries
        if target not in top:
            return Errno.ENOENT
        return top[target]

    def object_at(self, deep: bool, parent: Name, name: Name) -> Errno | File | Node:
        """The file or directory that a path leads to, when links are followed."""
        entry = self.entry_at(deep, parent, name, follow=True)
        if isinstance(entry, Errno):
            return entry
        return self.directories[entry.directory] if entry.is_directory else self.inodes[entry.inum]

    def place_for(self, deep: bool, parent: Name, name: Name) -> Errno | Map[Name, Entry]:
        """The entries of the directory in which the name is free (Linux: filename_create)."""
        directory = self.parent_of(deep, parent)
        if isinstance(directory, Errno):
            return directory
        entries = self.directories[directory].entries
        return Errno.EEXIST if name in entries else entries

    def new_file_under(self, entries: Map[Name, Entry], name: Name, file: File) -> Inum:
        """Gives a new file its first name."""
        inum = unused(Inum)
        self.inodes[inum] = file
        entries[name] = Entry(inum=inum)
        return inum

    def new_directory(self, name: Name) -> Node:
        """An empty directory, of which the superuser is the owner and which all may use."""
        return Node(
            entries=Map(),
            parent=self.root,
            name=name,
            owner=self.superuser,
            owner_writes=True,
            others_write=True,
        )

    def new_inode(self, length: int) -> Inode:
        """A file that no one has a name for."""
        return new_file(length, self.superuser)

    def named_anew(self, entry: Entry, names: int) -> None:
        """What an entry that is no directory leads to has this many more names; the time of the last change of its
        status is now."""
        of: Any = self.links[entry.link] if entry.is_link else self.inodes[entry.inum]
        of.nlink += names
        of.ctime = now()

    def entry_again(self, entry: Entry) -> Entry:
        """Another entry that leads to the same."""
        if entry.is_directory:
            return Entry(is_directory=True, directory=entry.directory)
        if entry.is_link:
            return Entry(is_link=True, link=entry.link)
        return Entry(inum=entry.inum)

    def leads_to_the_same(self, one: Entry, other: Entry) -> bool:
        """Whether two entries, neither of them a directory, are two names of one file or link."""
        if one.is_link != other.is_link:
            return False
        return bool(one.link == other.link if one.is_link else one.inum == other.inum)
