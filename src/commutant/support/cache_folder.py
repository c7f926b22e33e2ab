"""The user's cache folder as a whole: what lies in it by kind, and tidying it.

Each kind is a folder of that name; an entry is what lies directly in it. Nothing in there is anybody's only copy.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from commutant.support.errors import UsageError

_MEANINGS = {
    "builds": "kernels built to prove a change",
    "debian": "Debian's packages and sources for workloads",
    "kernels": "unpacked kernels (`commutant prepare` gets them again)",
    "results": "analyses and corpora",
    "snapshots": "booted machines",
}
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class CacheKind:
    """All of one kind: its name, what it is, how many entries it has and their bytes on disk."""

    name: str
    meaning: str
    entries: int
    size_bytes: int


class CacheFolder:
    """The cache folder (XDG_CACHE_HOME moves it), or another one."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = platformdirs.user_cache_path("commutant") if path is None else path

    def kinds(self) -> list[CacheKind]:
        """What there is, by name."""
        return [
            CacheKind(
                folder.name, _MEANINGS.get(folder.name, "of another version"), len(entries), sum(map(_size, entries))
            )
            for folder in self._folders()
            for entries in [list(folder.iterdir())]
        ]

    def remove(self, names: Iterable[str]) -> int:
        """Removes these kinds (`all`: each); gives the bytes. Raises UsageError for one that there is not."""
        folders = {folder.name: folder for folder in self._folders()}
        wanted = list(names)
        for name in wanted:
            if name != "all" and name not in folders:
                raise UsageError(f"nothing is kept of the kind {name!r}; expected all or one of {', '.join(folders)}")
        chosen = [folder for name, folder in folders.items() if "all" in wanted or name in wanted]
        return sum(_remove(entry) for folder in chosen for entry in list(folder.iterdir()))

    def remove_older(self, days: int) -> int:
        """Removes the entries of which nothing was read or written for this many days; gives the bytes."""
        before = time.time() - days * _DAY_SECONDS
        entries = [entry for folder in self._folders() for entry in folder.iterdir()]
        return sum(_remove(entry) for entry in entries if _last_use(entry) < before)

    def _folders(self) -> list[Path]:
        if not self.path.is_dir():
            return []
        return sorted(one for one in self.path.iterdir() if one.is_dir() and not one.is_symlink())


def _files(entry: Path) -> Iterator[Path]:
    yield entry
    if entry.is_dir() and not entry.is_symlink():
        yield from entry.rglob("*")


def _size(entry: Path) -> int:
    total = 0
    for file in _files(entry):
        with contextlib.suppress(OSError):
            total += file.lstat().st_blocks * 512
    return total


def _last_use(entry: Path) -> float:
    latest = 0.0
    for file in _files(entry):
        with contextlib.suppress(OSError):
            status = file.lstat()
            latest = max(latest, status.st_mtime, status.st_atime)
    return latest


def _remove(entry: Path) -> int:
    size_bytes = _size(entry)
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            entry.unlink()
    return size_bytes - (_size(entry) if entry.exists() else 0)
