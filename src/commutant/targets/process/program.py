"""What runs under the emulator: a program, its arguments, and names for its addresses."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from commutant import _native
from commutant.mtrace import Finding
from commutant.targets.rules import ALL_RULES
from commutant.targets.runner import ask
from commutant.targets.stacks import Stacks


@dataclass(frozen=True, slots=True)
class Region:
    """Memory in which no symbol lies, from `start` to `end` (excluded); what is not known better is named after it."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program that runs batches (crates/file-system/scalefs-runner), and the names of what it consists of."""

    path: Path
    arguments: tuple[str, ...]
    names: _native.ProgramNames
    stacks: Stacks
    regions: tuple[Region, ...] = ()
    rules_off: frozenset[str] = ALL_RULES

    def command(self, objects: int) -> list[str]:
        """Program and arguments; it lists its objects in the file of this descriptor."""
        return [str(self.path), *self.arguments, "--objects", f"/proc/self/fd/{objects}"]

    def named(self, finding: Finding) -> Finding:
        """The finding, named after its region if it has no symbol.

        The address within a region is another one in each run, so the place is said by the bytes of the line.
        """
        for region in self.regions:
            if region.start <= finding.line_address < region.end:
                sides = sorted({finding.first.offset, finding.second.offset})
                low = max(sides) if finding.sharing == "true" else None
                field = f"+{low:#x}" if low is not None else " | ".join(f"+{offset:#x}" for offset in sides)
                return dataclasses.replace(finding, object=region.name, field=field)
        return finding


def load_program(path: Path, arguments: tuple[str, ...]) -> Program:
    """A program with the symbols (`--symbols`) and, for these arguments, the regions (`--regions`) that it lists of
    itself; raises RunError if it does not."""
    symbols = _ranges(ask(path, "--symbols"))
    regions = tuple(Region(*parts) for parts in _ranges(ask(path, *arguments, "--regions")))
    return Program(path, arguments, _native.ProgramNames(symbols), Stacks(path, symbols), regions)


def _ranges(listing: str) -> list[tuple[int, int, str]]:
    """Reads lines of first address, first address behind, and name."""
    parts = (line.split(" ", 2) for line in listing.splitlines())
    return [(int(start, 16), int(end, 16), name) for start, end, name in parts]
