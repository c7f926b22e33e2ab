"""Opening files of folders that anybody may have written to: regular files only, without waiting for anybody."""

from __future__ import annotations

import errno
import os
import stat


def open_regular(path: str, flags: int) -> int:
    """An `opener` for `open`: raises OSError for anything but a regular file, such as a pipe that nobody writes to."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "not a regular file")
    return descriptor
