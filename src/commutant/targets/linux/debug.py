"""Inlined functions, files and lines in the stacks of a kernel, from its `vmlinux` with debug information.

Distributions keep it in a package of its own (Debian: `linux-image-VERSION-dbg`, file `usr/lib/debug/boot/vmlinux-*`).
Modules have files of their own there (`usr/lib/debug/lib/modules/VERSION/kernel/fs/ext4/ext4.ko`), which are found from
the kernel's.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from commutant.support import UsageError
from commutant.targets.stacks import ModuleFile, Stacks

_PROBES = ("vfs_read", "vfs_fstatat", "handle_mm_fault", "schedule", "do_exit")
"""Functions that every kernel has: where they lie tells builds apart."""


def kernel_stacks(path: Path, kallsyms: bytes) -> Stacks:
    """Stacks of the kernel that has these symbols (`/proc/kallsyms`), and of those modules whose files with debug
    information lie next to its own.

    Takes some seconds, and 2 GiB of memory while the file is read. Raises UsageError if a file is none with debug
    information, or another kernel's.
    """
    symbols = list(_symbols(kallsyms))
    modules = _module_files(path, symbols)
    stacks = Stacks(path, _functions(symbols), modules)
    try:
        for name in _PROBES:
            start = stacks.start_of(name)
            code = stacks.code(start) if start is not None else ()
            if start is not None and (not code or code[-1][0] != name):
                there = code[-1][0] if code else "nothing"
                raise UsageError(f"{path}: another kernel's: at {start:#x} expected {name}, found {there}")
            if code and code[-1][1] is None:
                raise UsageError(f"{path}: {name} has no line: expected a vmlinux with debug information")
        for module in modules:
            stacks.code(min(module.functions.values()))
    except ValueError as error:
        raise UsageError(f"debug=: {error}") from None
    return stacks


def module_files(vmlinux: Path) -> dict[str, Path]:
    """The files of modules that belong to a `vmlinux`, by the names that a running kernel gives them: in its folder
    (`lib/modules/VERSION`), or where a package with `boot/vmlinux-VERSION` has them."""
    version = vmlinux.name.removeprefix("vmlinux-")
    folders = [vmlinux.parent / "kernel"]
    if version != vmlinux.name:
        folders.append(vmlinux.parent.parent / "lib" / "modules" / version / "kernel")
    return {file.stem.replace("-", "_"): file for folder in folders for file in sorted(folder.rglob("*.ko"))}


_Symbol = tuple[int, str, str]
"""Address, name and module, which is empty for the kernel's own."""


def _symbols(kallsyms: bytes) -> Iterator[_Symbol]:
    for line in kallsyms.decode(errors="replace").splitlines():
        fields = line.split()
        if len(fields) in (3, 4) and fields[1] in "tTwW":
            yield int(fields[0], 16), fields[2], "".join(fields[3:]).strip("[]")


def _module_files(vmlinux: Path, symbols: list[_Symbol]) -> list[ModuleFile]:
    """Those of modules that are loaded, with their functions; of a name that several have none is known."""
    functions: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for address, name, module in symbols:
        if module:
            functions[module][name].add(address)
    files = module_files(vmlinux) if functions else {}
    return [
        ModuleFile(files[module], {name: starts.pop() for name, starts in named.items() if len(starts) == 1})
        for module, named in functions.items()
        if module in files
    ]


def _functions(symbols: list[_Symbol]) -> Iterator[tuple[int, int, str]]:
    """First address, first address after and name of each function as frames have it; all names of one that has
    several."""
    named = sorted((address, f"{name} [{module}]" if module else name) for address, name, module in symbols)
    by_address = itertools.groupby(named, lambda entry: entry[0])
    groups = [(start, [name for _, name in group]) for start, group in by_address]
    for (start, names), (end, _) in itertools.pairwise(groups):
        for name in names:
            yield start, end, name
