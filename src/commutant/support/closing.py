"""Closes what its owner forgot, before the interpreter goes down.

A thread that waits in native code while the interpreter ends is stopped where it comes back, by unwinding its stack;
there is Rust on it, which does not let that pass, and the program aborts. So what has such a thread is closed in time.
"""

from __future__ import annotations

import atexit
import weakref
from typing import Protocol


class Closable(Protocol):
    """Something that may be closed twice."""

    def close(self) -> None:
        """Ends it."""


_open: weakref.WeakSet[Closable] = weakref.WeakSet()


def close_at_exit(closable: Closable) -> None:
    """Has `closable` closed at the interpreter's end if it still exists then."""
    _open.add(closable)


@atexit.register
def _close_all() -> None:
    for closable in list(_open):
        closable.close()
