"""Debian packages read as data: their files one after the other, as they are unpacked, and nothing is written.

`dpkg-deb` takes the package apart and unpacks the archive inside, which is the data of anyone: its headers say how long
they and what follows them are. So each header is looked at before what it announces is read.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commutant.support import Budget, Limits, UsageError, start_program

_UNPACKER_MEMORY_BYTES = 1 << 30
_NAME_LIMIT_BYTES = 1 << 16
_FILE_LIMIT = 100_000
"""Files of a package; linux-image has 5,000."""

_LONG_NAMES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_PLAIN = (*_LONG_NAMES, tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE)
_FORMS = (*_PLAIN, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
"""What a package's archive may consist of (deb(5)): no pax headers, and no sparse files, whose tables have no end."""


@contextmanager
def open_package(path: Path, budget: Budget) -> Iterator[tarfile.TarFile]:
    """The archive of a package's files, to be gone through once.

    Raises UsageError, also in the block, if it is damaged, or takes more bytes or time than are granted.
    """
    messages = os.memfd_create("commutant-dpkg-messages")
    command = ["dpkg-deb", "--fsys-tarfile", str(path.absolute())]
    try:
        with start_program(command, limits=Limits(memory_bytes=_UNPACKER_MEMORY_BYTES), messages=messages) as process:
            try:
                with tarfile.open(fileobj=process.stdout, mode="r|", tarinfo=_checked_headers(budget)) as archive:
                    yield archive
            except (tarfile.TarError, EOFError):
                process.wait(budget.left_seconds)
                output = " ".join(os.pread(messages, 1000, 0).decode(errors="replace").split())[-160:]
                raise UsageError(f"{path}: cut off or damaged package ({output}); get it again") from None
            finally:
                process.kill()
    finally:
        os.close(messages)


def _checked_headers(budget: Budget) -> type[tarfile.TarInfo]:
    """The headers of one archive: each is paid for, with what it announces, before anything more is read."""

    class Header(tarfile.TarInfo):
        left = _FILE_LIMIT

        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Header:
            header = super().frombuf(buf, encoding, errors)
            Header.left -= 1
            if Header.left < 0:
                raise UsageError(f"{budget.name}: more than {_FILE_LIMIT:,} files, expected a package of a kernel")
            if header.type not in _FORMS:
                raise UsageError(
                    f"{budget.name}: {header.name[:60]!r} is of a kind that no package holds; get it again"
                )
            if header.type in _LONG_NAMES and header.size > _NAME_LIMIT_BYTES:
                raise UsageError(f"{budget.name}: a name of {header.size:,} bytes; get it again")
            budget.spend(header.size)
            return header

    return Header
