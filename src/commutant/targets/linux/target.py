"""The target `linux`: options, start, sessions, and what is recorded of it."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from commutant.documents import builtins
from commutant.guest import (
    FILE_SYSTEMS,
    LEAST_RAM_BYTES,
    Emulator,
    Guest,
    Hardware,
    Kernel,
    Snapshot,
    default_kernel,
    find_emulator,
    hardware_arguments,
    kernel_of,
    take_snapshot,
    tool_version,
    unpack,
)
from commutant.support import MAX_CALLS_PER_SET, OnProgress, Progress, RunError, UsageError, artifacts
from commutant.targets.counted import COUNTED_OPTIONS, USUAL, Counted, take_counted
from commutant.targets.linux import selftest
from commutant.targets.linux.session import LinuxSession
from commutant.targets.linux.tracing import TracedMachine, TracerFiles
from commutant.targets.names import LENGTH
from commutant.targets.options import CPUS_KEY, Option, cpus, existing_file, number, one_of, read_options, text_of
from commutant.targets.runner import Signature, read_calls, signature

MEMORY_MIB = range(LEAST_RAM_BYTES >> 20, 3073)
"""What a guest's memory may be; the emulator's machine has a hole after the third GiB."""

_WITHOUT_TYPES = (
    "Linux {release} has no type information (CONFIG_DEBUG_INFO_BTF): variables are named by their symbols, objects "
    "not at all; functions and call stacks are as ever"
)

_TEXT_LIMIT = 512
"""Characters; the kernel takes 2048 for the whole command line."""

_PART = rf"(?=.{{1,{_TEXT_LIMIT}}}\Z)(?!.*commutant\.)"
"""What becomes a part of the kernel's command line must not take more than its part."""

_WORDS = re.compile(_PART + r"[!-~]+(?: [!-~]+)*")
_MOUNT_OPTIONS = re.compile(_PART + r"[!-~]+")
_PRINTABLE = f"printable ASCII without 'commutant.', at most {_TEXT_LIMIT} characters"


@dataclass(frozen=True, slots=True)
class LinuxOptions:
    """What the target argument asks for.

    The file system and its mount options; a kernel of the user's own and further words for its command line; virtual
    CPUs that do work, and memory of a guest, where it is not to be as much as is needed; the kernel's vmlinux with
    debug information, for stacks with inlined functions and lines; how long file names are, where they are not to be as
    short as the corpus has them; whether the kernel's security modules are on; ignoring rules switched off.
    """

    file_system: str = "tmpfs"
    mount: str = ""
    kernel: Path | Kernel | None = None
    append: str = ""
    cpus: int | None = None
    memory_mib: int | None = None
    debug: Path | None = None
    names: int | None = None
    security: str = "off"
    counted: Counted = USUAL


OPTIONS = {
    "fs": one_of(*FILE_SYSTEMS),
    "mount": text_of(_MOUNT_OPTIONS, _PRINTABLE, "OPTIONS"),
    "kernel": Option("PATH", kernel_of),
    "debug": existing_file("a vmlinux with debug information"),
    "append": text_of(_WORDS, _PRINTABLE, "WORDS"),
    CPUS_KEY: cpus(low=2),
    "names": LENGTH,
    "security": one_of("off", "on"),
    "memory": number(MEMORY_MIB.start, MEMORY_MIB.stop - 1),
}
_FIELDS = {"fs": "file_system", "memory": "memory_mib"}
"""Fields of `LinuxOptions` that have another name than their key."""


def parse_options(argument: str, options: Mapping[str, str]) -> LinuxOptions:
    """The options of a target argument; raises UsageError for a key or value that there is not."""
    given, counted = take_counted(argument, options)
    read = read_options(argument, given, OPTIONS, *COUNTED_OPTIONS)
    return LinuxOptions(counted=counted, **{_FIELDS.get(key, key): value for key, value in read.items()})


@dataclass(frozen=True, slots=True)
class _Started:
    """What sessions share."""

    emulator: Emulator
    snapshot: Snapshot
    tracer: TracerFiles


class LinuxTarget:
    """Linux in virtual machines; see `commutant.targets.base.Target`."""

    def __init__(self, argument: str, options: LinuxOptions) -> None:
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

    def start(self, on_progress: OnProgress, core_count: int) -> None:
        """Finds QEMU and kernel, boots once (or takes the snapshot of an earlier run), and runs the self-test."""
        if core_count > MAX_CALLS_PER_SET:
            raise UsageError(f"a test has {core_count} calls: expected at most {MAX_CALLS_PER_SET} on the target linux")
        if self.options.cpus is not None and self.options.cpus < core_count:
            raise UsageError(f"a test has {core_count} calls: expected cpus={core_count} or more in {self.argument}")
        emulator = find_emulator()
        guest = self.guest(core_count)
        snapshot = take_snapshot(emulator, guest, on_progress)
        self._started = _Started(emulator, snapshot, TracerFiles.prepare(snapshot, debug=self.options.debug))
        on_progress(Progress(text="checking the tracer"))
        try:
            session = self._new_session(USUAL)
            selftest.check(session, types=self._started.tracer.types)
        except BaseException:
            self.close()
            raise
        if self.options.counted != USUAL:
            session.close()
        else:
            self._spare = session

    def guest(self, core_count: int) -> Guest:
        """What is booted for tests of this many calls."""
        file_system = FILE_SYSTEMS[self.options.file_system]
        return Guest(
            kernel=self._kernel(),
            runner=artifacts.runner_path(),
            hardware=Hardware(
                core_count=self.options.cpus or max(core_count, 2),
                memory_mib=self.options.memory_mib or file_system.memory_mib,
            ),
            file_system=file_system,
            mount_options=self.options.mount,
            parameters=self.options.append,
            security_modules=self.options.security == "on",
        )

    def _kernel(self) -> Kernel:
        kernel = self.options.kernel or default_kernel()
        return unpack(kernel) if isinstance(kernel, Path) else kernel

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that sessions resume from; None before the start."""
        return self._started.snapshot if self._started else None

    def _new_session(self, counted: Counted) -> LinuxSession:
        started = self._started
        if started is None:
            raise RunError("the target linux has not been started")
        session = LinuxSession(
            lambda: TracedMachine(started.snapshot, started.emulator, started.tracer, counted), self.options.names
        )
        self._sessions.append(session)
        return session

    def sessions(self, count: int) -> Sequence[LinuxSession]:
        """Starts `count` virtual machines, several at a time; the one of the self-test is among them."""
        spare, self._spare = self._spare, None
        sessions = [spare] if spare else []
        with ThreadPoolExecutor(max(1, count)) as starters:
            futures = [starters.submit(self._new_session, self.options.counted) for _ in range(count - len(sessions))]
            sessions += [future.result() for future in futures]
        return sessions[:count]

    def reseeded(self) -> Sequence[LinuxTarget]:
        """None: a kernel draws the seeds of its hash tables at boot, and all sessions start from one snapshot."""
        return ()

    def describe(self) -> Mapping[str, object]:
        """Kernel, QEMU and all arguments that make up the machine."""
        description: dict[str, object] = {"file_system": self.options.file_system, "host": platform.platform()}
        description |= self.options.counted.described()
        if self.options.names is not None:
            description["name_length"] = self.options.names
        if self.options.debug is not None:
            description["debug_information"] = str(self.options.debug)
        if self._started is not None:
            guest = self._started.snapshot.guest
            description |= {
                "kernel": guest.kernel.release,
                "kernel_source": guest.kernel.source,
                "kernel_sha256": guest.kernel.sha256,
                "kernel_modules": {name: guest.kernel.modules[name] for name in guest.modules},
                "kernel_command_line": guest.command_line,
                "disk": tool_version(guest.file_system),
                "cpus": guest.hardware.core_count,
                "memory_mib": guest.hardware.memory_mib,
                "qemu": self._started.emulator.version,
                "qemu_arguments": hardware_arguments(self._started.emulator, guest.hardware),
            }
            if guest.kernel.built:
                description["kernel_build"] = builtins(guest.kernel.built)
            without_types = "" if self._started.tracer.types else _WITHOUT_TYPES.format(release=guest.kernel.release)
            if limits := "; ".join(filter(None, [self._started.emulator.untested, without_types])):
                description["limits"] = limits
        return description

    def close(self) -> None:
        """Ends all sessions; may be called twice, and while a session runs in another thread."""
        for session in self._sessions:
            session.close()
        self._sessions.clear()
        started, self._started = self._started, None
        if started is not None:
            started.tracer.close()
