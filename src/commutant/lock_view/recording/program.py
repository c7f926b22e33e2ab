"""Runs a program under the emulator with the lock recorder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from commutant.guest import find_user_emulator
from commutant.lock_view.record import Recording, read_record
from commutant.lock_view.recording.folder import recording_folder, require_room
from commutant.lock_view.recording.span import RecordedSpan
from commutant.support import RunError, UsageError, lock_preload_path, locks_plugin_path

DEFAULT_WINDOW_SECTIONS = 128
"""The paper's window (section 3)."""

_END_SECONDS = 30.0
"""A program may take this long to end once it is asked to. It writes its record then, which takes a second if that is
large, and ten on a busy machine; what is not written by then is lost."""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """How a recorded program ended: its exit code (negative: the signal), and whether it was stopped for taking too
    long or by an interrupt. With it how many processes it left behind, which were stopped, and the records of its
    processes, its own first."""

    exit_code: int
    timed_out: bool
    interrupted: bool
    left_behind: int
    records: tuple[Recording, ...]

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.exit_code < 0:
            number = -self.exit_code
            known = {one.value: one.name for one in signal.Signals}  # of real-time signals only the first and last
            return f"signal {known.get(number, number)}"
        return f"exit code {self.exit_code}"


def record_program(
    command: Sequence[str],
    *,
    window_sections: int = DEFAULT_WINDOW_SECTIONS,
    inlined: bool = True,
    timeout_seconds: float | None = None,
    output: int | None = None,
    span: RecordedSpan | None = None,
) -> ProgramRun:
    """Runs a program to its end and reads what was recorded of it and of the processes that it forked.

    It has this process's standard streams; with `output`, that descriptor is its standard output. A program that is
    stopped after `timeout_seconds` or by an interrupt (which is not raised then), or dies, leaves what was recorded.
    What it started and left running is stopped. With `span` only what happens in it is recorded. Raises UsageError if
    it cannot be run here, RunError if nothing was recorded.
    """
    executable = executable_path(command[0])
    emulator = find_user_emulator().command
    with recording_folder() as folder:
        out = folder / "record.json"
        # Paths of our own: the linker splits the variable at blanks and colons, which the installation's may have.
        library = folder / "lock_preload.so"
        library.symlink_to(lock_preload_path())
        # The recorder hears of a signal that ends the program if it stands in front of the emulator's C library.
        recorder = folder / "locks_plugin.so"
        recorder.symlink_to(locks_plugin_path())
        preload = ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")]))
        switch = "on" if inlined else "off"
        plugin = f"{recorder},out={out},window={window_sections},inlined={switch}"
        if span is not None:
            plugin += f",{span.prepare(folder)}"
        # For the program, not for the emulator. Binding at the start keeps the linker out of critical sections.
        environment = ("-E", f"LD_PRELOAD={preload}", "-E", "LD_BIND_NOW=1")
        # `-0` is what the program sees as its own name; an absolute path is never taken for an option.
        program = ("-0", command[0], str(executable))
        timed_out = interrupted = False
        try:
            arguments = [*emulator, *environment, "-plugin", plugin, *program, *command[1:]]
            # The emulator dies with this process. `env`: the recorder cannot be loaded in front of other programs.
            started = ("setpriv", "--pdeathsig", "KILL", "--", "env", f"LD_PRELOAD={recorder}")
            with _started([*started, *arguments], output) as process:
                try:
                    with span.followed() if span is not None else nullcontext():
                        exit_code = process.wait(timeout_seconds)
                except subprocess.TimeoutExpired:
                    timed_out = True
                except KeyboardInterrupt:
                    interrupted = True
                if timed_out or interrupted:
                    _stop(process)
                    exit_code = process.wait()
        finally:
            left_behind = _stop_left_behind(folder)
        run = ProgramRun(exit_code, timed_out, interrupted, left_behind, _records(out))
        if run.records and span is not None and not any(record.instructions for record in run.records):
            raise RunError(f"{command[0]}: it ended before a span began; {span.hint}")
        if run.records:
            return run
        require_room(out)
        if timed_out:
            raise RunError(f"{command[0]}: it was stopped after {timeout_seconds:g} s, before anything was recorded")
        if interrupted:
            raise KeyboardInterrupt
        raise RunError(
            f"{command[0]}: it ended with {run.ending} and left no record; does it run under the emulator alone, "
            f"{emulator} {command[0]}?"
        )


def executable_path(name: str) -> Path:
    """The file of a program that the emulator runs; raises UsageError if it is none."""
    found = shutil.which(name)
    if found is None:
        here = Path(name)
        if here.is_dir():
            raise UsageError(f"{name}: expected a program, got a folder")
        if "/" in name and here.exists():
            raise UsageError(f"{name}: expected a program, got a file that may not be executed; see chmod")
        raise UsageError(f"{name}: expected a program, a path or a name on PATH, got neither")
    path = Path(found).absolute()
    try:
        with path.open("rb") as file:
            start = file.read(20)
    except OSError as error:
        raise UsageError(f"{found}: the emulator has to read the program: {error.strerror}") from None
    if start[:4] != b"\x7fELF":
        raise UsageError(
            f"{found}: expected a compiled program (ELF), got something else; for a script: its interpreter"
        )
    if start[4:5] != b"\x02" or start[18:20] != b"\x3e\x00":
        raise UsageError(f"{found}: expected a program for x86-64, got one for another processor")
    return path


@contextmanager
def _started(command: Sequence[str], output: int | None) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=output, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the program and all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(_END_SECONDS)
            break
        except subprocess.TimeoutExpired:
            continue
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _stop_left_behind(folder: Path) -> int:
    """Ends the processes that the program started and left running (a daemon that it became): they have nowhere to
    leave a record. Tells how many there were."""
    count = 0
    for arguments in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(folder) not in arguments.read_bytes() or int(arguments.parent.name) == os.getpid():
                continue
            os.kill(int(arguments.parent.name), signal.SIGKILL)
            count += 1
        except OSError:
            continue  # it has ended, or is somebody else's
    return count


def _records(out: Path) -> tuple[Recording, ...]:
    own = [out] if out.exists() else []
    children = sorted(path for path in out.parent.glob(f"{out.name}.*") if path.suffix != ".part")
    return tuple(read_record(path) for path in own + children)
