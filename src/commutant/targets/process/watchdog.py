"""Finds out that a program makes no progress: a call that never returns would otherwise cost a campaign its patience.

What counts is the program's processor time, not the clock: on a busy machine a program waits for its turn. A program in
which every thread sleeps uses none and waits for no turn; then the clock counts, unless the program waits for us.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

_COUNT = struct.Struct("<Q")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Watchdog:
    """Watches one process and the number of windows that it has begun."""

    _BUSY_SECONDS = 2.0
    _ASLEEP_SECONDS = 2.0

    def __init__(self, process_id: int, progress: int, waits_for_us: Callable[[], bool]) -> None:
        """`progress` is the descriptor of the file in which the process counts windows; it stays the caller's.
        `waits_for_us` tells whether the process may be asleep because what it has written is not read yet."""
        self._stat = Path(f"/proc/{process_id}/stat")
        self._task = Path(f"/proc/{process_id}/task")
        self._progress = progress
        self._waits_for_us = waits_for_us
        self._count = -1
        self._used_seconds = 0.0
        self._since = 0.0
        self._asked_seconds = 0.0
        self.verdict = ""
        """Why it is stuck, once it is."""

    def restart(self) -> None:
        """Counts from now on."""
        self._count = -1
        self._asked_seconds = self._processor_seconds()

    def has_run(self) -> bool:
        """Whether the process has used processor time since this was asked last, or since the restart.

        On a busy machine one that waits for a thread, and yields, comes to two seconds only after minutes.
        """
        before, self._asked_seconds = self._asked_seconds, self._processor_seconds()
        return self._asked_seconds > before

    def is_stuck(self) -> bool:
        """Whether the process has used two seconds within one window, or slept through as many."""
        (count,) = _COUNT.unpack(os.pread(self._progress, _COUNT.size, 0))
        used_seconds, now = self._processor_seconds(), time.monotonic()
        if count != self._count:
            self._count, self._used_seconds, self._since = count, used_seconds, now
            return False
        if used_seconds - self._used_seconds > self._BUSY_SECONDS:
            self.verdict = f"one window went on for {self._BUSY_SECONDS:g} s of processor time; a call never returns?"
            return True
        is_idle = used_seconds - self._used_seconds < self._INTERVAL_OF_LIFE_SECONDS and self._all_sleep()
        if is_idle and self._waits_for_us():
            self._since = now
        if is_idle and now - self._since > self._ASLEEP_SECONDS:
            self.verdict = f"all its threads slept through {self._ASLEEP_SECONDS:g} s of one window; a deadlock?"
            return True
        return False

    _INTERVAL_OF_LIFE_SECONDS = 0.05

    def _all_sleep(self) -> bool:
        """Whether no thread runs or waits for a processor."""
        try:
            stats = [(task / "stat").read_text() for task in self._task.iterdir()]
        except OSError:  # a thread has just ended
            return False
        return all(stat.rpartition(")")[2].split()[0] == "S" for stat in stats)

    def _processor_seconds(self) -> float:
        try:
            text = self._stat.read_text()
        except OSError:  # it has ended, which others find out
            return 0.0
        fields = text.rpartition(")")[2].split()  # the name before may hold anything
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
