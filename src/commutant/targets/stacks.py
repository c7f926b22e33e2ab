"""Call stacks with inlined functions, files and lines, from the debug information of a program or a kernel.

The tracer knows symbols: `posix_calls::data::read+0x1f`. What lies at that place in the source may be in a function
that was inlined there, or in several: each becomes a frame of its own above the symbol's.
"""

from __future__ import annotations

import bisect
import itertools
import queue
import re
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from commutant import _native
from commutant.mtrace import Access, Finding

_FRAME = re.compile(r"(.+?)(@0x[0-9a-f]+)?\+0x([0-9a-f]+)( \[.+\])?")
"""Function, copy, offset, module."""
_COPY = re.compile(r"@0x[0-9a-f]+")
_SOURCES = re.compile(r".*/((?:crates|library)/.*)|(?:.*/)?build_\w+/(.*)|/build/[^/]+/linux-[0-9][^/]*/(.*)")
"""What of a source file's path is the same on every machine: of this repository's crates, of Rust's own library, and of
Debian's kernels, which are built in folders such as `debian/build/build_amd64_none_amd64`, but for what is written in
assembler: that keeps the folder that the sources lie in."""
_TYPE_ARGUMENTS = re.compile(r"<.*>$")


Code = Sequence[tuple[str, tuple[str, int] | None]]
"""The functions that an instruction belongs to, the innermost first, with file and line where they are known."""


Symbol = tuple[int, int, str]
"""First address, first address after, name."""


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A file that was loaded with the program, as a kernel's module is: with debug information, and where its
    functions lie, by the names that they have in the file."""

    path: Path
    functions: Mapping[str, int]


def distinct_names(symbols: Iterable[Symbol]) -> list[Symbol]:
    """The symbols, each with a name of its own: code that was generated for several types has one name, and gets the
    address of the copy after it. `Stacks` knows these names; `without_copy` is for all others."""
    symbols = list(symbols)
    counts = Counter(name for _, _, name in symbols)
    return [(start, end, f"{name}@{start:#x}" if counts[name] > 1 else name) for start, end, name in symbols]


def without_copy(name: str) -> str:
    """The name, or names in words, as the program has them."""
    return _COPY.sub("", name)


class Stacks:
    """Expands the stacks of one program or kernel; for any number of threads."""

    def __init__(self, path: Path, symbols: Iterable[Symbol], modules: Sequence[ModuleFile] = ()) -> None:
        """`symbols` are the program's, with distinct names or not, and its modules', called `name [module]`."""
        self._path = path
        self._modules = modules
        self._starts: dict[str, list[tuple[int, int]]] = {}
        for start, end, name in symbols:
            self._starts.setdefault(name, []).append((start, end))
        self._known: dict[str, Sequence[str]] = {}
        self._questions: _Questions = queue.SimpleQueue()
        self._start_worker = threading.Lock()
        self._worker: threading.Thread | None = None

    def code(self, address: int) -> Code:
        """What the code at an address belongs to; raises ValueError if the file there is no ELF file, or if a module's
        is not that of the module that was loaded."""
        with self._start_worker:
            if self._worker is None:
                arguments = (self._path, self._modules, self._questions)
                self._worker = threading.Thread(target=_answer, args=arguments, name="debug-information", daemon=True)
                self._worker.start()
                weakref.finalize(self, self._questions.put, None)
        answer: Future[Code] = Future()
        self._questions.put((address, answer))
        return answer.result()

    def frames_at(self, address: int) -> tuple[str, ...]:
        """The functions that the code at an address belongs to, the innermost first, with file and line where they are
        known; none where nothing is."""
        return tuple(_TYPE_ARGUMENTS.sub("", name) + _place(place) for name, place in self.code(address))

    def start_of(self, name: str) -> int | None:
        """Where the function of that name begins; None if there is none, or several."""
        starts = self._starts.get(name, ())
        return starts[0][0] if len(starts) == 1 else None

    def expanded(self, finding: Finding) -> Finding:
        """The finding with stacks that have inlined frames, files and lines, where it is known which code it was."""
        return structs.replace(finding, first=self._access(finding.first), second=self._access(finding.second))

    def _access(self, access: Access) -> Access:
        stack = tuple(line for frame in access.stack for line in self._frames(frame))
        return structs.replace(access, function=without_copy(access.function), stack=stack)

    def _frames(self, frame: str) -> Sequence[str]:
        known = self._known.get(frame)
        if known is None:
            known = self._known[frame] = self._expand(frame)
        return known

    def _expand(self, frame: str) -> Sequence[str]:
        match = _FRAME.fullmatch(frame)
        if match is None:
            return (frame,)
        name, copy, offset, module = match[1], match[2] or "", int(match[3], 16), match[4] or ""
        frame = f"{name}+{offset:#x}{module}"
        # Where several functions that nothing distinguishes have one name, what all of them agree on is given, from the
        # outermost function inwards.
        places = [start for start, end in self._starts.get(name + copy + module, ()) if start + offset < end]
        told = [reversed(self._shown(frame, start + offset)) for start in places]
        agreed = itertools.takewhile(lambda lines: len(set(lines)) == 1, zip(*told, strict=False))
        return tuple(lines[0] for lines in agreed)[::-1] or (frame,)

    def _shown(self, frame: str, address: int) -> Sequence[str]:
        """The functions at the address in words, the innermost first; the outermost has the name that the frame has."""
        code = self.code(address)
        if not code:
            return (frame,)
        *inlined, (_, line) = code
        return (*(_TYPE_ARGUMENTS.sub("", name) + _place(place) for name, place in inlined), frame + _place(line))


_Questions = queue.SimpleQueue[tuple[int, Future[Code]] | None]


def _answer(path: Path, modules: Sequence[ModuleFile], questions: _Questions) -> None:
    """Answers what code is at an address until None comes: a file belongs to the thread that opened it."""
    starts = sorted((start, number) for number, module in enumerate(modules) for start in module.functions.values())
    last = {number: start for start, number in starts}
    files: dict[int | None, _native.ProgramFile | _native.RelocatableFile] = {}
    while (question := questions.get()) is not None:
        address, answer = question
        try:
            behind = bisect.bisect_right(starts, address, key=lambda entry: entry[0])
            number = starts[behind - 1][1] if behind else None
            if number is not None and address - last[number] >= _FUNCTION_BYTES:
                number = None
            if number not in files:
                module = None if number is None else modules[number]
                files[number] = (
                    _native.ProgramFile(path)
                    if module is None
                    else _native.RelocatableFile(module.path, module.functions)
                )
            answer.set_result(files[number].code(address))
        except Exception as error:  # noqa: BLE001 - for the caller
            answer.set_exception(error)


_FUNCTION_BYTES = 1 << 20
"""No function is longer: so far after the last one of a module lies something else."""


def _place(line: tuple[str, int] | None) -> str:
    if line is None or line[1] == 0:  # line 0: the compiler's own code, which is of no line
        return ""
    path, number = line
    known = _SOURCES.fullmatch(path)
    return f" {(known[1] or known[2] or known[3]) if known else path}:{number}"
