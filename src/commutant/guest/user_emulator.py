"""The user-mode QEMU that is installed: found, and judged by its version."""

from __future__ import annotations

import re
import shutil
import subprocess

from commutant.guest.emulator import Emulator
from commutant.support import RunError, package_advice

PROGRAM = "qemu-x86_64"

_VERSION = re.compile(r"version (\d+)\.(\d+)[.\d]*(?: \([^)\n]*\))?")
_ANSWER_SECONDS = 20.0


def find_user_emulator() -> Emulator:
    """The user-mode QEMU in PATH.

    Raises RunError if there is none, or one whose plugin interface is not the one of 7.2 to 8.x.
    """
    path = shutil.which(PROGRAM)
    if path is None:
        raise RunError(f"{PROGRAM} is not in PATH; {package_advice('qemu-user')} (7.2)")
    stated = _answer(path, "--version")
    version = _VERSION.search(stated)
    if version is None or not (7, 2) <= (int(version[1]), int(version[2])) < (9, 0):
        told = version[0] if version else repr(stated[:60])
        raise RunError(f"{path}: {told} cannot trace; expected 7.2 (Debian 12's qemu-user)")
    if "-plugin" not in _answer(path, "-h"):
        raise RunError(f"{path}: built without plugins, so it cannot trace; install Debian 12's qemu-user (7.2)")
    return Emulator(path, version[0])


def _answer(path: str, option: str) -> str:
    """What the emulator prints when it is only asked about itself. Raises RunError if it does not end well."""
    try:
        return subprocess.run(
            [path, option], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{path} does not start: {error}; install Debian's qemu-user (7.2) again") from None
