"""The options of the target argument `library:path=adapter.so,name=NAME,cores=16,seed=1,allocator=program`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from commutant.support import UsageError
from commutant.targets.counted import COUNTED_OPTIONS, USUAL, Counted, take_counted
from commutant.targets.options import Option, number, one_of, read_options


def _name(text: str) -> str:
    if not (text.isascii() and f"_{text}".isidentifier()):
        raise ValueError("letters, digits and _")
    return text


_ALLOCATORS = ("program", "per-core")
OPTIONS = {
    "path": Option("FILE", Path),
    "name": Option("NAME", _name),
    "cores": number(1, 1024),
    "seed": number(0, (1 << 64) - 1),
    "allocator": one_of(*_ALLOCATORS),
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the target argument asks for.

    `name` says which of several adapters in one file: `commutant_adapter_NAME`, in place of `commutant_adapter`.
    `cores` is how many processors the library is shown; `allocator` is that of the program, or one that is private
    to each core, so that nothing of it is shared.
    """

    path: Path
    cores: int = 16
    seed: int = 1
    allocator: str = "program"
    counted: Counted = USUAL
    name: str | None = None

    @property
    def place(self) -> tuple[str, ...]:
        """The runner's arguments that name the adapter."""
        return ("--adapter", str(self.path.resolve()), *(() if self.name is None else ("--name", self.name)))


def parse_options(argument: str, options: Mapping[str, str]) -> Options:
    """The options of a target argument; raises UsageError for a key or value that there is not."""
    given, counted = take_counted(argument, options)
    if "path" not in given:
        raise UsageError(f"target {argument!r}: expected the adapter's file, as in library:path=adapter.so")
    return Options(counted=counted, **read_options(argument, given, OPTIONS, *COUNTED_OPTIONS))
