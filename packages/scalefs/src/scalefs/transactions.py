"""Calls that happen at one moment, or not at all."""

from __future__ import annotations

import errno
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from scalefs._native import Stale as Stale
from scalefs.calls import Calls

if TYPE_CHECKING:
    from scalefs import _native
    from scalefs.types import Path


class Transaction(Calls):
    """The calls of a file system as parts of a transaction; made by `FileSystem.transaction`, for one `with` block.

    The block's end commits: all calls have happened then, at one moment, with data of files too. An exception that
    leaves the block aborts: nothing has happened. Where what the calls have seen is not so any more, they and the
    block's end raise Stale. Calls of the file system itself in the block are none of the transaction's. Files that it
    opens are closed at the block's end. Calls outside the block raise ValueError.
    """

    def __init__(self, files: _native.Files) -> None:
        """One attempt, which begins with a `with` block."""
        self._files = files
        self._has_begun = False
        self._opened: list[weakref.ref[IO[Any]]] = []
        self._on_commit: list[Callable[[], object]] = []
        self._on_abort: list[Callable[[], object]] = []

    def __getattr__(self, name: str) -> Any:
        """Before the block there is nothing to call."""
        if name in ("_native", "_descriptors"):
            raise ValueError("the transaction is not open: its calls are made in its `with` block")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __enter__(self) -> Self:
        """Begins. Raises ValueError the second time."""
        if self._has_begun:
            raise ValueError("a transaction begins once: ask the file system for another one")
        super().__init__(self._files.begin())
        self._has_begun = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Commits, or aborts after an exception. Raises Stale, also in place of an exception that followed from it."""
        happened = is_true = False
        try:
            if kind is None:
                self._close_files()
                happened = is_true = self._native.end(True)
            else:
                is_true = self._native.end(False)
        except BaseException:
            if self._native.is_open:
                self._native.end(False)
            raise
        finally:
            for run in self._on_commit if happened else reversed(self._on_abort):
                run()
        if isinstance(error, Stale):
            # One that has no name yet is of a call of this transaction.
            error.transaction = getattr(error, "transaction", self)
        elif not is_true:
            stale = Stale(errno.ECANCELED, "what the transaction has seen is not so any more: begin it again")
            stale.transaction = self
            raise stale from error

    def _close_files(self) -> None:
        """What waits in buffers is part of the transaction."""
        for reference in self._opened:
            file = reference()
            if file is not None:
                file.close()

    def open(
        self,
        path: Path,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """As `FileSystem.open`; the file is closed at the block's end at the latest."""
        file = super().open(path, mode, buffering, encoding, errors, newline)
        self._opened.append(weakref.ref(file))
        return file

    def on_commit(self, function: Callable[[], object]) -> None:
        """Calls a function once the transaction has happened; several in their order."""
        self._on_commit.append(function)

    def on_abort(self, function: Callable[[], object]) -> None:
        """Calls a function if the transaction does not happen; several of them the last one first."""
        self._on_abort.append(function)
