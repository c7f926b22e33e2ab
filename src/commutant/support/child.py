"""The one way to start a program that must not outlive this process, however that ends, nor take more than is granted.

The kernel kills such a program when the *thread* that started it ends (`PR_SET_PDEATHSIG`), so one thread that never
does starts them all. A process that was forked, a worker of a pool, asks for the same itself (`die_with`).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from commutant.support import confined
from commutant.support.errors import RunError

_PR_SET_PDEATHSIG = 1
"""`linux/prctl.h`."""

_LOOK = 'test "$PPID" = "$0" && exec "$@"'
"""A parent that ended before the kernel was asked sends no signal any more: then the program is not begun."""

_LAUNCHER = (sys.executable, "-I", "-S", str(confined.__file__))


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may take (`setrlimit`); None is as much as this process may. A core file is never written."""

    memory_bytes: int | None = None
    """Of addresses, whether there is memory behind them or not."""
    file_bytes: int | None = None
    """The size of any file that it writes."""
    open_files: int | None = None


def start_program(
    command: Sequence[str],
    *,
    passed: Sequence[int] = (),
    input: int = subprocess.DEVNULL,
    output: int = subprocess.PIPE,
    messages: int = subprocess.DEVNULL,
    limits: Limits | None = None,
    is_confined: bool = False,
) -> subprocess.Popen[bytes]:
    """Starts a program, without buffers of our own; it ends with this process, and not by a Ctrl-C at the terminal.

    `passed` are descriptors that it keeps; `input`, `output` and `messages` its standard streams, as `Popen` takes
    them. One that `is_confined` can change nothing outside of itself, as far as the system has `confinement_layers`.
    Raises RunError if it cannot be started.
    """
    launcher = (*_LAUNCHER, str(os.getpid())) if is_confined else ()
    whole = [*_prefix(limits), *launcher, *command]
    return _spawner().submit(_start, whole, passed, (input, output, messages)).result()


@cache
def confinement_layers() -> frozenset[str]:
    """By which means this system confines programs: `seccomp`, and `namespaces` or `landlock`; see confined.py."""
    with start_program(_LAUNCHER) as process:
        return frozenset(process.communicate()[0].decode().split())


def die_with(parent: int) -> None:
    """For a process that was forked by `parent`: ends with it from now on, at once if it has ended already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


@cache
def _spawner() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


os.register_at_fork(after_in_child=_spawner.cache_clear)  # a thread stays behind in the process that was forked


def _prefix(limits: Limits | None) -> list[str]:
    prefix = ["setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", _LOOK, str(os.getpid())]
    if limits is None:
        return prefix
    granted = {"as": limits.memory_bytes, "fsize": limits.file_bytes, "nofile": limits.open_files, "core": 0}
    return [*prefix, "prlimit", *(f"--{name}={limit}" for name, limit in granted.items() if limit is not None), "--"]


def _start(command: list[str], passed: Sequence[int], streams: tuple[int, int, int]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            bufsize=0,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            pass_fds=passed,
            start_new_session=True,  # Ctrl-C is for us; we end what we started
        )
    except OSError as error:
        raise RunError(f"{command[0]} does not start: {error.strerror}") from None
