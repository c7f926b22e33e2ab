"""The QEMU that is installed: found, and judged by its version."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from commutant.guest.versions import MACHINES, Version, tested_versions, version_in
from commutant.support import RunError, package_advice

_ANSWER_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Emulator:
    """A QEMU: its path, its version as it tells it (`version 7.2.22 (Debian ...)`), and the loader to start it by."""

    path: str
    version: str
    loader: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        """How it is started: the beginning of a command."""
        return [*self.loader, self.path]

    @property
    def number(self) -> tuple[int, int]:
        """The first two numbers of its version."""
        return self._judged.number

    @property
    def untested(self) -> str:
        """What to say if no one has tried all of Commutant with its version; nothing if somebody has."""
        if self._judged.is_tested:
            return ""
        return (
            f"QEMU {self.version} was not tested (tested: {tested_versions()}); the self-test found it to trace rightly"
        )

    @property
    def _judged(self) -> Version:
        version = version_in(self.version)
        assert isinstance(version, Version), version
        return version


def find_emulator() -> Emulator:
    """The QEMU in PATH. Raises RunError if there is none, or if it is of a version that cannot trace."""
    path = shutil.which(MACHINES)
    if path is None:
        raise RunError(f"{MACHINES} is not in PATH; {package_advice('qemu-system-x86')} ({tested_versions()})")
    return judge(path, answer_of([path], "--version"))


def judge(path: str, printed: str, loader: tuple[str, ...] = ()) -> Emulator:
    """The emulator at a path that prints its version so. Raises RunError if that one cannot trace."""
    version = version_in(printed)
    if isinstance(version, str):
        raise RunError(f"{path}: {version}")
    return Emulator(path, version.text, loader)


def answer_of(command: Sequence[str], option: str, advice: str = "; install its package again") -> str:
    """What an emulator prints when it is only asked about itself. Raises RunError if it does not end well."""
    try:
        answer = subprocess.run(
            [*command, option], capture_output=True, text=True, errors="replace", timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{command[-1]} does not start: {error}{advice}") from None
    if answer.returncode != 0:
        reason = " ".join(answer.stderr.split())[-160:] or f"exit code {answer.returncode}"
        raise RunError(f"{command[-1]} does not start: {reason}{advice}")
    return answer.stdout
