"""Set-up of pipes and their ends."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from commutant.interfaces.posix.operations import FileOperations
from commutant.interfaces.posix.state import Data, Descriptor, Inum, Number, Pipe
from commutant.lang import Invocation, Map, Process, invoke, now, setup_call, unused


class PipeSetup(FileOperations):
    """The calls that make pipes."""

    @setup_call
    def make_pipe(self, pipe: Number) -> Inum:
        """An empty pipe. The set-up holds both of its ends under descriptors that no call under test names."""
        inum = unused(Inum)
        self._pipes[pipe] = inum
        self.pipes[inum] = Pipe(head=0, tail=0, pages=Map(), other_readers=True, other_writers=True, mtime=now())
        return inum

    @setup_call
    def fill_pipe(self, pipe: Number, data: Data) -> None:
        """Writes a page to the pipe."""
        self.append_page(self.pipes[self._pipes[pipe]], data)

    @setup_call
    def open_pipe(self, process: Process, fd: Number, pipe: Number, write_end: bool) -> None:
        """Opens an end of the pipe under exactly this number, with O_NONBLOCK."""
        end = Descriptor(
            pipe=True,
            write_end=write_end,
            inum=self._pipes[pipe],
            offset=0,
            readable=not write_end,
            writable=write_end,
        )
        self.put_descriptor(process, fd, end)

    @setup_call
    def forget_pipe(self, pipe: Number, other_readers: bool, other_writers: bool) -> None:
        """Closes the ends that the set-up need not hold."""
        forgotten = self.pipes[self._pipes.pop(pipe)]
        forgotten.other_readers = other_readers
        forgotten.other_writers = other_writers

    def complete_pipes(self) -> None:
        """Pages that wait in a pipe between those that calls read and write are zero."""
        for pipe in self.pipes.values():
            waiting = [(place, pipe.pages.get(place, self.zero)) for place in range(pipe.head, pipe.tail)]
            pipe.pages.clear()
            pipe.pages.update(waiting)

    def make_pipes(
        self, numbers: Mapping[Inum, int], chosen: Container[tuple[Process, Any]] | None = None
    ) -> Iterator[Invocation]:
        """Makes the pipes of this state, which get these numbers, and opens the chosen ends or all."""
        for inum, number in numbers.items():
            pipe = self.pipes[inum]
            yield invoke("make_pipe", pipe=number)
            for place in range(pipe.head, pipe.tail):
                yield invoke("fill_pipe", pipe=number, data=pipe.pages[place])
        for process, fd, descriptor in self.open_descriptors():
            if descriptor.pipe and (chosen is None or (process, fd) in chosen):
                yield invoke(
                    "open_pipe",
                    process=process,
                    fd=fd,
                    pipe=numbers[descriptor.inum],
                    write_end=descriptor.write_end,
                )
        for inum, number in numbers.items():
            pipe = self.pipes[inum]
            yield invoke("forget_pipe", pipe=number, other_readers=pipe.other_readers, other_writers=pipe.other_writers)
