"""Error results of calls and signals, by name, so that a model never depends on a platform's numbers."""

from __future__ import annotations

from enum import Enum, auto


class Errno(Enum):
    """What a call that fails returns: `return Errno.ENOENT` (POSIX.1-2017, `<errno.h>`, and Linux)."""

    EPERM = auto()
    ENOENT = auto()
    ESRCH = auto()
    EINTR = auto()
    EIO = auto()
    ENXIO = auto()
    E2BIG = auto()
    EBADF = auto()
    ECHILD = auto()
    EAGAIN = auto()
    ENOMEM = auto()
    EACCES = auto()
    EFAULT = auto()
    EBUSY = auto()
    EEXIST = auto()
    EXDEV = auto()
    ENODEV = auto()
    ENOTDIR = auto()
    EISDIR = auto()
    EINVAL = auto()
    ENFILE = auto()
    EMFILE = auto()
    ENOTTY = auto()
    ETXTBSY = auto()
    EFBIG = auto()
    ENOSPC = auto()
    ESPIPE = auto()
    EROFS = auto()
    EMLINK = auto()
    EPIPE = auto()
    EDOM = auto()
    ERANGE = auto()
    EDEADLK = auto()
    ENAMETOOLONG = auto()
    ENOLCK = auto()
    ENOSYS = auto()
    ENOTEMPTY = auto()
    ELOOP = auto()
    ENODATA = auto()
    EOVERFLOW = auto()
    EILSEQ = auto()
    ENOTSOCK = auto()
    EMSGSIZE = auto()
    EOPNOTSUPP = auto()
    EADDRINUSE = auto()
    ENOBUFS = auto()
    EISCONN = auto()
    ENOTCONN = auto()
    ETIMEDOUT = auto()
    ECONNREFUSED = auto()
    EALREADY = auto()
    EINPROGRESS = auto()
    ESTALE = auto()
    EDQUOT = auto()
    ECANCELED = auto()

    def __repr__(self) -> str:
        return self.name


class Signal(Enum):
    """What a memory access that cannot be made ends in, instead of a result."""

    SIGSEGV = auto()
    SIGBUS = auto()

    def __repr__(self) -> str:
        return self.name
