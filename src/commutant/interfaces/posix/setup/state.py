"""A whole state as a sequence of calls: files, pipes, memory, and then the set-up lets go of its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commutant.interfaces.posix.setup.files import NamedFileSetup
from commutant.interfaces.posix.setup.memory import MemorySetup
from commutant.interfaces.posix.setup.pipes import PipeSetup
from commutant.interfaces.posix.state import Directory, Inum
from commutant.lang import Invocation, Process, invoke


class StateSetup(NamedFileSetup, PipeSetup, MemorySetup):
    """Builds any state that the areas of POSIX admit."""

    def complete(self) -> None:
        """Fills what waits in pipes between the pages of which calls speak."""
        self.complete_pipes()

    def setup(self) -> Iterator[Invocation]:
        """Builds this state."""
        files: dict[Inum, int] = {}
        pipes: dict[Inum, int] = {}
        for inum in self.names.values():
            files.setdefault(inum, len(files))
        for descriptor in self.descriptors.values():
            numbers = pipes if descriptor.pipe else files
            numbers.setdefault(descriptor.inum, len(numbers))
        for mapping in self.memory.values():
            if not mapping.anonymous:
                files.setdefault(mapping.inum, len(files))
        yield from self.make_files(files)
        yield from self.make_pipes(pipes)
        yield from self.map_pages(files)
        for file in files.values():
            yield invoke("forget_file", file=file)

    def begin(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """Puts each process into a directory; neighbours into different ones."""
        directories = values[Directory]
        for process in values[Process]:
            yield invoke("enter_directory", process=process, directory=directories[process % len(directories)])
