"""What a caller can tell of a state: the calls with which a test reads it back, and their order.

Everything is asked of a directory or a process at once, so that nothing is there unseen: no name, no descriptor and no
page but those expected. Memory comes with a second look: different bytes are stored to every page, and what then shows
in other pages and in files tells private from shared mappings. No times are asked for after that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commutant.interfaces.posix.operations import FileOperations, Operations, Stat
from commutant.interfaces.posix.state import Address, Data, Descriptor, Directory, Inum, MappedPage, Name, Number
from commutant.lang import Invocation, Process, Seq, Signal, Struct, invoke, setup_call

FIRST_PROBE, PROBES_PER_PROCESS = 100, 50
"""Contents that no test writes: what is stored to the first page of the first process, and how far processes lie
apart."""


class NameView(Struct):
    """A name and the file that it leads to."""

    name: Name
    stat: Stat
    contents: Seq[Data]


class DescriptorView(Struct):
    """An open descriptor. `contents` are a file's pages, or those that wait in a pipe, whichever end this is;
    `peer_open` tells whether the other end of the pipe is open."""

    fd: int
    stat: Stat
    write_end: bool
    peer_open: bool
    offset: int
    readable: bool
    writable: bool
    contents: Seq[Data]


class PageView(Struct):
    """A mapped page and what a load from it gives."""

    address: Address
    content: Data


class FileObservation(FileOperations):
    """Looks at descriptors and memory."""

    @setup_call
    def peek_descriptors(self, process: Process, times: bool) -> Seq[DescriptorView]:
        """All open descriptors of a process, ascending. Without `times` these are left out."""
        return Seq(self._view(fd, descriptor, times) for fd, descriptor in self.numbered(process))

    @setup_call
    def peek_memory(self, process: Process) -> Seq[PageView]:
        """A load from each mapped page: by address, and after those the pages that mmap found a place for, by call."""
        return Seq(PageView(address=address, content=self.load(mapping)) for address, mapping in self._mapped(process))

    @setup_call
    def probe_memory(self, process: Process, first: Number) -> Seq[Signal | None]:
        """A store to each of these pages, of `first` and the contents that follow it."""
        contents: Iterator[Any] = itertools.count(first)
        return Seq(self.store(mapping, next(contents)) for _, mapping in self._mapped(process))

    def stat_of(self, inum: Inum, *, pipe: bool, times: bool) -> Stat:
        """What stat tells of a file or a pipe; without `times` these are left out."""
        stat = self.stat_of_pipe(inum) if pipe else self.stat_of_file(inum)
        if not times:
            left_out: Any = None
            stat.mtime = stat.ctime = left_out
        return stat

    def _view(self, fd: int, descriptor: Descriptor, times: bool) -> DescriptorView:
        inum = descriptor.inum
        stat = self.stat_of(inum, pipe=descriptor.pipe, times=times)
        if descriptor.pipe:
            pipe = self.pipes[inum]
            return DescriptorView(
                fd=fd,
                stat=stat,
                write_end=descriptor.write_end,
                peer_open=self.end_is_open(inum, not descriptor.write_end),
                offset=0,
                readable=not descriptor.write_end,
                writable=descriptor.write_end,
                contents=Seq(pipe.pages[place] for place in range(pipe.head, pipe.tail)),
            )
        return DescriptorView(
            fd=fd,
            stat=stat,
            write_end=False,
            peer_open=False,
            offset=descriptor.offset,
            readable=descriptor.readable,
            writable=descriptor.writable,
            contents=self.pages_of(inum),
        )

    def pages_of(self, inum: Inum) -> Seq[Data]:
        """What the pages of a file hold."""
        inode = self.inodes[inum]
        return Seq(self.read_page(inode, page) for page in range(inode.length))

    def _mapped(self, process: Process) -> list[tuple[Any, MappedPage]]:
        mapped = [(address, mapping) for (owner, address), mapping in self.memory.items() if owner == process]
        return sorted(mapped, key=lambda entry: place_in_order(entry[0]))


class Observation(FileObservation, Operations):
    """The calls that only observations make."""

    @setup_call
    def peek_directory(self, directory: Directory, times: bool) -> Seq[NameView]:
        """All names of a directory, sorted. Without `times` these are left out."""
        return Seq(
            NameView(name=name, stat=self.stat_of(inum, pipe=False, times=times), contents=self.pages_of(inum))
            for (place, name), inum in sorted(self.names.items())
            if place == directory
        )

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """Looks at all directories and processes of a test."""
        yield from _files(values, times=True)
        if values[Address]:
            for process in values[Process]:
                yield invoke("peek_memory", process=process)
            for process in values[Process]:
                yield invoke("probe_memory", process=process, first=FIRST_PROBE + PROBES_PER_PROCESS * process)
            for process in values[Process]:
                yield invoke("peek_memory", process=process)
            yield from _files(values, times=False)


def _files(values: Mapping[type, Sequence[Any]], *, times: bool) -> Iterator[Invocation]:
    for directory in values[Directory]:
        yield invoke("peek_directory", directory=directory, times=times)
    for process in values[Process]:
        yield invoke("peek_descriptors", process=process, times=times)


def place_in_order(number: Any) -> tuple[int, int, str]:
    """Where an address or descriptor stands among others: those that the implementation chose come after the rest, by
    the number of the call that returned them first."""
    return (0, number, "") if isinstance(number, int) else (1, len(number.label), number.label)
