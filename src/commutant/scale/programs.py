"""Programs whose operations are marked (commutant_scale.h, crate scale-annotation): their threads are the cores.

A library in front of the C library (crate scale-turns) has the threads take turns and says so to the counter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commutant.lock_view import MappedFile
from commutant.lock_view.recording import executable_path
from commutant.lock_view.study import AddressNames, Frame
from commutant.scale.counting import Engine, ScaleConditions
from commutant.scale.counts import TransferCounts
from commutant.support import artifacts

CORES = "{cores}"
"""In an argument of the program: how many threads it is to make."""

_TURNS = "libcommutant_scale_turns"
_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class MarkedProgram:
    """A program and its arguments, of which `{cores}` stands for the number of cores."""

    words: tuple[str, ...]
    executable: Path
    engine: Engine = "threads"
    silence: str = (
        "its threads did not come to the end of their turns; expected a program that is linked to the C library as "
        "usual, not statically, and that neither ends by _exit or quick_exit nor starts another one by exec before that"
    )

    @property
    def name(self) -> str:
        """As `Subject.name`."""
        return " ".join(self.words)

    @property
    def operation(self) -> str:
        """As `Subject.operation`."""
        return "what the program marks"

    def command(self, cores: int, conditions: ScaleConditions, listing: Path) -> Sequence[str]:
        """As `Subject.command`."""
        # `-0` is what the program sees as its own name.
        arguments = (word.replace(CORES, str(cores)) for word in self.words[1:])
        return ["-0", self.words[0], str(self.executable), *arguments]

    def environment(self, cores: int, conditions: ScaleConditions, listing: Path) -> Mapping[str, str]:
        """As `Subject.environment`."""
        # Without blanks, colons and commas, at which the linker and QEMU split.
        library = listing.with_name(f"{_TURNS}.so")
        library.symlink_to(artifacts.scale_turns_path())
        c = conditions
        asked = " ".join(map(str, (cores, c.operations, c.warm_up, c.seed, c.hand_over, listing)))
        preload = ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")]))
        return {"COMMUTANT_SCALE": asked, "LD_PRELOAD": preload, "LD_BIND_NOW": "1"}

    @contextmanager
    def names(self, listing: Path, counts: TransferCounts) -> Iterator[ProgramNames]:
        """As `Subject.names`."""
        yield ProgramNames(listing.read_text(errors="surrogateescape"), counts)


def marked_program(words: Sequence[str]) -> MarkedProgram:
    """The program that these words start; raises UsageError if they start none."""
    return MarkedProgram(tuple(words), executable_path(words[0]))


class ProgramNames:
    """Names for one run of a program, from the files that it had mapped."""

    def __init__(self, listing: str, counts: TransferCounts) -> None:
        """Of what it wrote at its end: the number of stalls, and the lines of /proc/self/maps."""
        head, _, maps = listing.partition("\n")
        self.stalls = int(head.removeprefix("stalls "))
        self._counts = counts
        self._names = AddressNames(tuple(_mapped_files(maps)))
        self._lines = {row.address // _LINE_BYTES: row for row in reversed(counts.transfers)}

    def stack(self, place: int) -> tuple[str, ...]:
        """As `Names.stack`."""
        frames = self._names.stack(self._counts.stacks.get(str(place), ()))
        return tuple(_in_words(frame) for frame in frames if not frame.file.startswith(_TURNS))

    def variable(self, address: int, place: int) -> str:
        """As `Names.variable`."""
        if (named := self._names.variable(address)) is not None:
            return named
        user = self._names.user(self._counts.stacks.get(str(place), ()))
        return f"memory of {user.function}" if user is not None else "memory without a name"

    def line(self, address: int) -> str:
        """As `Names.line`."""
        row = self._lines.get(address // _LINE_BYTES)
        return self.variable(row.address, row.place) if row is not None else "memory without a name"


def _in_words(frame: Frame) -> str:
    return f"{frame.function} {frame.source}:{frame.line}" if frame.source else frame.function


def _mapped_files(maps: str) -> Iterator[MappedFile]:
    for line in maps.splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and words[5].startswith("/"):
            start, _, end = words[0].partition("-")
            yield MappedFile(start=int(start, 16), end=int(end, 16), offset=int(words[2], 16), path=words[5])
