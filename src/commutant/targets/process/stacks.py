"""Call stacks with inlined functions, files and lines, from a program's debug information.

The tracer knows symbols: `scalefs::data::read+0x1f`. What lies at that place in the source may be in a function that
was inlined there, or in several: each becomes a frame of its own above the symbol's.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from commutant import _native
from commutant.mtrace.finding import Access, Finding

_FRAME = re.compile(r"(.+)\+0x([0-9a-f]+)")
_SOURCES = re.compile(r".*/((?:crates|library)/.*)")
"""What of a source file's path is the same on every machine: of this repository's crates, and of Rust's own library."""
_TYPE_ARGUMENTS = re.compile(r"<.*>$")


class Stacks:
    """Expands the stacks of one program; for any number of threads."""

    def __init__(self, path: Path, symbols: Iterable[tuple[int, int, str]]) -> None:
        """`symbols` are the program's: first address, first address behind, name."""
        self._path = path
        self._starts: dict[str, list[tuple[int, int]]] = {}
        for start, end, name in symbols:
            self._starts.setdefault(name, []).append((start, end))
        self._own = threading.local()  # a file with debug information belongs to the thread that opened it

    def expanded(self, finding: Finding) -> Finding:
        """The finding with stacks that have inlined frames, files and lines, where it is known which code it was."""
        return replace(finding, first=self._access(finding.first), second=self._access(finding.second))

    def _access(self, access: Access) -> Access:
        return replace(access, stack=tuple(line for frame in access.stack for line in self._frames(frame)))

    def _frames(self, frame: str) -> Sequence[str]:
        match = _FRAME.fullmatch(frame)
        if match is None:
            return (frame,)
        offset = int(match[2], 16)
        # Code that was generated for several types has one name: then it is not known which of them this is.
        places = [start for start, end in self._starts.get(match[1], ()) if start + offset < end]
        if len(places) != 1:
            return (frame,)
        code = self._file().code(places[0] + offset)
        if not code:
            return (frame,)
        *inlined, (_, line) = code
        shown = [_TYPE_ARGUMENTS.sub("", name) + _place(place) for name, place in inlined]
        return (*shown, frame + _place(line))

    def _file(self) -> _native.ProgramFile:
        file: _native.ProgramFile | None = getattr(self._own, "file", None)
        if file is None:
            file = self._own.file = _native.ProgramFile(self._path)
        return file


def _place(line: tuple[str, int] | None) -> str:
    if line is None:
        return ""
    path, number = line
    known = _SOURCES.fullmatch(path)
    return f" {known[1] if known else path}:{number}"
