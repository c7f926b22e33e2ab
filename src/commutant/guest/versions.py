"""Which QEMU can trace, recognised by its version.

`make setup` asks this before it installs or builds anything, so nothing but Python is needed here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MACHINES = "qemu-system-x86_64"
PROGRAMS = "qemu-x86_64"
"""The emulators of a machine and of one program."""

OLDEST = (7, 2)
"""Before, the plugin interface lacks physical addresses of other address spaces."""

TESTED = ((7, 2), (10, 0))
"""Those of Debian 12 and 13. Others may do: the plugin asks which interface they have, and each run tests itself."""

_VERSION = re.compile(r"version (\d+)\.(\d+)[.\d]*(?: \([^)\n]*\))?")


@dataclass(frozen=True, slots=True)
class Version:
    """A version as an emulator tells it (`version 7.2.22 (Debian ...)`), and its first two numbers."""

    text: str
    number: tuple[int, int]

    @property
    def is_tested(self) -> bool:
        """Whether all of Commutant was tried with it; of another one only the self-test of each run knows."""
        return self.number in TESTED


def tested_versions() -> str:
    """The versions that were tested, as a text."""
    return " and ".join(f"{major}.{minor}" for major, minor in TESTED)


def version_in(printed: str) -> Version | str:
    """The version in what an emulator prints if it is asked for it, or why that one cannot trace."""
    found = _VERSION.search(printed)
    if found is None:
        return f"expected a version, got {' '.join(printed.split())[:60]!r}"
    number = (int(found[1]), int(found[2]))
    if number < OLDEST:
        return f"{found[0]} cannot trace; tested with {tested_versions()}"
    return Version(found[0], number)
