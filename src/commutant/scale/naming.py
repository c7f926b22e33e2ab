"""Names for what a run touched: variables by what the runner lists and its symbols, places by its debug information."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from commutant import _native
from commutant.scale.counts import TransferCounts
from commutant.targets.process import ObjectMap, Stacks

_PLAYS = (
    "crates/structures/sync/src/interposed.rs",
    "crates/structures/sync/src/turns.rs",
    "crates/file-system/scale-runner/src/cores.rs",
    "crates/file-system/scale-runner/src/main.rs",
)
"""Sources that play the cores: they stand between an access and what makes it, and around each operation."""
_LIBRARY = "library/"
"""Rust's own: atomics are functions there."""
_OURS = "crates/"


class RunnerNames:
    """Names for one run of the runner."""

    stalls = 0
    """Coroutines hand over by themselves."""

    def __init__(self, runner: Path, listing: int, counts: TransferCounts) -> None:
        """Of the runner, the list that it wrote into this descriptor's file, and the counts of its run."""
        self._objects = ObjectMap(listing)
        self._counts = counts
        self._code = _stacks(runner)
        self._program = _program(runner)

    def stack(self, place: int) -> tuple[str, ...]:
        """The functions at a place, the innermost first, with files and lines."""
        addresses = self._counts.stacks.get(str(place), ())
        frames = [frame for address in addresses for frame in _frames_at(self._code, address)]
        frames = [frame for frame in frames if _path(frame) not in _PLAYS and not _path(frame).startswith(_LIBRARY)]
        # What is further out than the last of our sources begins the coroutine, and is the same for all.
        last = max(
            (number for number, frame in enumerate(frames) if _path(frame).startswith(_OURS)), default=len(frames)
        )
        return tuple(frames[: last + 1])

    def variable(self, address: int, place: int) -> str:
        """What lies at an address that was touched at a place."""
        stack = self.stack(place)
        if (named := self._objects.variable(address, stack)) is not None:
            return named
        if (found := self._program.variable(address)) is not None:
            return found[0]
        return f"memory of {stack[0].partition(' ')[0]}" if stack else "memory without a name"

    def line(self, address: int) -> str:
        """What the line at an address is: named by the transfer that was counted first there, or as it can be."""
        for row in self._counts.transfers:
            if row.address // 64 == address // 64:
                return self.variable(row.address, row.place)
        return self._objects.variable(address, ()) or (self._program.variable(address) or ("memory without a name",))[0]


def _path(frame: str) -> str:
    """The source file of a frame, empty if it tells none."""
    return frame.rpartition(" ")[2].rpartition(":")[0]


@lru_cache(maxsize=1)
def _stacks(runner: Path) -> Stacks:
    return Stacks(runner, ())


@lru_cache(maxsize=1)
def _program(runner: Path) -> _native.ProgramFile:
    return _native.ProgramFile(runner)


@lru_cache(maxsize=1 << 16)
def _frames_at(code: Stacks, address: int) -> tuple[str, ...]:
    return code.frames_at(address)
