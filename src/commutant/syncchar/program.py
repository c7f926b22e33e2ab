"""Runs a program under the emulator with the lock recorder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commutant.artifacts import lock_preload_path, locks_plugin_path
from commutant.errors import RunError, UsageError
from commutant.syncchar.record import Record, read_record
from commutant.targets.process.emulator import find_user_emulator

DEFAULT_WINDOW_SECTIONS = 128
"""The paper's window (section 3)."""

_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """How a recorded program ended: its exit code (negative: the signal), whether it was stopped for taking too long,
    and the records of its processes, its own first."""

    exit_code: int
    timed_out: bool
    records: tuple[Record, ...]


def record_program(
    command: Sequence[str],
    *,
    window_sections: int = DEFAULT_WINDOW_SECTIONS,
    inlined: bool = True,
    timeout_seconds: float | None = None,
    output: int | None = None,
) -> ProgramRun:
    """Runs a program to its end and reads what was recorded of it and of the processes that it forked.

    It has this process's standard streams; with `output`, that descriptor is its standard output. A program that is
    stopped after `timeout_seconds`, or dies, leaves what was recorded until a moment before. Raises UsageError if it
    cannot be run here, RunError if nothing was recorded.
    """
    executable = _executable(command[0])
    emulator = find_user_emulator().path
    with tempfile.TemporaryDirectory(prefix="commutant-locks-") as folder:
        out = Path(folder) / "record.json"
        # A path of our own: the linker splits the variable at blanks and colons, which the installation's may have.
        library = Path(folder) / "lock_preload.so"
        library.symlink_to(lock_preload_path())
        preload = ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")]))
        switch = "on" if inlined else "off"
        plugin = f"{_quoted(locks_plugin_path())},out={_quoted(out)},window={window_sections},inlined={switch}"
        # For the program, not for the emulator. Binding at the start keeps the linker out of critical sections.
        environment = ("-E", f"LD_PRELOAD={preload}", "-E", "LD_BIND_NOW=1")
        # `-0` is what the program sees as its own name; an absolute path is never taken for an option.
        program = ("-0", command[0], str(executable))
        with _started([emulator, *environment, "-plugin", plugin, *program, *command[1:]], output) as process:
            try:
                exit_code = process.wait(timeout_seconds)
                timed_out = False
            except subprocess.TimeoutExpired:
                _stop(process)
                exit_code, timed_out = process.wait(), True
        records = _records(out)
        if not records and timed_out:
            raise RunError(f"{command[0]}: it was stopped after {timeout_seconds:g} s, before anything was recorded")
        if not records:
            raise RunError(
                f"{command[0]}: it ended with {_ending(exit_code)} before anything was recorded; does it run without "
                "the recorder?"
            )
        return ProgramRun(exit_code, timed_out, records)


def _executable(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise UsageError(f"{name}: expected a program, a path or a name on PATH, got neither")
    path = Path(found).absolute()
    with path.open("rb") as file:
        start = file.read(20)
    if start[:4] != b"\x7fELF":
        raise UsageError(
            f"{found}: expected a compiled program (ELF), got something else; for a script: its interpreter"
        )
    if start[4:5] != b"\x02" or start[18:20] != b"\x3e\x00":
        raise UsageError(f"{found}: expected a program for x86-64, got one for another processor")
    return path


@contextmanager
def _started(command: Sequence[str], output: int | None) -> Iterator[subprocess.Popen[bytes]]:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    process = subprocess.Popen(command, env=environment, stdout=output, start_new_session=True)
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


def _records(out: Path) -> tuple[Record, ...]:
    own = [out] if out.exists() else []
    children = sorted(path for path in out.parent.glob(f"{out.name}.*") if path.suffix != ".part")
    return tuple(read_record(path) for path in own + children)


def _ending(exit_code: int) -> str:
    return f"signal {signal.Signals(-exit_code).name}" if exit_code < 0 else f"exit code {exit_code}"


def _quoted(path: Path) -> str:
    """A comma separates arguments for QEMU; doubled it stands for itself."""
    return str(path).replace(",", ",,")
