"""Names for the addresses of a lock record, from the files that the process had mapped."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from commutant import _native
from commutant.lock_view.record import MappedFile, StackMemory

PLUMBING = (
    *("liblock_preload", "libcommutant_lock_preload", "libcommutant_scale_turns"),
    *("libc.so", "libc-", "libpthread", "libstdc++", "ld-linux"),
)
"""Files whose functions are never what a program's author wants to hear of as the user of a lock."""


_LANGUAGE = ("std::", "core::", "alloc::", "<std::", "<core::", "<alloc::", "__gnu_cxx::", "__gthread_", "__glibcxx_")
"""Functions of a language's own library that are compiled into the program."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in code: function, source file and line if they are known, and the file's name."""

    function: str
    source: str | None
    line: int | None
    file: str

    def __str__(self) -> str:
        """As `function (source.c:12)`."""
        return f"{self.function} ({PurePath(self.source).name}:{self.line})" if self.source else self.function


_FETCH_SECONDS = 60.0


def fetch_debug_information(path: str) -> None:
    """Has elfutils' client get a file's debug information into its cache, where it is looked for, if the user names a
    server (DEBUGINFOD_URLS) and has the client; without, or if the server has none, nothing happens."""
    client = shutil.which("debuginfod-find") if os.environ.get("DEBUGINFOD_URLS") else None
    if client is not None:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([client, "debuginfo", path], capture_output=True, timeout=_FETCH_SECONDS, check=False)


class AddressNames:
    """Names of one process's addresses. Files are read at their first use; one that cannot be read names nothing."""

    def __init__(self, mappings: Sequence[MappedFile], stacks: Sequence[StackMemory] = ()) -> None:
        """Of what it had mapped, and where its threads' stacks lay as far as that is known."""
        self._mappings = sorted(mappings, key=lambda mapping: mapping.start)
        self._stacks = stacks
        self._files: dict[str, tuple[_native.ProgramFile, int] | None] = {}
        self._frames: dict[int, tuple[Frame, ...]] = {}
        self.unreadable: dict[str, str] = {}
        """Files that could not be read, or whose debug information is of another build, with the reason."""

    def frames(self, address: int) -> tuple[Frame, ...]:
        """The functions at an instruction, inlined calls included, the innermost first; at least one."""
        known = self._frames.get(address)
        if known is None:
            known = self._frames[address] = self._look_up(address)
        return known

    def stack(self, addresses: tuple[int, ...]) -> list[Frame]:
        """All frames of a call stack, the innermost first."""
        return [frame for address in addresses for frame in self.frames(address)]

    def user(self, addresses: tuple[int, ...]) -> Frame | None:
        """The innermost function of the program itself, or of a library that is no plumbing nor a language's own."""
        stack = self.stack(addresses)
        own = (f for f in stack if not f.file.startswith(PLUMBING) and not f.function.startswith(_LANGUAGE))
        return next(own, stack[0] if stack else None)

    def owner(self, addresses: tuple[int, ...]) -> Frame | None:
        """The function whose code holds an inlined lock: the innermost that is not of a language's own library."""
        stack = self.stack(addresses)
        return next((f for f in stack if not f.function.startswith(_LANGUAGE)), stack[0] if stack else None)

    def variable(self, address: int) -> str | None:
        """The global variable at an address, as `name`, `name+0x8`, or `library: name`; None if there is none."""
        mapping = self._mapping(address)
        if mapping is None:
            return None
        file = self._file(mapping.path)
        if file is None:
            return None
        found = file[0].variable(address - file[1])
        if found is None:
            return None
        name, offset = found
        text = f"{name}+{offset:#x}" if offset else name
        return text if mapping.path == self._mappings[0].path else f"{PurePath(mapping.path).name}: {text}"

    def memory(self, address: int) -> str:
        """What memory an address without a variable lies in, in words: `on the stack of main`, `on the heap`."""
        for stack in self._stacks:
            if stack.start <= address < stack.end:
                return f"on the stack of {f'thread {stack.thread}' if stack.thread else 'main'}"
        for mapping in self._mappings:
            if mapping.start <= address < mapping.end:
                return f"in {PurePath(mapping.path).name}+{address - self._start(mapping.path):#x}"
        return "on the heap"

    def _look_up(self, address: int) -> tuple[Frame, ...]:
        mapping = self._mapping(address)
        if mapping is None:
            return (Frame(f"{address:#x}", None, None, ""),)
        name = PurePath(mapping.path).name
        file = self._file(mapping.path)
        code = file[0].code(address - file[1]) if file is not None else []
        if not code:
            return (Frame(f"{name}+{address - self._start(mapping.path):#x}", None, None, name),)
        return tuple(
            Frame(function, line[0] if line else None, line[1] if line else None, name) for function, line in code
        )

    def _mapping(self, address: int) -> MappedFile | None:
        """The file that an address belongs to: variables that start as zero lie after what is mapped."""
        best = None
        for mapping in self._mappings:
            if mapping.start > address:
                break
            best = mapping
        if best is None or address < best.end:
            return best
        file = self._file(best.path)
        return best if file is not None and file[0].variable(address - file[1]) else None

    def _start(self, path: str) -> int:
        return min(mapping.start for mapping in self._mappings if mapping.path == path)

    def _file(self, path: str) -> tuple[_native.ProgramFile, int] | None:
        """The file, and what to subtract from the process's addresses."""
        if path not in self._files:
            self._files[path] = None
            first = next(mapping for mapping in self._mappings if mapping.path == path)
            try:
                os.fsencode(path)  # refused where the locale has no such letters
                # Of a system library's names no one needs more than what its debug package, if it is there, gives.
                if not PurePath(path).name.startswith(PLUMBING):
                    fetch_debug_information(path)
                file = _native.ProgramFile(Path(path), with_debug_file=True)
            except ValueError as error:
                self.unreadable[path] = str(error)
                return None
            passed_over = file.passed_over()
            if passed_over is not None:
                self.unreadable[path] = passed_over
            base = file.address_at(first.offset)
            if base is not None:
                self._files[path] = (file, first.start - base)
        return self._files[path]
