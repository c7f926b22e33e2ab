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
import errno
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Concatenate, NoReturn, ParamSpec, Self, TypeAlias, TypeVar

from commutant import _native

PAGE_BYTES = 4096
"""Bytes of a page: data takes space in such pieces."""

Bytes: TypeAlias = bytes | bytearray | memoryview

T = TypeVar("T")
P = ParamSpec("P")

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


def _status(told: tuple[int, int, int, int, int, int, int, int, int, int]) -> Status:
    number, kind, *rest = told
    return Status(number, Kind(kind), *rest)


class Stale(OSError):
    """What a transaction has seen is not so any more, so that nothing of it has happened (ECANCELED)."""

    def __init__(self, transaction: Transaction) -> None:
        """Of this transaction."""
        super().__init__(errno.ECANCELED, "what the transaction has seen is not so any more: begin it again")
        self.transaction = transaction


class Transaction:
    """Calls that happen at one moment, or not at all; made by `FileSystem.transaction`.

    The block's end commits. An exception that leaves the block aborts: nothing has happened. Where what the calls have
    seen is not so any more, they and the block's end raise Stale. Calls of the file system itself in the block are none
    of the transaction's. Data of files is not offered. Calls before the block and behind it raise ValueError.
    """

    def __init__(self, files: _native.ScaleFs) -> None:
        """One attempt, which begins with a `with` block."""
        self._files = files
        self._open: _native.Transaction | None = None
        self._has_begun = False
        self._on_commit: list[Callable[[], object]] = []
        self._on_abort: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        """Begins. Raises ValueError the second time."""
        if self._has_begun:
            raise ValueError("a transaction begins once: ask the file system for another one")
        self._open = _native.Transaction(self._files)
        self._has_begun = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Commits, or aborts after an exception. Raises Stale, also in place of an exception that followed from it."""
        transaction, self._open = self._native, None
        happened = False
        try:
            is_true = transaction.end(kind is None)
            happened = kind is None and is_true
        finally:
            for run in self._on_commit if happened else reversed(self._on_abort):
                run()
        if not is_true and not isinstance(error, Stale):
            raise Stale(self) from error

    @property
    def _native(self) -> _native.Transaction:
        if self._open is None:
            raise ValueError("the transaction is not open: its calls are made in its `with` block")
        return self._open

    def _made(self, call: Callable[..., T], *arguments: object) -> T:
        try:
            return call(*arguments)
        except OSError as error:
            if error.errno == errno.ECANCELED:
                raise Stale(self) from None
            raise

    def on_commit(self, function: Callable[[], object]) -> None:
        """Calls a function once the transaction has happened; several in their order."""
        self._on_commit.append(function)

    def on_abort(self, function: Callable[[], object]) -> None:
        """Calls a function if the transaction does not happen; several of them the last one first."""
        self._on_abort.append(function)

    def list(self, path: Path = "/") -> list[str]:
        """As `FileSystem.list`, with the transaction's own changes."""
        return sorted(os.fsdecode(name) for name in self._made(self._native.list, os.fsencode(path)))

    def exists(self, path: Path) -> bool:
        """Whether a name exists, whatever it leads to. Raises OSError for other reasons than that it does not."""
        try:
            self.stat(path)
        except FileNotFoundError:
            return False
        return True

    def create(self, path: Path) -> None:
        """Makes an empty file. Raises OSError, FileExistsError if it exists."""
        self._made(self._native.create, os.fsencode(path))

    def make_directory(self, path: Path, mode: int = 0o777) -> None:
        """As `FileSystem.make_directory`."""
        self._made(self._native.make_directory, os.fsencode(path), mode & 0o7777)

    def remove(self, path: Path) -> None:
        """As `FileSystem.remove`."""
        self._made(self._native.remove, os.fsencode(path))

    def rename(self, old: Path, new: Path) -> None:
        """As `FileSystem.rename`."""
        self._made(self._native.rename, os.fsencode(old), os.fsencode(new))

    def link(self, old: Path, new: Path) -> None:
        """Gives a file a further name. Raises OSError."""
        self._made(self._native.link, os.fsencode(old), os.fsencode(new))

    def stat(self, path: Path) -> Status:
        """As `FileSystem.stat`."""
        return _status(self._made(self._native.status, os.fsencode(path)))


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
        return _status(self._native.status(os.fsencode(path)))

    def transaction(self) -> Transaction:
        """A transaction, for a `with` block: what its calls do happens at one moment at the block's end, or not at all.

        >>> files = FileSystem()
        >>> with files.transaction() as t:
        ...     t.create("passwd")
        ...     t.create("shadow")
        >>> files.list()
        ['passwd', 'shadow']
        """
        return Transaction(self._native)

    def transactional(
        self, function: Callable[Concatenate[Transaction, P], T], *, attempts: int = 100
    ) -> Callable[P, T]:
        """A function whose calls on the transaction that it is given happen at one moment, or not at all.

        It runs again while it meets `Stale`, `attempts` times at most: so it does nothing else that could not be done
        twice. As a decorator: `@files.transactional`. Raises what the function does; Stale after the last attempt.
        """
        if attempts < 1:
            raise ValueError(f"expected at least one attempt, got {attempts}")

        @functools.wraps(function)
        def run(*args: P.args, **keywords: P.kwargs) -> T:
            for attempt in range(attempts):
                transaction = self.transaction()
                try:
                    with transaction:
                        return function(transaction, *args, **keywords)
                except Stale as stale:
                    # That of another transaction is the function's own error.
                    if stale.transaction is not transaction or attempt == attempts - 1:
                        raise
            raise AssertionError("the last attempt returns or raises")

        return run

    @property
    def free_bytes(self) -> int:
        """Space for data that is free. What a removal gives up may become free a few calls later."""
        return self._native.free_pages() * PAGE_BYTES
