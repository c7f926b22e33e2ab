#!/usr/bin/env python3
"""`limited.py PROGRAM [ARG ...]` runs a test program, and ends one that hangs with the stacks of all its threads.

Cargo starts every program by this (.cargo/config.toml), so that it does not matter who runs a test: `make test`, a long
test in Python, or a person. A test that waits for what never comes would else say nothing for as long as somebody has
patience. What is no test has no limit. Stacks are gdb's; without it, what each thread waits in is named.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

LIMIT_SECONDS = float(os.environ.get("COMMUTANT_TEST_LIMIT_SECONDS", "600"))
"""None of our test programs takes a tenth of this."""

TIMED_OUT = 124
"""The exit code, as of the command `timeout`."""

_STACKS_SECONDS = 120.0
_PR_SET_PDEATHSIG = 1
_PR_SET_PTRACER = 0x59616D61
_ANYBODY = ctypes.c_ulong(-1)


def _prepare() -> None:
    """In the test program: it ends with this one, also if that is killed. Where a system lets only parents look at a
    process (Yama), it lets others, too."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)


def stacks(process: int) -> str:
    """The stacks of all threads of a process, as well as they can be had."""
    gdb = shutil.which("gdb")
    if gdb is not None:
        command = [gdb, "--nx", "--batch", "--pid", str(process), "--eval-command", "thread apply all backtrace 40"]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            answer = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=_STACKS_SECONDS, check=False,
            )  # fmt: skip
            if "\nThread " in answer.stdout:
                return answer.stdout[answer.stdout.index("\nThread ") :]
    lines = []
    for task in sorted(Path(f"/proc/{process}/task").iterdir()):
        with contextlib.suppress(OSError):
            lines.append(f"thread {task.name} ({(task / 'comm').read_text().strip()}): {(task / 'wchan').read_text()}")
    return "\n".join(lines)


def _is_test(command: list[str]) -> bool:
    """Whether it is a program that cargo has built for its tests; those of benchmarks lie next to them."""
    return Path(command[0]).parent.name == "deps" and "--bench" not in command


def main(command: list[str]) -> int:
    """Runs the command; its exit code, or 124 after the limit."""
    if not command:
        print("usage: limited.py PROGRAM [ARG ...]", file=sys.stderr)
        return 2
    if not _is_test(command):
        os.execvp(command[0], command)
    with subprocess.Popen(command, preexec_fn=_prepare) as process:
        try:
            code = process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            name = " ".join([Path(command[0]).name, *command[1:]])
            print(f"{name}: not done after {LIMIT_SECONDS:g} s; its threads:", file=sys.stderr)
            print(stacks(process.pid), file=sys.stderr, flush=True)
            process.kill()
            return TIMED_OUT
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            return 130
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
