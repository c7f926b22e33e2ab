"""Results kept in the user's cache folder, under what they depend on: equal keys mean equal results.

A file is one line of JSON (format, kind, key, length and SHA-256 of the value) and the value after it. Nothing in the
folder is believed: a file whose first line is not exactly the expected one, or whose value is cut off or damaged, is
removed with one line to the user, and the result is computed again. Files are written whole or not at all, and those
that were used longest ago go when all together grow too large.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import platformdirs

from commutant import __version__
from commutant.support.files import private_folder
from commutant.support.regular import open_regular

_FORMAT = 1
MAX_BYTES = 256 << 20
"""What all kept results may take."""

_TIDIED_OFTEN = 16
"""The folder is tidied whenever this part of what it may hold was written: a look at all files for each small result
would take longer than the results."""

_PART_SECONDS = 3600.0
"""A file that is still being written after this was abandoned."""


class ResultCache:
    """The results kept in a folder (default: `results` in the user's cache folder; XDG_CACHE_HOME moves it).

    `tell` is given one line for a file that cannot be used, and for a folder that cannot be written.
    """

    def __init__(self, tell: Callable[[str], None], folder: Path | None = None, max_bytes: int = MAX_BYTES) -> None:
        self._tell = tell
        self._untidied = max_bytes  # bytes kept since the folder was tidied: at first not known
        self._folder = platformdirs.user_cache_path("commutant") / "results" if folder is None else folder
        self._max_bytes = max_bytes

    def get(self, kind: str, key: Mapping[str, object]) -> bytes | None:
        """The value kept for the key; None if there is none."""
        path = self._path(kind, key)
        try:
            with open(path, "rb", opener=open_regular) as file:
                head, value = file.readline(1 << 20), file.read(self._max_bytes + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell(f"{path}: {error.strerror}; computing the result again")
            return None
        if head != _head(kind, key, value):
            self._tell(f"{path}: damaged, cut off, or of another version; computing the result again")
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used now, says `_forget_old`
        return value

    def put(self, kind: str, key: Mapping[str, object], value: bytes) -> None:
        """Keeps a value; one that is too large, or cannot be written, is not kept."""
        if len(value) > self._max_bytes // 2:
            return
        try:
            private_folder(self._folder)
            descriptor, name = tempfile.mkstemp(prefix=f"{kind}-", suffix=".part", dir=self._folder)
            try:
                content = _head(kind, key, value) + value
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                Path(name).replace(self._path(kind, key))
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            self._untidied += len(content)
            if self._untidied > self._max_bytes // _TIDIED_OFTEN:
                self._forget_old()
                self._untidied = 0
        except OSError as error:
            self._tell(f"{self._folder}: {error.strerror}; the result is not kept for the next time")

    def _path(self, kind: str, key: Mapping[str, object]) -> Path:
        return self._folder / f"{kind}-{hashlib.sha256(_canonical(key)).hexdigest()[:32]}"

    def _forget_old(self) -> None:
        files = []
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):  # another program was faster
                status = path.stat()
                if path.suffix != ".part":
                    files.append((status.st_mtime, status.st_size, path))
                elif status.st_mtime < time.time() - _PART_SECONDS:
                    path.unlink()
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._max_bytes:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


@cache
def engine_hash(*packages: str) -> str:
    """A hash of what computes a result: the sources of these packages of ours, the native module, and the version of
    Python."""
    from commutant import _native  # takes long to import, and most that is in this room needs none of it

    digest = hashlib.sha256(f"{__version__} {sys.version_info}".encode() + Path(_native.__file__).read_bytes())
    package = Path(__file__).parents[1]
    for file in sorted(file for name in packages for file in (package / name).rglob("*.py")):
        digest.update(str(file.relative_to(package)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _canonical(key: Mapping[str, object]) -> bytes:
    return json.dumps(key, sort_keys=True, separators=(",", ":")).encode()


def _head(kind: str, key: Mapping[str, object], value: bytes) -> bytes:
    digest = hashlib.sha256(value).hexdigest()
    return _canonical({"format": _FORMAT, "kind": kind, "key": key, "bytes": len(value), "sha256": digest}) + b"\n"
