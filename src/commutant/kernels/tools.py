"""What building a kernel needs of the system, and what the compiler and its kin are."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from commutant.support import RunError

_COMMANDS = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "patch": "patch",
    "pahole": "pahole",
}
_HEADERS = {"libc6-dev": "stdio.h", "libelf-dev": "gelf.h"}
_INCLUDE = (Path("/usr/include"), Path("/usr/local/include"))
_SECONDS = 20.0


def require_tools() -> None:
    """Raises RunError that names the packages to install, if something is missing."""
    missing = {package for command, package in _COMMANDS.items() if shutil.which(command) is None}
    folders = [*_INCLUDE, *(Path(one) for one in os.environ.get("C_INCLUDE_PATH", "").split(os.pathsep) if one)]
    missing |= {name for name, header in _HEADERS.items() if not any((one / header).is_file() for one in folders)}
    if missing:
        raise RunError(f"building a kernel needs more: `apt-get install {' '.join(sorted(missing))}`")


def toolchain() -> str:
    """The versions of what decides about the code and the types of a kernel, on one line."""
    return "; ".join(_version(command) for command in ("gcc", "ld", "pahole"))


def _version(command: str) -> str:
    try:
        answer = subprocess.run(
            [command, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{command} --version: {error}") from None
    return f"{command} {answer.splitlines()[0].removeprefix(command).strip()}" if answer else command
