"""Names for a kernel's code, from its symbols. What locks and data are called, the recorder has found out itself."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

from commutant.lock_view.study.names import Frame
from commutant.support import RunError, UsageError

_KERNEL_START = 1 << 63
_FUNCTION_TYPES = frozenset("tTwW")


class KernelAddressNames:
    """The functions of a kernel, by address."""

    def __init__(self, kallsyms: Path) -> None:
        """Reads symbols as in /proc/kallsyms; raises RunError if the file cannot be read, UsageError if it is none."""
        try:
            lines = kallsyms.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"{kallsyms}: {error}; run the command again") from None
        functions: dict[int, str] = {}
        try:
            for line in lines:
                text, kind, name = line.split()[:3]
                address = int(text, 16)
                if kind in _FUNCTION_TYPES and address >= _KERNEL_START:
                    functions.setdefault(address, name)
        except ValueError:
            raise UsageError(f"{kallsyms}: expected lines of address, type and name, got {line[:60]!r}") from None
        self._starts = sorted(functions)
        self._names = [functions[start] for start in self._starts]
        self.unreadable: dict[str, str] = {}
        """Always empty: there is one file, and it has been read."""

    def frames(self, address: int) -> tuple[Frame, ...]:
        """The function at an instruction; its address where there is none."""
        index = bisect_right(self._starts, address) - 1
        name = self._names[index] if index >= 0 else f"{address:#x}"
        return (Frame(name, None, None, "kernel"),)

    def stack(self, addresses: tuple[int, ...]) -> list[Frame]:
        """All functions of a call stack, the innermost first."""
        return [frame for address in addresses for frame in self.frames(address)]

    def user(self, addresses: tuple[int, ...]) -> Frame | None:
        """The innermost function."""
        return next(iter(self.stack(addresses)), None)

    owner = user

    def memory(self, address: int) -> str:
        """The address: a kernel's objects have nothing else that tells those of one type apart."""
        return f"{address:#x}"

    def variable(self, address: int) -> str | None:
        """None: the recorder names a kernel's data."""
        return None
