"""File systems that this process knows by name."""

from __future__ import annotations

import threading

from scalefs.file_system import FileSystem

_lock = threading.Lock()
_known: dict[str, FileSystem] = {}


def named(name: str, *, size_bytes: int | None = None) -> FileSystem:
    """The file system of this name in this process; made if there is none, or if it was closed.

    `size_bytes` counts when it is made. ValueError for a name that could not be the host of an address.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected a name, got {type(name).__name__}")
    if not name or any(letter in "/:?#@" or not letter.isprintable() for letter in name):
        raise ValueError(f"expected a name without any of / : ? # @, got {name!r}")
    with _lock:
        files = _known.get(name)
        # That of a parent stays: its calls say what is wrong, where an empty one would say that files are missing.
        if files is None or files.was_closed:
            files = FileSystem() if size_bytes is None else FileSystem(size_bytes=size_bytes)
            _known[name] = files
        return files


def forget(name: str) -> None:
    """Forgets a name, and closes its file system. A name that there is not does nothing."""
    with _lock:
        files = _known.pop(name, None)
    if files is not None:
        files.close()
