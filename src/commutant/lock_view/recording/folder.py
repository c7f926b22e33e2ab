"""The folder in which a recording takes place: in the folder for temporary files, and gone with the recording.

It is locked as long as it is used, and a lock goes with its program, however that ends: so the next recording knows
what a killed one left behind, and removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from commutant.support import RunError, UsageError

_PREFIX = "commutant-locks-"
_LOCKED_SECONDS = 60.0
"""A process that makes a folder has locked it by then."""


@contextmanager
def recording_folder() -> Iterator[Path]:
    """A new folder, whose path the linker and the emulator take as one word.

    Raises RunError if there is no room for it, or for what is written in the `with` block; UsageError if there is no
    folder for temporary files of such a path.
    """
    parent = plain_folder()
    try:
        _remove_abandoned(parent)
        with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=parent) as folder, _opened(Path(folder)) as descriptor:
            with suppress(OSError):  # where nothing can be locked, no one removes what is left either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(folder)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise RunError(
            f"{parent}: there is no room for what the lock recorder writes: {error.strerror}; free some, or set TMPDIR "
            "to a folder that has more"
        ) from None


def require_room(record: Path) -> None:
    """Raises OSError if a record is missing for want of room.

    The recorder has filled what there was with as much as it could write; a page more says why that was not all.
    """
    with record.with_name(f"{record.name}.part").open("ab") as file:
        file.write(bytes(os.sysconf("SC_PAGE_SIZE")))


def plain_folder() -> Path:
    """A folder for temporary files whose path nothing splits: neither the dynamic linker nor an emulator.

    Raises UsageError if there is none, RunError if there is no room.
    """
    try:
        folders = (tempfile.gettempdir(), "/tmp", "/var/tmp")
    except FileNotFoundError as error:  # it looks whether there is room
        raise RunError(f"{error.strerror}; free some room in one of them, or set TMPDIR") from None
    for folder in folders:
        if not any(letter in ",:;" or letter.isspace() for letter in folder) and os.access(folder, os.W_OK | os.X_OK):
            return Path(folder)
    raise UsageError(
        f"{folders[0]}: expected a folder for temporary files that can be written, without `,`, `:`, `;` and blanks in "
        "its path; set TMPDIR"
    )


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it is in use, or somebody else's, or another program was faster
            if folder.stat().st_mtime < time.time() - _LOCKED_SECONDS:
                with _opened(folder) as descriptor:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
