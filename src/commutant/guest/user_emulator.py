"""The user-mode QEMU that is installed: found, and judged by its version."""

from __future__ import annotations

import shutil

from commutant.guest.emulator import Emulator, answer_of, judge
from commutant.guest.versions import PROGRAMS, tested_versions
from commutant.support import RunError, package_advice


def find_user_emulator() -> Emulator:
    """The user-mode QEMU in PATH.

    Raises RunError if there is none, or one that cannot trace, by its version or since it was built without plugins.
    """
    path = shutil.which(PROGRAMS)
    if path is None:
        raise RunError(f"{PROGRAMS} is not in PATH; {package_advice('qemu-user')} ({tested_versions()})")
    emulator = judge(path, answer_of(path, "--version", "qemu-user"))
    if "-plugin" not in answer_of(path, "-h", "qemu-user"):
        raise RunError(f"{path}: built without plugins, so it cannot trace; install Debian 12's qemu-user (7.2)")
    return emulator
