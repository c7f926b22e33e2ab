"""One program under the emulator with its tracer: batches to it, results from it, and windows from its trace.

Batches, results and trace go through pipes, messages and the list of objects to anonymous files, so there is nothing
to clean up. The kernel kills the emulator when this process ends, however that happens. The trace is read all the time,
by a thread, since the tracer waits when its pipe is full; batches are written as far as the pipe takes them while
results are waited for, so that neither side waits for the other.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import queue
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from commutant.mtrace import TracedWindow, TraceReader
from commutant.support import Limits, RunError, close_at_exit, start_program
from commutant.targets.counted import tracer_arguments
from commutant.targets.process.program import Program
from commutant.targets.process.watchdog import Watchdog

_PIPE_BYTES = 1 << 20
_EXIT_SECONDS = 10.0
_KILLED = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals by which others end a program."""

_LENGTH = struct.Struct("<I")

_Batch = Sequence[TracedWindow] | RunError | None
"""Windows of one batch; or why reading failed; or None behind the end of the trace."""

_LIMITS = Limits(memory_bytes=64 << 30, file_bytes=1 << 30, open_files=1024)
"""What a program may take that runs batches, which may come from anyone. Of addresses the emulator sets aside many more
than it uses."""


class ProgramDied(RunError):
    """The program has ended by its own doing: a panic, a memory fault."""


class TracedProgram:
    """A running program; batches are sent, then results and windows are taken in the same order."""

    def __init__(self, emulator: str, plugin: Path, program: Program) -> None:
        """Starts it; raises RunError if it does not start."""
        with contextlib.ExitStack() as stack:
            self._messages = os.memfd_create("commutant-messages")
            stack.callback(os.close, self._messages)
            listing = os.memfd_create("commutant-objects")
            stack.callback(os.close, listing)
            self.naming = program.naming(listing)
            progress = os.memfd_create("commutant-progress")
            stack.callback(os.close, progress)
            os.ftruncate(progress, mmap.PAGESIZE)
            trace, far_trace = os.pipe()
            stack.callback(os.close, trace)
            with contextlib.ExitStack() as until_started:
                until_started.callback(os.close, far_trace)
                with contextlib.suppress(OSError):  # more than the system allows an ordinary user
                    fcntl.fcntl(trace, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
                # A comma separates arguments for QEMU; doubled it stands for itself.
                paths = f"{str(plugin).replace(',', ',,')},out=/proc/self/fd/{far_trace},mode=user"
                tracer = ",".join([paths, *tracer_arguments(program.counted)])
                self._process = start_program(
                    [emulator, "-plugin", tracer, *program.command(listing, progress)],
                    passed=(far_trace, listing, progress),
                    input=subprocess.PIPE,
                    messages=self._messages,
                    limits=_LIMITS,
                )
            self._watchdog = (
                Watchdog(self._process.pid, progress, lambda: _holds_bytes(trace)) if program.counts_windows else None
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
            self._batches: queue.SimpleQueue[_Batch] = queue.SimpleQueue()
            reader = TraceReader(trace, self.naming.source)
            self._thread = threading.Thread(target=self._read, args=(reader,), name="trace-reader", daemon=True)
            self._thread.start()
            self._resources = stack.pop_all()
        close_at_exit(self)

    def _read(self, reader: TraceReader) -> None:
        try:
            while True:
                batch = reader.read_batch()
                self._batches.put(batch)
                if batch is None:
                    return
        except BaseException as error:
            # Handed to whoever waits for the batch, as a new error: this one's traceback would keep the reader.
            self._batches.put(RunError(str(error) or type(error).__name__))

    @property
    def process_id(self) -> int:
        """The id of the emulator's process."""
        return self._process.pid

    def send(self, batch: bytes) -> None:
        """Queues a batch, and writes as much of what is queued as the pipe takes."""
        self._outgoing += _LENGTH.pack(len(batch)) + batch
        self._write()

    def results(self, timeout_seconds: float) -> bytes:
        """The results of the next batch; raises RunError if the program ends or does not answer in time, ProgramDied if
        it hangs in one window."""
        deadline = time.monotonic() + timeout_seconds
        if self._watchdog:
            self._watchdog.restart()
        while (frame := self._take_frame()) is None:
            left_seconds = deadline - time.monotonic()
            if left_seconds <= 0:
                raise self.failure(f"no results after {timeout_seconds:g} s")
            poll = select.poll()
            poll.register(self._output, select.POLLIN)
            if self._outgoing:
                poll.register(self._input, select.POLLOUT)
            if self._watchdog and self._watchdog.is_stuck():
                self.kill()
                raise ProgramDied(f"the traced program, process {self.process_id}: {self._watchdog.verdict}")
            patience_seconds = min(left_seconds, Watchdog.INTERVAL_SECONDS) if self._watchdog else left_seconds
            for descriptor, _ in poll.poll(patience_seconds * 1000):
                if descriptor == self._input:
                    self._write()
                elif not self._receive():
                    raise self.failure("it ended", _EXIT_SECONDS)
        return frame

    def windows(self, timeout_seconds: float) -> Sequence[TracedWindow]:
        """The windows of the next batch; raises RunError if the trace is damaged, or ends or stops before."""
        try:
            batch = self._batches.get(timeout=timeout_seconds)
        except queue.Empty:
            raise self.failure(f"no trace after {timeout_seconds:g} s") from None
        if batch is None or isinstance(batch, RunError):
            raise self.failure(f"reading the trace: {batch or 'it ended'}", _EXIT_SECONDS)
        return batch

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
        return kind(f"the traced program, process {self.process_id}: {what}{ended}{words}")

    def kill(self) -> None:
        """Kills the program; whoever waits for it learns that it ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _kill(self) -> None:
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)

    def close(self) -> None:
        """Ends program and reader and frees all; may be called twice."""
        self.kill()
        self._thread.join(_EXIT_SECONDS)
        self._resources.close()


def _holds_bytes(pipe: int) -> bool:
    """Whether a pipe holds what nobody has read yet."""
    return any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))


def _close_quietly(process: subprocess.Popen[bytes]) -> None:
    """Closes the program's input, of which nothing was buffered."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
