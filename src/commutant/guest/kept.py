"""The kernels in the cache folder: which there are, and forgetting them."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from commutant.guest.kernel import DEFAULT, Kernel, kernel_in, kernels_folder, names_of_kernels
from commutant.support import RunError, UsageError


@dataclass(frozen=True, slots=True)
class Kept:
    """A kernel in the cache: the names that it was prepared under (none: it was given by a path), and what it takes.
    `kernel` is None if its folder is not whole."""

    folder: Path
    names: tuple[str, ...]
    kernel: Kernel | None
    size_bytes: int


def kept_kernels() -> Iterator[Kept]:
    """All kernels, those with names first."""
    names = names_of_kernels()
    folders = [path for path in kernels_folder().glob("*") if path.is_dir()]
    for folder in sorted(folders, key=lambda path: (not names.get(path.name), names.get(path.name), path.name)):
        size_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        yield Kept(folder, tuple(names.get(folder.name, ())), kernel_in(folder), size_bytes)


def forget(names: Collection[str]) -> list[Kept]:
    """Forgets kernels by their names, or by those of their folders; with a kernel all its names. Says which.

    Raises UsageError if there is none of a name, or it is the default, which `make setup` would have to bring again.
    """
    kept = list(kept_kernels())
    wanted: list[Kept] = []
    for name in names:
        found = [one for one in kept if name in one.names or name == one.folder.name]
        if not found:
            known = ", ".join(sorted(known for one in kept for known in one.names)) or "none"
            raise UsageError(f"no kernel {name!r:.80} is kept; expected one of: {known}")
        if DEFAULT in found[0].names:
            raise UsageError(f"{name}: the kernel that `--target linux` starts; it is not forgotten")
        wanted += found
    for one in wanted:
        try:
            for name in one.names:
                (kernels_folder() / f"{name}.json").unlink(missing_ok=True)
            shutil.rmtree(one.folder)
        except OSError as error:
            raise RunError(f"{one.folder}: {error.strerror}") from None
    return wanted
