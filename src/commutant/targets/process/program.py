"""What runs under the emulator: a program, its arguments, and names for its addresses.

`Program` is what sessions ask of any program; `FixedProgram` is one whose symbols are known before it starts.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from msgspec import structs

from commutant import _native
from commutant.mtrace import Finding, TracedWindow
from commutant.targets.counted import USUAL, Counted
from commutant.targets.process.drawings import Drawings, Drawn
from commutant.targets.process.objects import ObjectMap
from commutant.targets.runner import ask
from commutant.targets.stacks import Stacks, distinct_names, without_copy


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """Memory in which no symbol lies, from `start` to `end` (excluded); what is not known better is named after it."""

    start: int
    end: int
    name: str


NameSource = _native.ProgramNames | _native.LoadedNames
"""What the native trace reader names a program's addresses by."""


class Naming(Protocol):
    """Names for one running program."""

    @property
    def source(self) -> NameSource:
        """What the trace reader names by."""

    def named(self, finding: Finding) -> Finding:
        """The finding with what else is known of it; raises RunError if the program's list of objects is damaged."""

    def drawn(self, window: TracedWindow) -> Drawn:
        """The pictures of the window's findings, with what is known of their objects, and the course of their lines."""


class Program(Protocol):
    """A program that runs batches (crates/checker/program-runner)."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """What it is started with, but for files."""

    @property
    def counted(self) -> Counted:
        """What the tracer counts as shared."""

    @property
    def counts_windows(self) -> bool:
        """Whether it says how many windows it has begun, so that one that never ends is found within seconds."""

    def command(self, listing: int, progress: int) -> list[str]:
        """Program and arguments; it lists its objects in one descriptor's file and counts windows in the other's."""

    def naming(self, listing: int) -> Naming:
        """Names for a run that lists its objects in the file of this descriptor."""

    def counting(self, counted: Counted) -> Self:
        """The same program, with this counted as shared."""


@dataclass(frozen=True, slots=True)
class FixedProgram:
    """A program at fixed addresses (crates/file-system/scalefs-runner), and the names of what it consists of."""

    path: Path
    arguments: tuple[str, ...]
    names: _native.ProgramNames
    stacks: Stacks
    regions: tuple[MemoryRegion, ...] = ()
    counted: Counted = USUAL
    counts_windows: bool = False

    def command(self, listing: int, progress: int) -> list[str]:
        """As `Program.command`."""
        return [str(self.path), *self.arguments, "--objects", f"/proc/self/fd/{listing}"]

    def naming(self, listing: int) -> _FixedNaming:
        """As `Program.naming`."""
        return _FixedNaming(self, ObjectMap(listing), Drawings())

    def counting(self, counted: Counted) -> FixedProgram:
        """As `Program.counting`."""
        return dataclasses.replace(self, counted=counted)

    def in_region(self, finding: Finding) -> Finding:
        """The finding, named after its region if it has no symbol.

        The address within a region is another one in each run, so the place is said by the bytes of the line.
        """
        for region in self.regions:
            if region.start <= finding.line_address < region.end:
                sides = sorted({finding.first.offset, finding.second.offset})
                low = max(sides) if finding.sharing == "true" else None
                field = f"+{low:#x}" if low is not None else " | ".join(f"+{offset:#x}" for offset in sides)
                return structs.replace(finding, object=region.name, field=field)
        return finding


@dataclass(frozen=True, slots=True)
class _FixedNaming:
    """By symbols, then by the objects that the program lists, or else by regions; frames by debug information."""

    program: FixedProgram
    objects: ObjectMap
    drawings: Drawings

    @property
    def source(self) -> NameSource:
        """As `Naming.source`."""
        return self.program.names

    def named(self, finding: Finding) -> Finding:
        """As `Naming.named`."""
        finding = self.program.stacks.expanded(finding)
        named = self.objects.named(finding) or self.program.in_region(finding)
        fields = tuple(structs.replace(field, name=without_copy(field.name)) for field in named.fields)
        return structs.replace(named, object=without_copy(named.object), under=without_copy(named.under), fields=fields)

    def drawn(self, window: TracedWindow) -> Drawn:
        """As `Naming.drawn`."""
        return self.drawings.of(window, self.objects)


def load_program(path: Path, arguments: tuple[str, ...]) -> FixedProgram:
    """A program with the symbols (`--symbols`) and, for these arguments, the regions (`--regions`) that it lists of
    itself; raises RunError if it does not."""
    symbols = distinct_names(_ranges(ask(path, "--symbols")))
    regions = tuple(MemoryRegion(*parts) for parts in _ranges(ask(path, *arguments, "--regions")))
    return FixedProgram(path, arguments, _native.ProgramNames(symbols), Stacks(path, symbols), regions)


def _ranges(listing: str) -> list[tuple[int, int, str]]:
    """Reads lines of first address, first address after, and name."""
    parts = (line.split(" ", 2) for line in listing.splitlines())
    return [(int(start, 16), int(end, 16), name) for start, end, name in parts]
