"""How a test of `posix` builds a state and reads it back.

Directories and symbolic links are made by the calls themselves. A file is built apart, with its pages, and put under
its names; then the descriptors, pipes, memory and rights. At last the set-up lets go of its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commutant.interfaces.posix.files import User, new_file
from commutant.interfaces.posix.observation import FIRST_PROBE, PROBES_PER_PROCESS, FileObservation
from commutant.interfaces.posix.setup.files import FileSetup
from commutant.interfaces.posix.setup.memory import MemorySetup
from commutant.interfaces.posix.setup.pipes import PipeSetup
from commutant.interfaces.posix.slots import Slots
from commutant.interfaces.posix.state import Address, Data, Inum, Name, Number
from commutant.interfaces.posix.tree_calls import RIGHTS, TreeStat, TreeStats
from commutant.interfaces.posix.trees import Caller, Entry, Node
from commutant.lang import Errno, Invocation, Process, Seq, Struct, invoke, setup_call

ASIDE = "aside"
"""A name in the root that no test has: set-ups make there what they move."""

PROBED_OFFSET = 64
"""Offsets that tell whether descriptors share a description begin here."""


class PathView(Struct):
    """What a path leads to, links not being followed: its status, where a link leads, and what a file holds."""

    stat: TreeStat
    target: Name
    contents: Seq[Data]


class SlotView(Struct):
    """An open descriptor: its flags, and its offset after each descriptor has been given one of its own, in
    ascending order."""

    fd: int
    survives_exec: bool
    at_offset: bool
    offset: int


class TreeSetup(FileSetup, PipeSetup, MemorySetup, Slots, TreeStats):
    """The calls that set-ups make in addition to those of the interface."""

    @setup_call
    def place_file(self, file: Number, deep: bool, parent: Name, name: Name) -> None:
        """Puts a file under a name."""
        directory: Any = self.parent_of(deep, parent)
        inum = self._files[file]
        entry = Entry(inum=inum)
        self.directories[directory].entries[name] = entry
        self.named_anew(entry, 1)

    @setup_call
    def own_file(self, file: Number, owner: User, owner_writes: bool, others_write: bool) -> None:
        """Gives a file away, with these rights."""
        of = self.inodes[self._files[file]]
        of.owner, of.owner_writes, of.others_write = owner, owner_writes, others_write

    @setup_call
    def own_path(
        self,
        deep: bool,
        parent: Name,
        name: Name,
        owner: User,
        owner_writes: bool,
        others_write: bool,
    ) -> None:
        """Gives a directory away, with these rights."""
        entry: Any = self.entry_at(deep, parent, name, follow=False)
        of = self.directories[entry.directory]
        of.owner, of.owner_writes, of.others_write = owner, owner_writes, others_write

    @setup_call
    def own_root(self, owner: User, owner_writes: bool, others_write: bool) -> None:
        """Gives the root away, with these rights."""
        of = self.directories[self.root]
        of.owner, of.owner_writes, of.others_write = owner, owner_writes, others_write

    @setup_call
    def become(self, process: Process, user: User) -> None:
        """Lets a user make the calls of a process from now on; 0 is the superuser."""
        self.callers[process] = Caller(is_superuser=user == self.superuser, user=user)

    def complete(self) -> None:
        """Files have as many names as lead to them, entries that no call looks at are regular files, and pages that
        wait in a pipe between those that calls read and write are zero."""
        names = [entry for node in self.directories.values() for entry in node.entries.values()]
        for entry in names:
            if not entry.is_directory and not entry.is_link and entry.inum not in self.inodes:
                self.inodes[entry.inum] = new_file(0, self.superuser)
        of_files = [entry.inum for entry in names if not entry.is_directory and not entry.is_link]
        of_links = [entry.link for entry in names if not entry.is_directory and entry.is_link]
        for inum, file in self.inodes.items():
            file.nlink = of_files.count(inum)
        for number, link in self.links.items():
            link.nlink = of_links.count(number)
        self.complete_pipes()

    def setup(self) -> Iterator[Invocation]:
        """Builds this state. Directories of the root come first; one below them that holds something is made in the
        root and moved."""
        files: dict[Inum, int] = {}
        pipes: dict[Inum, int] = {}
        for node in self.directories.values():
            for entry in node.entries.values():
                if not entry.is_directory and not entry.is_link:
                    files.setdefault(entry.inum, len(files))
        for _, _, descriptor in self.open_descriptors():
            numbers = pipes if descriptor.pipe else files
            numbers.setdefault(descriptor.inum, len(numbers))
        for mapping in self.memory.values():
            if not mapping.anonymous:
                files.setdefault(mapping.inum, len(files))
        yield from self.make_contents(files)
        yield from self._make_tree(files)
        yield from self._open(files, pipes)
        yield from self.map_pages(files)
        for inum, file in files.items():
            of = self.inodes[inum]
            if _is_owned(of):
                yield invoke("own_file", file=file, **_rights(of))
            yield invoke("forget_file", file=file)
        for process, caller in self.callers.items():
            yield invoke("become", process=process, user=self.superuser if caller.is_superuser else caller.user)

    def _open(self, files: Mapping[Inum, int], pipes: Mapping[Inum, int]) -> Iterator[Invocation]:
        """Opens the descriptors: of those that share a description, the first; the others are its copies."""
        first: dict[Any, Any] = {}
        copies = []
        for (process, fd), slot in self.descriptors.items():
            if slot.description in first:
                copies.append((process, first[slot.description], fd))
            first.setdefault(slot.description, fd)
        opened = [
            (process, fd) for (process, fd) in self.descriptors if (process, fd) not in {(p, t) for p, _, t in copies}
        ]
        yield from self.open_files(files, opened)
        yield from self.make_pipes(pipes, opened)
        for process, fd in opened:
            if not self.descriptions[self.descriptors[process, fd].description].at_offset:
                yield invoke("setfl", process=process, fd=fd, at_offset=False)
        for process, fd, target in copies:
            yield invoke("dup2", process=process, fd=fd, target=target)
        for (process, fd), slot in self.descriptors.items():
            if not slot.survives_exec:
                yield invoke("setfd", process=process, fd=fd, survives_exec=False)

    def _make_tree(self, files: Mapping[Inum, int]) -> Iterator[Invocation]:
        links: dict[Any, tuple[Any, Any]] = {}
        root = self.directories[self.root]
        top = root.entries
        yield from self._fill(top, None, files, links)
        for above, entry in top.items():
            if entry.is_directory:
                yield from self._fill(self.directories[entry.directory].entries, above, files, links)
        for above, entry in top.items():
            if entry.is_directory:
                for name, inner in self.directories[entry.directory].entries.items():
                    below = self.directories[inner.directory].entries if inner.is_directory else {}
                    if below:
                        yield invoke("mkdir", deep=False, parent=ASIDE, name=ASIDE)
                        yield from self._fill(below, ASIDE, files, links)
                        yield invoke("rename", **_place("src", None, ASIDE), **_place("dst", above, name))
        for above, entry in top.items():
            if entry.is_directory:
                node = self.directories[entry.directory]
                for name, inner in node.entries.items():
                    if inner.is_directory and _is_owned(self.directories[inner.directory]):
                        yield self._own(above, name, self.directories[inner.directory])
                if _is_owned(node):
                    yield self._own(None, above, node)
        if _is_owned(root):
            yield invoke("own_root", **_rights(root))

    def _own(self, above: Any, name: Any, node: Node) -> Invocation:
        return invoke("own_path", **_path(above, name), **_rights(node))

    def _fill(
        self,
        entries: Mapping[Name, Entry],
        above: Any,
        files: Mapping[Inum, int],
        links: dict[Any, tuple[Any, Any]],
    ) -> Iterator[Invocation]:
        for name, entry in entries.items():
            place = _path(above, name)
            if entry.is_directory:
                if above is None or above == ASIDE or not self.directories[entry.directory].entries:
                    yield invoke("mkdir", **place)
            elif not entry.is_link:
                yield invoke("place_file", file=files[entry.inum], **place)
            elif entry.link in links:
                yield invoke("link", **_place("old", *links[entry.link]), **_place("new", above, name))
            else:
                links[entry.link] = above, name
                yield invoke("symlink", target=self.target_of(entry), **place)


class TreeObservation(TreeSetup, FileObservation):
    """The calls that observations make in addition to those of the interface."""

    @setup_call
    def peek_path(self, deep: bool, parent: Name, name: Name, times: bool) -> Errno | PathView:
        """What a path leads to. Without `times` these are left out."""
        entry = self.entry_at(deep, parent, name, follow=False)
        if isinstance(entry, Errno):
            return entry
        stat: Any = self.stat_of_entry(entry, times=times)
        left_out: Any = None
        if entry.is_directory:
            return PathView(stat=stat, target=left_out, contents=left_out)
        if entry.is_link:
            return PathView(stat=stat, target=self.target_of(entry), contents=left_out)
        return PathView(stat=stat, target=left_out, contents=self.pages_of(entry.inum))

    @setup_call
    def peek_slots(self, process: Process) -> Seq[SlotView]:
        """The flags of all open descriptors of a process, and which share a description. Changes offsets."""
        slots = [(fd, slot) for (owner, fd), slot in self.descriptors.items() if owner == process]
        slots.sort(key=lambda entry: entry[0])
        for fd, slot in slots:
            self.descriptions[slot.description].offset = PROBED_OFFSET + fd
        views = []
        for fd, slot in slots:
            description = self.descriptions[slot.description]
            views.append(
                SlotView(
                    fd=fd,
                    survives_exec=slot.survives_exec,
                    at_offset=description.at_offset,
                    offset=0 if description.pipe else description.offset,
                )
            )
        return Seq(views)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """Looks at every path of the test's names, and at all descriptors and memory of its processes."""
        yield from _paths(values, times=True)
        for process in values[Process]:
            yield invoke("peek_descriptors", process=process, times=True)
        if values[Address]:
            for process in values[Process]:
                yield invoke("peek_memory", process=process)
            for process in values[Process]:
                yield invoke("probe_memory", process=process, first=FIRST_PROBE + PROBES_PER_PROCESS * process)
            for process in values[Process]:
                yield invoke("peek_memory", process=process)
            yield from _paths(values, times=False)
            for process in values[Process]:
                yield invoke("peek_descriptors", process=process, times=False)
        for process in values[Process]:
            yield invoke("peek_slots", process=process)


def _paths(values: Mapping[type, Sequence[Any]], *, times: bool) -> Iterator[Invocation]:
    for name in values[Name]:
        yield invoke("peek_path", **_path(None, name), times=times)
    for parent in values[Name]:
        for name in values[Name]:
            yield invoke("peek_path", **_path(parent, name), times=times)


def _path(above: Any, name: Any) -> dict[str, Any]:
    """The parameters of the only path."""
    return {"deep": above is not None, "parent": name if above is None else above, "name": name}


def _place(word: str, above: Any, name: Any) -> dict[str, Any]:
    """The parameters of one of two paths."""
    return {f"{word}_deep": above is not None, f"{word}_parent": name if above is None else above, word: name}


def _rights(of: Any) -> dict[str, Any]:
    return {name: getattr(of, name) for name in RIGHTS}


def _is_owned(of: Any) -> bool:
    """Whether something is not the superuser's, or not open to all."""
    return bool(of.owner != 0 or not all(getattr(of, name) for name in RIGHTS[1:]))
