"""The user-mode QEMU: the first in PATH that takes plugins, or the one that was fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from commutant.guest.emulator import Emulator, answer_of, judge
from commutant.guest.fetched_emulator import kept_emulator
from commutant.guest.versions import PROGRAMS
from commutant.support import RunError


def find_user_emulator() -> Emulator:
    """The first user-mode QEMU in PATH that can trace, else the one in the cache folder.

    Raises RunError if there is none, with what is wrong with those that are there.
    """
    reasons = []
    for path in _in_path():
        try:
            return _judged(path)
        except RunError as error:
            reasons.append(str(error))
    if emulator := kept_emulator():
        return emulator
    reason = "; ".join(reasons) or f"{PROGRAMS} is not in PATH"
    raise RunError(f"{reason}; run `commutant prepare --emulator` for one that can trace")


def _in_path() -> Iterator[str]:
    found: set[str] = set()
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = shutil.which(PROGRAMS, path=folder or os.curdir)
        if path is not None and os.path.realpath(path) not in found:
            found.add(os.path.realpath(path))
            yield path


def _judged(path: str) -> Emulator:
    emulator = judge(path, answer_of([path], "--version"))
    if "-plugin" not in answer_of([path], "-h"):
        raise RunError(f"{path}: built without plugins, so it cannot trace")
    return emulator
