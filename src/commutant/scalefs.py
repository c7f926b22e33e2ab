"""A file system in memory: an instance of ScaleFS in this process, to list, read and write its files.

>>> files = FileSystem()
>>> files.make_directory("/notes")
>>> files.write("/notes/today", b"plant a tree")
>>> files.list("/notes"), files.read("/notes/today")
(['today'], b'plant a tree')

Errors are those of the same calls of `os`, such as FileNotFoundError, with Linux's error numbers. Several threads may
use one instance: their calls follow each other. What makes ScaleFS scale is the Rust library and that for C, where
every thread is a core of its own; see `docs/reference/scalefs.md`.
"""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from typing import NoReturn, Self, TypeAlias

from commutant import _native

PAGE_BYTES = 4096
"""Bytes of a page: data takes space in such pieces."""

Bytes: TypeAlias = bytes | bytearray | memoryview

_MOST_PAGES = 1 << 32
_LEAST_METADATA_BYTES = 16 << 20
_PAGE_METADATA_BYTES = 64

Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""A path from the root, with or without a slash in front; encoded as Python encodes names of files."""


class Kind(enum.Enum):
    """What a name leads to."""

    FILE = 0
    SYMBOLIC_LINK = 1
    DIRECTORY = 2


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a file (POSIX `stat`). Times are nanoseconds since 1970."""

    number: int
    """Of the inode; never used again."""
    kind: Kind
    mode: int
    """Permission bits, without the kind."""
    user: int
    group: int
    link_count: int
    """Number of names; a directory has one."""
    size_bytes: int
    accessed_ns: int
    """When it was made: reading changes nothing (`noatime`)."""
    modified_ns: int
    changed_ns: int


class FileSystem:
    """An empty file system with one directory, `/`, of user 0. Nothing reaches a disk.

    It goes with the object, with `close`, or at the end of a `with` block; after that every call raises ValueError. In
    a child of `fork`, whose copy another thread may have left in the middle of a call, every call raises RuntimeError.
    """

    def __init__(self, *, data_bytes: int = 64 << 20, metadata_bytes: int | None = None) -> None:
        """With space for data, rounded up to pages, and for all else.

        Of `metadata_bytes` each page of data takes 64, whether it is used or not, and a file without data, with its
        name, 1.3 KiB in the long run; unless told there are 16 MiB, and twice what the pages take. Memory is used as it
        is filled. Raises ValueError where the sizes make no file system.
        """
        pages = -(-data_bytes // PAGE_BYTES)
        if metadata_bytes is None:
            metadata_bytes = _LEAST_METADATA_BYTES + 2 * _PAGE_METADATA_BYTES * pages
        if data_bytes < 0 or metadata_bytes < 0:
            raise ValueError(f"expected sizes that are not negative, got {data_bytes} and {metadata_bytes} bytes")
        try:
            self._open: _native.ScaleFs | None = _native.ScaleFs(metadata_bytes, pages)
        except OverflowError:
            raise ValueError(
                f"expected fewer than {_MOST_PAGES:,} pages of data, got {data_bytes} bytes and {metadata_bytes} bytes"
            ) from None

    @property
    def _native(self) -> _native.ScaleFs:
        if self._open is None:
            raise ValueError("the file system is closed: make another one")
        return self._open

    def close(self) -> None:
        """Gives all memory back, once calls of other threads have ended. A second time does nothing."""
        self._open = None

    def __enter__(self) -> Self:
        """The file system itself. Raises ValueError once it is closed."""
        _ = self._native
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def __reduce__(self) -> NoReturn:
        """A file system is in this process alone: raises TypeError, also for `copy`."""
        raise TypeError("a FileSystem cannot be copied or sent to another process: copy its files")

    def list(self, path: Path = "/") -> list[str]:
        """The names in a directory, sorted. Raises OSError as `os.listdir` does."""
        return sorted(os.fsdecode(name) for name in self._native.list(os.fsencode(path)))

    def read(self, path: Path) -> bytes:
        """All that a file holds. Raises OSError."""
        return self._native.read(os.fsencode(path))

    def write(self, path: Path, data: Bytes, *, append: bool = False) -> None:
        """Makes a file hold these bytes (`bytes`, `bytearray`, `memoryview`); with `append`, adds them at its end.

        The file is made if there is none.
        Raises OSError; where space ran out (ENOSPC), what fitted is in the file.
        """
        given = data if isinstance(data, bytes) else memoryview(data).tobytes()
        self._native.write(os.fsencode(path), given, append)

    def make_directory(self, path: Path, mode: int = 0o777) -> None:
        """Makes a directory, with these permission bits less the mask 0o022. Raises OSError."""
        self._native.make_directory(os.fsencode(path), mode & 0o7777)

    def remove(self, path: Path) -> None:
        """Removes the name of a file or symbolic link, or an empty directory. Raises OSError."""
        self._native.remove(os.fsencode(path))

    def rename(self, old: Path, new: Path) -> None:
        """Gives something another name in one step; what had that is replaced (POSIX `rename`). Raises OSError."""
        self._native.rename(os.fsencode(old), os.fsencode(new))

    def stat(self, path: Path) -> Status:
        """What is known of a file; of a symbolic link itself. Raises OSError."""
        number, kind, *rest = self._native.status(os.fsencode(path))
        return Status(number, Kind(kind), *rest)

    @property
    def free_bytes(self) -> int:
        """Space for data that is free. What a removal gives up may become free a few calls later."""
        return self._native.free_pages() * PAGE_BYTES
