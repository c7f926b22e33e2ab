"""One program that runs batches: batches to it, results from it, through pipes.

Messages go to an anonymous file, so there is nothing to clean up. The kernel kills the program when this process ends,
however that happens. Batches are written as far as the pipe takes them while results are waited for, so that neither
side waits for the other.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

from commutant.mtrace import TracedWindow
from commutant.support import Limits, RunError, start_program
from commutant.targets.process.program import Naming
from commutant.targets.process.spending import excess
from commutant.targets.process.watchdog import Watchdog

_PIPE_BYTES = 1 << 20
EXIT_SECONDS = 10.0
_KILLED = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals by which others end a program."""

_LENGTH = struct.Struct("<I")

LIMITS = Limits(memory_bytes=64 << 30, file_bytes=256 << 20, open_files=1024)
"""What a program may take that runs batches, which may come from anyone. Of addresses the emulator sets aside many more
than it uses; see also `excess`."""

LOOK_SECONDS = 0.25
"""So often a program is looked at that is waited for."""

_MOST_RESULT_BYTES = 1 << 28


class ProgramDied(RunError):
    """The program has ended by its own doing: a panic, a memory fault."""


class RunningProgram(ABC):
    """A running program; batches are sent, then results and windows are taken in the same order."""

    naming: Naming | None = None
    """Names for what its windows show."""

    _watchdog: Watchdog | None = None
    _look_at = 0.0
    _kind = "program"

    def __init__(self, command: Sequence[str], passed: Sequence[int] = ()) -> None:
        """Starts it, with these descriptors of ours in addition to its streams; raises RunError if it does not
        start."""
        with contextlib.ExitStack() as stack:
            self._messages = os.memfd_create("commutant-messages")
            stack.callback(os.close, self._messages)
            self._process = start_program(
                list(command),
                passed=tuple(passed),
                input=subprocess.PIPE,
                messages=self._messages,
                limits=LIMITS,
                is_confined=True,
            )
            assert self._process.stdin is not None and self._process.stdout is not None
            self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
            stack.callback(self._process.stdout.close)
            stack.callback(_close_quietly, self._process)
            stack.callback(self._kill)
            os.set_blocking(self._input, False)
            os.set_blocking(self._output, False)
            self._outgoing = bytearray()
            self._incoming = bytearray()
            self._streams = stack.pop_all()

    @abstractmethod
    def windows(self, count: int, timeout_seconds: float) -> Sequence[TracedWindow]:
        """What was seen in the windows of the next batch, of which there are this many; raises RunError if that cannot
        be known."""

    @property
    def _described(self) -> str:
        return f"the {self._kind}, process {self.process_id}"

    @property
    def process_id(self) -> int:
        """The id of the process, which is the emulator's where there is one."""
        return self._process.pid

    def send(self, batch: bytes) -> None:
        """Queues a batch, and writes as much of what is queued as the pipe takes."""
        self._outgoing += _LENGTH.pack(len(batch)) + batch
        self._write()

    def results(self, timeout_seconds: float) -> bytes:
        """The results of the next batch; raises RunError if the program ends or does not answer in time, ProgramDied if
        it hangs in one window. Where it is watched, only time in which it has not run counts."""
        deadline = time.monotonic() + timeout_seconds
        if self._watchdog:
            self._watchdog.restart()
        while (frame := self._take_frame()) is None:
            left_seconds = deadline - time.monotonic()
            if left_seconds <= 0:
                if not (self._watchdog and self._watchdog.has_run()):
                    raise self.failure(f"no results after {timeout_seconds:g} s")
                deadline = time.monotonic() + timeout_seconds
                continue
            poll = select.poll()
            poll.register(self._output, select.POLLIN)
            if self._outgoing:
                poll.register(self._input, select.POLLOUT)
            self._look()
            for descriptor, _ in poll.poll(min(left_seconds, LOOK_SECONDS) * 1000):
                if descriptor == self._input:
                    self._write()
                elif not self._receive():
                    raise self.failure("it ended", EXIT_SECONDS)
        return frame

    def _look(self, *, watched: bool = True) -> None:
        """Kills a program that takes more than it may or, if it is `watched`, makes no progress; raises ProgramDied."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_SECONDS
        reason = excess(self.process_id)
        if not reason and watched and self._watchdog and self._watchdog.is_stuck():
            reason = self._watchdog.verdict
        if reason:
            self.kill()
            raise ProgramDied(f"{self._described}: {reason}")

    def _write(self) -> None:
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # an end of the program shows when we read
            while self._outgoing:
                del self._outgoing[: os.write(self._input, self._outgoing)]

    def _receive(self) -> bool:
        """Takes what there is; False at the end."""
        try:
            part = os.read(self._output, _PIPE_BYTES)
        except BlockingIOError:
            return True
        self._incoming += part
        return bool(part)

    def _take_frame(self) -> bytes | None:
        if len(self._incoming) < _LENGTH.size:
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(self._incoming)[0]
        if end > _MOST_RESULT_BYTES:
            raise self.failure(f"results of {end} bytes")
        if len(self._incoming) < end:
            return None
        frame = bytes(self._incoming[_LENGTH.size : end])
        del self._incoming[:end]
        return frame

    def failure(self, what: str, patience_seconds: float = 1.0) -> RunError:
        """An error about this program, with how it ended, if it does so in this time, and the last of what it said."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_seconds)
        code = self._process.poll()
        ended = "" if code is None else f" (killed by signal {-code})" if code < 0 else f" (exit code {code})"
        size = os.fstat(self._messages).st_size
        output = " ".join(os.pread(self._messages, size, 0).decode(errors="replace").split())[-400:]
        words = f"; it says: {output}" if output else ""
        kind = RunError if code is None or -code in _KILLED else ProgramDied
        return kind(f"{self._described}: {what}{ended}{words}")

    def kill(self) -> None:
        """Kills the program; a thread that waits for it learns that it ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _kill(self) -> None:
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_SECONDS)

    def close(self) -> None:
        """Ends the program and frees all; may be called twice."""
        self._streams.close()


def _close_quietly(process: subprocess.Popen[bytes]) -> None:
    """Closes the program's input, of which nothing was buffered."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
