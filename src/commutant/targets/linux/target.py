"""The target `linux`: options, start, sessions, and what is recorded of it."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from commutant import artifacts
from commutant.errors import RunError, UsageError
from commutant.targets.base import Progress
from commutant.targets.linux import selftest
from commutant.targets.linux.emulator import Emulator, find_emulator
from commutant.targets.linux.kernel import Kernel, default_kernel, unpack
from commutant.targets.linux.machine import CORE_LIMIT, hardware_arguments
from commutant.targets.linux.session import LinuxSession
from commutant.targets.linux.snapshot import Snapshot, take_snapshot
from commutant.targets.linux.tracing import TracedMachine, TracerFiles
from commutant.targets.rules import ALL_RULES, take_rules_off
from commutant.targets.runner import Signature, read_calls, signature

FILE_SYSTEMS = ("tmpfs", "ramfs")
"""The file systems that windows can run on: those that need no device and no module."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the target argument asks for: the file system, a kernel of the user's own, ignoring rules switched off."""

    file_system: str = FILE_SYSTEMS[0]
    kernel: Path | None = None
    rules_off: frozenset[str] = ALL_RULES


def parse_options(argument: str, options: Mapping[str, str]) -> Options:
    """The options of a target argument; raises UsageError for a key or value that there is not."""
    file_system, kernel = FILE_SYSTEMS[0], None
    options, rules_off = take_rules_off(argument, options)
    for key, value in options.items():
        if key == "fs":
            if value not in FILE_SYSTEMS:
                raise UsageError(
                    f"target {argument!r}: unknown file system {value!r}; expected {' or '.join(FILE_SYSTEMS)}"
                )
            file_system = value
        elif key == "kernel":
            kernel = Path(value)
            if not kernel.is_file():
                wanted = "a bzImage, a vmlinux or a Debian package"
                raise UsageError(f"target {argument!r}: no file {value}; expected a kernel: {wanted}")
        else:
            wanted = "fs=tmpfs|ramfs, kernel=PATH or ignore_RULE=off"
            raise UsageError(f"target {argument!r}: unknown option {key!r}; expected {wanted}")
    return Options(file_system, kernel, rules_off)


@dataclass(frozen=True, slots=True)
class _Started:
    """What sessions share."""

    emulator: Emulator
    kernel: Kernel
    snapshot: Snapshot
    tracer: TracerFiles


class LinuxTarget:
    """Linux in virtual machines; see `commutant.targets.base.Target`."""

    def __init__(self, argument: str, options: Options) -> None:
        """Does nothing yet but keep the options."""
        self.argument = argument
        self.options = options
        self._started: _Started | None = None
        self._sessions: list[LinuxSession] = []
        self._spare: LinuxSession | None = None

    @cached_property
    def _calls(self) -> frozenset[Signature]:
        return read_calls(artifacts.runner_path())

    def implements(self, call: str, parameters: Iterable[str]) -> bool:
        """Whether the runner knows this call; raises RunError if there is no runner."""
        return signature(call, parameters) in self._calls

    def start(self, progress: Progress, core_count: int) -> None:
        """Finds QEMU and kernel, boots once (or takes the snapshot of an earlier run), and runs the self-test."""
        if core_count > CORE_LIMIT:
            raise UsageError(f"a test has {core_count} calls: expected at most {CORE_LIMIT} on the target linux")
        core_count = max(core_count, 2)
        emulator = find_emulator()
        kernel = unpack(self.options.kernel) if self.options.kernel else default_kernel()
        snapshot = take_snapshot(
            emulator, kernel, artifacts.runner_path(), core_count, self.options.file_system, progress
        )
        self._started = _Started(emulator, kernel, snapshot, TracerFiles.prepare(snapshot))
        progress("checking the tracer")
        try:
            session = self._new_session(ALL_RULES)
            selftest.check(session)
        except BaseException:
            self.close()
            raise
        if self.options.rules_off:
            session.close()
        else:
            self._spare = session

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that sessions resume from; None before the start."""
        return self._started.snapshot if self._started else None

    def _new_session(self, rules_off: frozenset[str]) -> LinuxSession:
        started = self._started
        if started is None:
            raise RunError("the target linux has not been started")
        session = LinuxSession(lambda: TracedMachine(started.snapshot, started.emulator, started.tracer, rules_off))
        self._sessions.append(session)
        return session

    def sessions(self, count: int) -> Sequence[LinuxSession]:
        """Starts `count` virtual machines, several at a time; the one of the self-test is among them."""
        spare, self._spare = self._spare, None
        sessions = [spare] if spare else []
        with ThreadPoolExecutor(max(1, count)) as starters:
            futures = [starters.submit(self._new_session, self.options.rules_off) for _ in range(count - len(sessions))]
            sessions += [future.result() for future in futures]
        return sessions[:count]

    def describe(self) -> Mapping[str, object]:
        """Kernel, QEMU and all arguments that make up the machine."""
        description: dict[str, object] = {"file_system": self.options.file_system, "host": platform.platform()}
        if self.options.rules_off:
            description["rules_switched_off"] = sorted(self.options.rules_off)
        if self._started is not None:
            kernel = self._started.kernel
            description |= {
                "kernel": kernel.release,
                "kernel_source": kernel.source,
                "kernel_sha256": kernel.sha256,
                "kernel_command_line": self._started.snapshot.command_line,
                "qemu": self._started.emulator.version,
                "qemu_arguments": hardware_arguments(self._started.snapshot.core_count),
            }
        return description

    def close(self) -> None:
        """Ends all sessions; may be called twice, and while a session runs in another thread."""
        for session in self._sessions:
            session.close()
        started, self._started = self._started, None
        if started is not None:
            started.tracer.close()
