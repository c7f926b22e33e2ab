"""One program under the emulator with its tracer: windows from its trace, in addition to what any running program
gives.

The trace goes through a pipe, the list of objects to an anonymous file. The trace is read all the time, by a thread,
since the tracer waits when its pipe is full.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import queue
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from commutant.mtrace import TracedWindow, TraceReader
from commutant.support import RunError, close_at_exit
from commutant.targets.counted import tracer_arguments
from commutant.targets.process.program import Program
from commutant.targets.process.running import EXIT_SECONDS, LOOK_SECONDS, RunningProgram
from commutant.targets.process.watchdog import Watchdog

_PIPE_BYTES = 1 << 20

_Batch = Sequence[TracedWindow] | RunError | None
"""Windows of one batch; or why reading failed; or None past the end of the trace."""


class TracedProgram(RunningProgram):
    """A running program whose accesses are recorded."""

    _kind = "traced program"

    def __init__(self, emulator: Sequence[str], plugin: Path, program: Program) -> None:
        """Starts it; raises RunError if it does not start."""
        with contextlib.ExitStack() as stack:
            listing = os.memfd_create("commutant-objects")
            stack.callback(os.close, listing)
            naming = self.naming = program.naming(listing)
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
                # A stack that Rust reads from debug information takes an emulated panic longer than a window may last.
                quiet = ("-E", "RUST_BACKTRACE=0")
                command = [*emulator, *quiet, "-plugin", tracer, *program.command(listing, progress)]
                super().__init__(command, (far_trace, listing, progress))
            stack.callback(super().close)
            if program.counts_windows:
                self._watchdog = Watchdog(self.process_id, progress, lambda: _holds_bytes(trace))
            self._batches: queue.SimpleQueue[_Batch] = queue.SimpleQueue()
            reader = TraceReader(trace, naming.source)
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
        except BaseException as error:  # noqa: BLE001
            # Handed to the thread that waits for the batch, as a new error: this one's traceback would keep the reader.
            self._batches.put(RunError(str(error) or type(error).__name__))

    def windows(self, count: int, timeout_seconds: float) -> Sequence[TracedWindow]:
        """As `RunningProgram.windows`; raises RunError if the trace is damaged, or ends or stops before."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            try:
                batch = self._batches.get(timeout=LOOK_SECONDS)
                break
            except queue.Empty:
                if time.monotonic() > deadline:
                    raise self.failure(f"no trace after {timeout_seconds:g} s") from None
                self._look(watched=False)  # it may be waiting for us
        if batch is None or isinstance(batch, RunError):
            raise self.failure(f"reading the trace: {batch or 'it ended'}", EXIT_SECONDS)
        if len(batch) != count:
            raise self.failure(f"a trace of {len(batch)} windows, expected {count}")
        return batch

    def close(self) -> None:
        """Ends program and reader and frees all; may be called twice."""
        self.kill()
        self._thread.join(EXIT_SECONDS)
        self._resources.close()


def _holds_bytes(pipe: int) -> bool:
    """Whether a pipe holds what no one has read yet."""
    return any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
