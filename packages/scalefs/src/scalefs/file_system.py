"""A file system in the memory of this process: an instance of ScaleFS."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Self, TypeVar

from scalefs import _native
from scalefs.calls import Calls
from scalefs.transactions import Stale, Transaction

PAGE_BYTES = 4096
"""Bytes of a page: data takes space in such pieces."""

T = TypeVar("T")
P = ParamSpec("P")

_MOST_PAGES = 1 << 32
_LEAST_METADATA_BYTES = 16 << 20
_CORE_METADATA_BYTES = 1 << 20
_PAGE_METADATA_BYTES = 64
_MOST_CORES = 16
"""More than this many are seldom of use to one interpreter."""


class FileSystem(Calls):
    """An empty file system with one directory, `/`, of user 0. Nothing reaches a disk.

    It goes with the object, with `close`, or at the end of a `with` block; after that every call raises ValueError. In
    a child of `fork`, whose copy another thread may have left in the middle of a call, every call raises RuntimeError.

    >>> files = FileSystem(size_bytes=1 << 20)
    >>> files.makedirs("/a/b")
    >>> files.write_bytes("/a/b/c", b"12345")
    >>> files.stat("/a/b/c").st_size
    5
    """

    def __init__(
        self, *, size_bytes: int = 64 << 20, metadata_bytes: int | None = None, cores: int | None = None
    ) -> None:
        """With space for data, rounded up to pages, and for all else.

        Of `metadata_bytes` each page of data takes 64, whether it is used or not, and a file without data, with its
        name, 1.3 KiB in the long run; unless given there are 16 MiB, one for each core, and twice what the pages take.
        Memory is used as it is filled. `cores` is how many threads can be within a call at once, 1 to 256; as many as
        there are processors, up to 16, unless given. Raises ValueError where these make no file system.
        """
        if cores is None:
            cores = min(os.cpu_count() or 1, _MOST_CORES)
        pages = -(-size_bytes // PAGE_BYTES)
        if metadata_bytes is None:
            metadata_bytes = (
                _LEAST_METADATA_BYTES + cores * _CORE_METADATA_BYTES + 2 * _PAGE_METADATA_BYTES * max(pages, 0)
            )
        if size_bytes < 0 or metadata_bytes < 0:
            raise ValueError(f"expected sizes that are not negative, got {size_bytes} and {metadata_bytes} bytes")
        if not 1 <= cores <= 256:
            raise ValueError(f"expected 1 to 256 cores, got {cores}")
        try:
            native = _native.Files(metadata_bytes, pages, cores)
        except OverflowError:
            raise ValueError(
                f"expected fewer than {_MOST_PAGES:,} pages of data, got {size_bytes} bytes and {metadata_bytes} bytes"
            ) from None
        super().__init__(native)
        self.was_closed = False
        """Whether `close` was called."""

    @property
    def closed(self) -> bool:
        """Whether calls are refused: it was closed, or this is a child of the process that made it."""
        return not self._native.is_open

    def close(self) -> None:
        """Gives all memory back, once calls of other threads have ended. A second time does nothing."""
        self.was_closed = True
        self._native.close()

    def __enter__(self) -> Self:
        """The file system itself. Raises ValueError once it is closed."""
        self._native.space()
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def __repr__(self) -> str:
        """With its size, if it is open."""
        if self.closed:
            return "<scalefs.FileSystem closed>"
        space = self._native.space()
        return f"<scalefs.FileSystem size_bytes={space[0] * space[1]} free_bytes={space[0] * space[2]}>"

    def transaction(self) -> Transaction:
        """A transaction, for a `with` block: what its calls do happens at one moment at the block's end, or not at all.

        >>> files = FileSystem()
        >>> with files.transaction() as t:
        ...     t.write_bytes("passwd", b"root:0")
        ...     t.write_bytes("shadow", b"root:x")
        >>> sorted(files.listdir())
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
