"""Opening files that anybody may have made: regular files only, without waiting for anybody."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def open_regular(path: str, flags: int) -> int:
    """An `opener` for `open`: raises OSError for anything but a regular file, such as a pipe that no one writes to."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "not a regular file")
    return descriptor


def read_regular(path: Path, limit_bytes: int) -> bytes:
    """All of a regular file, and no more than one byte above the limit, by which a caller sees that it is larger.

    Raises OSError.
    """
    with open(path, "rb", opener=open_regular) as file:
        return file.read(limit_bytes + 1)
