"""Files as `io` has them: a raw file over a descriptor, and the buffers and texts of `io` over that."""

from __future__ import annotations

import functools
import io
import os
import warnings
from typing import IO, TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from scalefs import _native
    from scalefs.types import Path

_READ, _WRITE, _CREATE, _EXCLUSIVE, _TRUNCATE = (1 << bit for bit in range(5))
_FIRST = {"r": 0, "w": _WRITE | _CREATE | _TRUNCATE, "a": _WRITE | _CREATE, "x": _WRITE | _CREATE | _EXCLUSIVE}
BUFFER_BYTES = io.DEFAULT_BUFFER_SIZE
"""What a buffered file reads and writes at once, unless it is asked for another number."""


@functools.lru_cache(maxsize=64)
def _access(mode: str) -> tuple[int, bool, str]:
    """The flags of a mode, whether it appends, and the mode as a raw file tells it."""
    kinds = [letter for letter in mode if letter in _FIRST]
    if len(kinds) != 1 or set(mode) - set("rwaxb+") or len(set(mode)) != len(mode):
        raise ValueError(f"invalid mode: {mode!r}")
    flags = _FIRST[kinds[0]]
    if kinds[0] == "r" or "+" in mode:
        flags |= _READ
    if "+" in mode:
        flags |= _WRITE
    return flags, kinds[0] == "a", kinds[0] + "b" + ("+" if "+" in mode else "")


class RawFile(io.RawIOBase):
    """An open file without a buffer, as `io.FileIO` is one; its offset is its own.

    It is closed with its file system and at the end of its transaction: from then on calls raise ValueError.
    """

    def __init__(self, native: _native.Descriptors, path: Path, mode: str = "r") -> None:
        """Opens a file. `mode` is one of r, w, a, x, perhaps with + and b, as for `io.FileIO`."""
        self._native = native
        self._fd: int | None = None
        self.name = path
        self._flags, self._appends, self.mode = _access(mode)
        self._fd = native.open(path, self._flags, 0o666, self._appends, True)
        if self._appends:
            native.seek(self._fd, 0, os.SEEK_END)

    @property
    def _descriptor(self) -> int:
        if self._fd is None:
            raise ValueError("I/O operation on closed file")
        return self._fd

    @property
    def descriptor(self) -> int:
        """Its number, for the calls of `Descriptors`. ValueError once it is closed."""
        return self._descriptor

    @property
    def closed(self) -> bool:
        """Whether it is closed, or its file system is, or its transaction has ended; also in a child of `fork`."""
        return self._fd is None or not self._native.is_open

    def close(self) -> None:
        """Closes it. A second time does nothing."""
        fd, self._fd = self._fd, None
        if fd is not None and self._native.is_open:
            self._native.close(fd)

    def __del__(self) -> None:
        """Closes it, with a warning: anyone who opens a file closes it."""
        if getattr(self, "_fd", None) is not None and self._native.is_open:
            warnings.warn(f"unclosed file {self!r}", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def __repr__(self) -> str:
        """With name and mode."""
        state = "closed" if self.closed else f"name={self.name!r} mode={self.mode!r}"
        return f"<scalefs.RawFile {state}>"

    def __reduce_ex__(self, _: object) -> NoReturn:
        """Memory of a process does not travel: raises TypeError."""
        raise TypeError("an open file of scalefs is in the memory of this process: it cannot be pickled or copied")

    def fileno(self) -> NoReturn:
        """The system has no such descriptor: raises UnsupportedOperation, an OSError and ValueError."""
        raise io.UnsupportedOperation("a file of scalefs has no descriptor of the system; its own is `descriptor`")

    def flush(self) -> None:
        """Nothing: there is no buffer. ValueError once it is closed."""
        _ = self._descriptor

    def isatty(self) -> bool:
        """False. ValueError once it is closed."""
        _ = self._descriptor
        return False

    def readable(self) -> bool:
        """Whether it was opened for reading. ValueError once it is closed."""
        _ = self._descriptor
        return bool(self._flags & _READ)

    def writable(self) -> bool:
        """Whether it was opened for writing. ValueError once it is closed."""
        _ = self._descriptor
        return bool(self._flags & _WRITE)

    def seekable(self) -> bool:
        """True. ValueError once it is closed."""
        _ = self._descriptor
        return True

    def _check_readable(self) -> int:
        fd = self._descriptor
        if not self._flags & _READ:
            raise io.UnsupportedOperation("File not open for reading")
        return fd

    def _check_writable(self) -> int:
        fd = self._descriptor
        if not self._flags & _WRITE:
            raise io.UnsupportedOperation("File not open for writing")
        return fd

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to `size` bytes; all to the end if it is negative or None."""
        if size is None or size < 0:
            return self.readall()
        return self._native.read(self._check_readable(), size)

    def readall(self) -> bytes:
        """All bytes to the end."""
        return self._native.read_all(self._check_readable())

    def readinto(self, buffer: Any, /) -> int:
        """Reads into an object that can be written; returns how many bytes."""
        fd = self._check_readable()
        view = memoryview(buffer)
        if view.readonly:
            raise TypeError(f"readinto() argument must be read-write bytes-like object, not {type(buffer).__name__}")
        return self._native.read_into(fd, view if view.format == "B" and view.ndim == 1 else view.cast("B"))

    def write(self, data: Any, /) -> int:
        """Writes bytes; returns how many."""
        return self._native.write(self._check_writable(), data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Moves the offset; returns the new one."""
        return self._native.seek(self._descriptor, offset, whence)

    def tell(self) -> int:
        """The offset."""
        return self._native.seek(self._descriptor, 0, os.SEEK_CUR)

    def truncate(self, size: int | None = None, /) -> int:
        """Makes the file this long, or as long as the offset says; returns how long."""
        fd = self._check_writable()
        length = self.tell() if size is None else size
        self._native.truncate(fd, length)
        return length


@functools.lru_cache(maxsize=64)
def _check_mode(mode: str) -> None:
    """Whether the built-in `open` would take the mode. ValueError as by it."""
    letters = set(mode)
    if letters - set("axrwb+t") or len(mode) > len(letters):
        raise ValueError(f"invalid mode: {mode!r}")
    if "t" in letters and "b" in letters:
        raise ValueError("can't have text and binary mode at once")
    chosen = sum(letter in letters for letter in "rwax")
    if chosen > 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    if chosen == 0:
        raise ValueError("Must have exactly one of create/read/write/append mode and at most one plus")


def opened(
    native: _native.Descriptors,
    path: Path,
    mode: str,
    buffering: int,
    encoding: str | None,
    errors: str | None,
    newline: str | None,
) -> IO[Any]:
    """What the built-in `open` returns for these arguments, and raises."""
    if not isinstance(mode, str):
        raise TypeError(f"open() argument 'mode' must be str, not {type(mode).__name__}")
    if not isinstance(buffering, int):
        raise TypeError(f"'{type(buffering).__name__}' object cannot be interpreted as an integer")
    _check_mode(mode)
    if "b" in mode:
        for name, given in (("encoding", encoding), ("errors", errors), ("newline", newline)):
            if given is not None:
                raise ValueError(f"binary mode doesn't take {'a' if name == 'newline' else 'an'} {name} argument")
        if buffering == 1:
            warnings.warn(
                "line buffering (buffering=1) isn't supported in binary mode, the default buffer size will be used",
                RuntimeWarning,
                stacklevel=3,
            )
    elif buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    if newline not in (None, "", "\n", "\r", "\r\n"):
        raise ValueError(f"illegal newline value: {newline}")
    raw = RawFile(native, path, mode.replace("t", ""))
    try:
        if buffering == 0:
            return raw  # type: ignore[return-value]
        return _buffered(raw, mode, buffering, encoding, errors, newline)
    except BaseException:
        raw.close()
        raise


def _buffered(
    raw: RawFile, mode: str, buffering: int, encoding: str | None, errors: str | None, newline: str | None
) -> IO[Any]:
    size = BUFFER_BYTES if buffering in (-1, 1) else buffering
    buffer: io.BufferedRandom | io.BufferedReader | io.BufferedWriter
    if "+" in mode:
        buffer = io.BufferedRandom(raw, size)
    elif "r" in mode:
        buffer = io.BufferedReader(raw, size)
    else:
        buffer = io.BufferedWriter(raw, size)
    if "b" in mode:
        return buffer
    text = io.TextIOWrapper(buffer, encoding, errors, newline, line_buffering=buffering == 1)
    text.mode = mode  # type: ignore[misc]
    return text
