"""Debian packages, and archives of sources, read as data: one file after the other, and nothing is written.

`dpkg-deb` takes the package apart and unpacks the archive inside, which is the data of anyone: `Archive` looks at what
it says of itself before that is read.
"""

from __future__ import annotations

import io
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commutant.guest.tar import Archive, ArchiveError
from commutant.support import Budget, Limits, UsageError, decompressed, read_regular, start_program

_UNPACKER_MEMORY_BYTES = 1 << 30


@contextmanager
def open_package(path: Path, budget: Budget) -> Iterator[Archive]:
    """The archive of a package's files, to be gone through once.

    Raises UsageError, also in the block, if it is damaged, or takes more bytes or time than are granted.
    """
    messages = os.memfd_create("commutant-dpkg-messages")
    command = ["dpkg-deb", "--fsys-tarfile", str(path.absolute())]
    try:
        with start_program(command, limits=Limits(memory_bytes=_UNPACKER_MEMORY_BYTES), messages=messages) as process:
            assert process.stdout is not None
            unpacked = process.stdout.fileno()

            def read(size_bytes: int) -> bytes:
                while not select.select([unpacked], [], [], budget.left_seconds)[0]:
                    pass  # the time is over, says the budget
                return os.read(unpacked, size_bytes)

            try:
                yield Archive(read, budget.spend)
            except ArchiveError as error:
                if not error.is_damaged:
                    raise UsageError(f"{budget.name}: {error}, expected a package of Debian's; get it again") from None
                process.wait(budget.left_seconds)
                output = " ".join(os.pread(messages, 1000, 0).decode(errors="replace").split())[-160:]
                raise UsageError(f"{path}: cut off or damaged package ({output}); get it again") from None
            finally:
                process.kill()
    finally:
        os.close(messages)


@contextmanager
def open_sources(path: Path, budget: Budget) -> Iterator[Archive]:
    """An archive of sources, compressed or not, to be gone through once; `budget` is for it as it is unpacked.

    Raises UsageError, also in the block, if it is damaged, or takes more bytes or time than are granted.
    """
    try:
        data = read_regular(path, budget.left_bytes)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected an archive of sources") from None
    plain = decompressed(data, budget)
    if plain is None:
        budget.spend(len(data))
        plain = data

    def check_time(_: int) -> None:
        budget.spend(0)

    try:
        yield Archive(io.BytesIO(plain).read, check_time, extended_headers=True)
    except ArchiveError as error:
        raise UsageError(f"{path}: damaged archive of sources ({error}); get it again") from None
