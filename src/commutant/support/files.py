"""Files that are either whole or not there: written next to their place and renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from commutant.support.errors import RunError

PRIVATE = 0o600
"""Permission bits of what lies in the user's cache folder, whose folders have 0o700."""

_NAME_CHARACTERS = 48


@contextlib.contextmanager
def whole_file(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file to be written that takes the place of `path` when the block ends, and goes when the block raises.

    Its permission bits are `mode` without those that the umask takes, as of any new file. Raises OSError.
    """
    temporary = path.with_name(f".{path.name[:_NAME_CHARACTERS]}.{secrets.token_hex(6)}")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def replace_file(path: Path, data: bytes) -> None:
    """Writes `data` to `path` in the cache folder, all or nothing; makes the folder. Raises RunError (full disk, no
    permission)."""
    try:
        private_folder(path.parent)
        with whole_file(path, PRIVATE) as file:
            file.write(data)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror}") from None


def private_folder(path: Path) -> None:
    """Makes a folder that only the user may look into, and those above it as usual; one that is there stays as it is.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
