"""A machine together with its tracer: the plugin inside QEMU, and the thread that reads what it writes.

The plugin writes the trace into a pipe, and waits when the pipe is full; so it is read all the time, by a thread per
machine, which native code keeps busy. What it has read comes batch by batch through a queue.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from commutant import _native
from commutant.guest import Emulator, GuestSilent, Monitor, Region, Snapshot, Tracer
from commutant.mtrace import TracedWindow, TraceReader, kernel_layout, kernel_names
from commutant.support import RunError, artifacts, close_at_exit
from commutant.targets.counted import USUAL, Counted, tracer_arguments
from commutant.targets.linux.debug import kernel_stacks
from commutant.targets.stacks import Stacks

_PIPE_BYTES = 1 << 20
"""What the pipe of a trace holds, if the system allows so much: hundreds of windows."""

_READER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why reading failed."""

    reason: str


_Batch = Sequence[TracedWindow] | _Failure | None
"""Windows of one batch; or why there are none; or None past the end of the trace."""


@dataclass(frozen=True, slots=True)
class TracerFiles:
    """What all machines of a kernel need for tracing: the plugin, the kernel's layout for it, and names for the reader.

    Of a kernel without `types` (BTF) the plugin captures no objects, so symbols alone name what is shared. `stacks`
    adds inlined functions and lines, where debug information was given. Without `recording` the plugin sees the windows
    but no accesses: the limit of what tracing costs, for benchmarks.
    """

    plugin: Path
    layout_descriptor: int
    names: _native.KernelNames
    types: bool
    recording: bool
    stacks: Stacks | None

    @classmethod
    def prepare(cls, snapshot: Snapshot, *, recording: bool = True, debug: Path | None = None) -> TracerFiles:
        """Reads the kernel's symbols and types; `debug` is its vmlinux with debug information, if that is there.

        Raises RunError if symbols or types are not what they should be, UsageError if `debug` is not.
        """
        plugin = artifacts.plugin_path()
        try:
            kallsyms, btf = snapshot.kallsyms.read_bytes(), snapshot.btf.read_bytes()
            modules = [path.read_bytes() for path in snapshot.module_btf]
        except OSError as error:
            raise RunError(f"{error.filename}: {error.strerror}; run the command again") from None
        layout, names = kernel_layout(kallsyms, btf, modules), kernel_names(kallsyms, btf, modules)
        stacks = None if debug is None else kernel_stacks(debug, kallsyms)
        descriptor = os.memfd_create("commutant-layout")
        os.pwrite(descriptor, layout.encode(), 0)
        return cls(plugin, descriptor, names, bool(btf), recording, stacks)

    def close(self) -> None:
        """Frees the layout; once only."""
        os.close(self.layout_descriptor)


class TracedMachine:
    """A machine that was resumed from a snapshot with the tracer attached, and the reader of its trace."""

    def __init__(self, snapshot: Snapshot, emulator: Emulator, files: TracerFiles, counted: Counted = USUAL) -> None:
        """Resumes the machine; raises RunError if QEMU, plugin or guest do not come up."""
        with contextlib.ExitStack() as stack:
            trace, far_end = os.pipe()
            stack.callback(os.close, trace)
            with contextlib.ExitStack() as until_started:
                until_started.callback(os.close, far_end)
                with contextlib.suppress(OSError):  # more than the system allows an ordinary user
                    fcntl.fcntl(trace, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

                def tracer(ram_descriptor: int) -> Tracer:
                    paths = {"out": far_end, "layout": files.layout_descriptor}
                    if files.types:
                        paths["ram"] = ram_descriptor
                    arguments = [f"{name}=/proc/self/fd/{descriptor}" for name, descriptor in paths.items()]
                    # A comma separates arguments for QEMU; doubled it stands for itself.
                    plugin = str(files.plugin).replace(",", ",,")
                    arguments += ["mode=system", f"record={'on' if files.recording else 'off'}"]
                    arguments += tracer_arguments(counted)
                    return Tracer(",".join([plugin, *arguments]), (far_end, files.layout_descriptor))

                self._machine = snapshot.resume(emulator, tracer)
            stack.callback(self._machine.close)
            self._batches: queue.SimpleQueue[_Batch] = queue.SimpleQueue()
            reader = TraceReader(trace, files.names, None if files.stacks is None else files.stacks.expanded)
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
        except BaseException as error:  # noqa: BLE001 - handed to the one that waits for the batch
            # Only its text: with the error's frames the reader would live on, and its descriptor with it.
            self._batches.put(_Failure(str(error) or type(error).__name__))

    @property
    def region(self) -> Region:
        """Memory shared with the guest."""
        return self._machine.region

    @property
    def process_id(self) -> int:
        """The id of the QEMU process."""
        return self._machine.process_id

    @property
    def monitor(self) -> Monitor:
        """As `Machine.monitor`."""
        return self._machine.monitor

    def wait(self, condition: Callable[[], bool], what: str, timeout_seconds: float) -> None:
        """As `Machine.wait`."""
        self._machine.wait(condition, what, timeout_seconds)

    def failure(self, what: str) -> RunError:
        """As `Machine.failure`."""
        return self._machine.failure(what)

    def traced_windows(self, timeout_seconds: float) -> Sequence[TracedWindow]:
        """The windows of the next batch that has been traced.

        Raises GuestSilent if they do not come in time, GuestStopped if the guest ended, RunError if QEMU ended
        otherwise or the trace is damaged.
        """
        try:
            batch = self._batches.get(timeout=timeout_seconds)
        except queue.Empty:
            raise self._machine.failure("the trace of a batch does not end", GuestSilent) from None
        if batch is None:
            raise self._machine.ended("reading the trace")
        if isinstance(batch, _Failure):
            if self._machine.has_ended():
                raise self._machine.ended("reading the trace")
            raise self.failure(f"reading the trace: {batch.reason}")
        return batch

    def kill(self) -> None:
        """As `Machine.kill`; the reader then comes to the end of the trace."""
        self._machine.kill()

    def close(self) -> None:
        """Ends machine and reader and frees all; may be called twice."""
        self._machine.kill()
        self._thread.join(_READER_SECONDS)
        self._resources.close()
