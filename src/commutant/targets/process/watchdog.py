"""Finds out that a program makes no progress: a call that never returns would otherwise cost a campaign its patience.

What counts is the program's processor time, not the clock: on a busy machine a program waits for its turn. A program in
which every thread sleeps uses none; then the clock counts, with more patience.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

_COUNT = struct.Struct("<Q")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Watchdog:
    """Watches one process and the number of windows that it has begun."""

    INTERVAL_SECONDS = 0.25
    """How often it is worth asking."""

    _BUSY_SECONDS = 2.0
    _ASLEEP_SECONDS = 10.0

    def __init__(self, process_id: int, progress: int) -> None:
        """`progress` is the descriptor of the file in which the process counts windows; it stays the caller's."""
        self._stat = Path(f"/proc/{process_id}/stat")
        self._progress = progress
        self._count = -1
        self._used_seconds = 0.0
        self._since = 0.0
        self.verdict = ""
        """Why it is stuck, once it is."""

    def restart(self) -> None:
        """Counts from now on."""
        self._count = -1

    def is_stuck(self) -> bool:
        """Whether the process has used two seconds within one window, or slept through ten."""
        (count,) = _COUNT.unpack(os.pread(self._progress, _COUNT.size, 0))
        used_seconds, now = self._processor_seconds(), time.monotonic()
        if count != self._count:
            self._count, self._used_seconds, self._since = count, used_seconds, now
            return False
        if used_seconds - self._used_seconds > self._BUSY_SECONDS:
            self.verdict = f"one window went on for {self._BUSY_SECONDS:g} s of processor time; a call never returns?"
            return True
        is_idle = used_seconds - self._used_seconds < self._INTERVAL_OF_LIFE_SECONDS
        if is_idle and now - self._since > self._ASLEEP_SECONDS:
            self.verdict = f"all its threads slept through {self._ASLEEP_SECONDS:g} s of one window; a deadlock?"
            return True
        return False

    _INTERVAL_OF_LIFE_SECONDS = 0.05

    def _processor_seconds(self) -> float:
        try:
            text = self._stat.read_text()
        except OSError:  # it has ended, which others find out
            return 0.0
        fields = text.rpartition(")")[2].split()  # the name before may hold anything
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
