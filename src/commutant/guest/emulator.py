"""The QEMU that is installed: found, and judged by its version."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from commutant.support import RunError, package_advice

PROGRAM = "qemu-system-x86_64"

_VERSION = re.compile(r"version (\d+)\.(\d+)[.\d]*(?: \([^)\n]*\))?")
_ANSWER_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Emulator:
    """An installed QEMU: its path, and its version as it tells it (`version 7.2.22 (Debian ...)`)."""

    path: str
    version: str


def find_emulator() -> Emulator:
    """The QEMU in PATH.

    Raises RunError if there is none, or if it is of a version that cannot trace: before 7.2 the plugin interface lacks
    physical addresses of other address spaces; from 9.0 on it is another interface, and with one thread for all virtual
    CPUs it attributes accesses to the wrong one.
    """
    path = shutil.which(PROGRAM)
    if path is None:
        raise RunError(f"{PROGRAM} is not in PATH; {package_advice('qemu-system-x86')} (7.2)")
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{path} does not start: {error}; install Debian's qemu-system-x86 (7.2) again") from None
    version = _VERSION.search(answer.stdout)
    if version is None:
        raise RunError(
            f"{path}: expected a version, got {answer.stdout[:60]!r}; install Debian's qemu-system-x86 (7.2)"
        )
    if not (7, 2) <= (int(version[1]), int(version[2])) < (9, 0):
        raise RunError(f"{path}: {version[0]} cannot trace; expected 7.2 (Debian 12's qemu-system-x86)")
    return Emulator(path, version[0])
