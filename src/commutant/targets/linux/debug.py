"""Inlined functions, files and lines in the stacks of a kernel, from its `vmlinux` with debug information.

Distributions keep it in a package of its own (Debian: `linux-image-VERSION-dbg`, file `usr/lib/debug/boot/vmlinux-*`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from commutant.support import UsageError
from commutant.targets.stacks import Stacks

_PROBES = ("vfs_read", "vfs_fstatat", "handle_mm_fault", "schedule", "do_exit")
"""Functions that every kernel has: where they lie tells builds apart."""


def kernel_stacks(path: Path, kallsyms: bytes) -> Stacks:
    """Stacks of the kernel that has these symbols (`/proc/kallsyms`), without those of its modules.

    Takes some seconds, and 2 GiB of memory while the file is read. Raises UsageError if the file is none with debug
    information, or another kernel's.
    """
    stacks = Stacks(path, _functions(kallsyms))
    try:
        for name in _PROBES:
            start = stacks.start_of(name)
            code = stacks.code(start) if start is not None else ()
            if start is not None and (not code or code[-1][0] != name):
                there = code[-1][0] if code else "nothing"
                raise UsageError(f"{path}: another kernel's: at {start:#x} expected {name}, found {there}")
            if code and code[-1][1] is None:
                raise UsageError(f"{path}: {name} has no line: expected a vmlinux with debug information")
    except ValueError as error:
        raise UsageError(f"debug=: {error}") from None
    return stacks


def _functions(kallsyms: bytes) -> Iterator[tuple[int, int, str]]:
    """First address, first address behind and name of each function; all names of one that has several."""
    symbols: list[tuple[int, str]] = []
    for line in kallsyms.decode(errors="replace").splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "tTwW":  # a fourth field is a module's name
            symbols.append((int(fields[0], 16), fields[2]))
    symbols.sort()
    groups = [
        (start, [name for _, name in group]) for start, group in itertools.groupby(symbols, lambda entry: entry[0])
    ]
    for (start, names), (end, _) in itertools.pairwise(groups):
        for name in names:
            yield start, end, name
