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
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{path} does not start: {error}; install Debian's qemu-user (7.2) again") from None
    version = _VERSION.search(answer.stdout)
    if version is None or not (7, 2) <= (int(version[1]), int(version[2])) < (9, 0):
        told = version[0] if version else repr(answer.stdout[:60])
        raise RunError(f"{path}: {told} cannot trace; expected 7.2 (Debian 12's qemu-user)")
    help_text = subprocess.run(
        [path, "-h"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
    ).stdout
    if "-plugin" not in help_text:
        raise RunError(f"{path}: built without plugins, so it cannot trace; install Debian 12's qemu-user (7.2)")
    return Emulator(path, version[0])
