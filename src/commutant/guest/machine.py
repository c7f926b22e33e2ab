"""One virtual machine: a QEMU process that reaches nothing of the host but a few descriptors given to it.

Its RAM is an anonymous file that the host maps too; monitor, doorbell and trace are sockets and a pipe without a name;
its console is written to another anonymous file. So there are no files to clean up and nothing that another user could
open. It has no network, no disk, no display, and runs under QEMU's seccomp sandbox. It is killed by the kernel when
this program ends, however that happens.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from commutant.guest.emulator import Emulator
from commutant.guest.qmp import Monitor
from commutant.guest.region import Region
from commutant.support import RunError, start_program

_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
_CONSOLE_TAIL_BYTES = 4000
_MONITOR_SECONDS = 30.0
_EXIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Boot:
    """Start from the kernel: descriptors of vmlinux and initramfs, and the kernel's command line."""

    vmlinux: int
    initramfs: int
    command_line: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Start from a saved machine; `Machine.load` then reads it.

    `state` is the descriptor of the file of its devices' state, at its beginning; `fill_ram` fills the RAM whose
    descriptor it is given.
    """

    state: int
    fill_ram: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Tracer:
    """The plugin that traces: the argument of `-plugin`, and descriptors that it inherits."""

    argument: str
    descriptors: tuple[int, ...]


MakeTracer = Callable[[int], Tracer]
"""Makes the tracer for a machine, given the descriptor of its RAM, which the plugin inherits too."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a machine is made of: a virtual CPU for each call under test, and one for the homes of their processes.

    More are not of use: the emulator visits all of them in turn, so each that is idle slows the others.
    """

    core_count: int
    memory_mib: int = 512

    @property
    def memory_bytes(self) -> int:
        """The size of its RAM."""
        return self.memory_mib << 20


_PROCESSOR = "max,family=15,model=107,stepping=1,-erms,-fsrm"
_NEWER_STRINGS = ",-fzrm,-fsrs,-fsrc"
_KNOWS_NEWER_STRINGS = (9, 0)


def processor(emulator: Emulator) -> str:
    """The argument of `-cpu`: the same processor from every version of QEMU.

    `max` is of another family from one version to the next, by which Linux chooses how it copies memory. Fast string
    instructions are off, since one of them would be one access of many lines; older versions do not know the newer.
    """
    return _PROCESSOR + (_NEWER_STRINGS if emulator.number >= _KNOWS_NEWER_STRINGS else "")


def hardware_arguments(emulator: Emulator, hardware: Hardware) -> list[str]:
    """The arguments that make up the machine and must be the same for a snapshot and its resumption."""
    return [
        *("-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-nic", "none"),
        *("-machine", "pc,memory-backend=ram,hpet=off", "-accel", "tcg,thread=single", "-cpu", processor(emulator)),
        *("-smp", str(hardware.core_count + 1), "-m", str(hardware.memory_mib)),
    ]


class GuestStopped(RunError):
    """The guest ended by itself: its kernel panicked."""


class GuestSilent(RunError):
    """Nothing came from the guest for the time that was allowed."""


class Machine:
    """A running virtual machine. Use as a context manager, or close it."""

    def __init__(
        self, emulator: Emulator, hardware: Hardware, start: Boot | Resume, make_tracer: MakeTracer | None = None
    ) -> None:
        """Starts QEMU; raises RunError if it does not start. Descriptors that were given stay the caller's."""
        with contextlib.ExitStack() as stack:
            self.ram_descriptor = _memory_file(stack, "commutant-ram", hardware.memory_bytes)
            self._console = _memory_file(stack, "commutant-console", 0)
            self._messages = _memory_file(stack, "commutant-qemu", 0)
            doorbell, far_doorbell = _socket_pair(stack)
            monitor, far_monitor = _socket_pair(stack)
            self._doorbell = doorbell
            self.region = Region(self.ram_descriptor)
            stack.callback(self.region.close)
            passed = [self.ram_descriptor, self._console, far_doorbell.fileno(), far_monitor.fileno()]
            passed += [start.state] if isinstance(start, Resume) else [start.vmlinux, start.initramfs]
            tracer = make_tracer(self.ram_descriptor) if make_tracer else None
            passed += tracer.descriptors if tracer else ()
            command = [
                *(emulator.path, "-name", "commutant", *hardware_arguments(emulator, hardware)),
                *("-sandbox", _SANDBOX),
                "-object",
                f"memory-backend-file,id=ram,size={hardware.memory_bytes},mem-path=/proc/self/fd/{self.ram_descriptor},share=on",
                *("-chardev", f"file,id=console,path=/proc/self/fd/{self._console}", "-serial", "chardev:console"),
                *("-chardev", f"socket,id=doorbell,fd={far_doorbell.fileno()}", "-serial", "chardev:doorbell"),
                *("-chardev", f"socket,id=monitor,fd={far_monitor.fileno()}", "-mon", "chardev=monitor,mode=control"),
            ]
            if isinstance(start, Resume):
                command += ["-incoming", "defer"]
            else:
                command += ["-kernel", f"/proc/self/fd/{start.vmlinux}"]
                command += ["-initrd", f"/proc/self/fd/{start.initramfs}", "-append", start.command_line]
            if tracer:
                command += ["-plugin", tracer.argument]
            self._process = start_program(command, passed=passed, output=self._messages, messages=self._messages)
            stack.callback(self._kill)
            far_doorbell.close()
            far_monitor.close()
            self._monitor_socket = monitor
            self._monitor: Monitor | None = None
            self._resources = stack.pop_all()

    def __enter__(self) -> Machine:
        """The machine itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the machine."""
        self.close()

    def close(self) -> None:
        """Kills QEMU and frees all; may be called twice and from another thread."""
        self._resources.close()

    def kill(self) -> None:
        """Kills QEMU but keeps console and memory readable: a thread that waits for it learns that it ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _kill(self) -> None:
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)

    @property
    def process_id(self) -> int:
        """The id of the QEMU process."""
        return self._process.pid

    @property
    def monitor(self) -> Monitor:
        """QEMU's monitor, connected on first use; raises RunError if QEMU does not answer."""
        if self._monitor is None:
            try:
                self._monitor = Monitor(self._monitor_socket, _MONITOR_SECONDS)
            except RunError as error:
                raise self.failure(str(error)) from None
        return self._monitor

    def save(self, descriptor: int) -> None:
        """Stops the machine and writes the state of its devices to a file; its RAM then keeps still, for anyone who
        wants it saved too. Raises RunError.
        """
        # Stopped first: QEMU can save a running machine, but under TCG a page written in the meantime may be missed.
        self.monitor.execute("stop")
        self._prepare_migration()
        self.monitor.execute("getfd", {"fdname": "state"}, descriptor)
        self.monitor.execute("migrate", {"uri": "fd:state"})
        self.monitor.wait_for_migration()

    def load(self, start: Resume) -> None:
        """Reads a saved machine into one that was started for that, and lets it run; raises RunError."""
        start.fill_ram(self.ram_descriptor)  # while QEMU gets itself ready
        self._prepare_migration()
        self.monitor.execute("migrate-incoming", {"uri": f"fd:{start.state}"})
        self.monitor.wait_for_migration()
        self.monitor.execute("cont")

    def _prepare_migration(self) -> None:
        """Has QEMU tell when it is done, and leave out RAM that is shared with us."""
        wanted = [{"capability": name, "state": True} for name in ("events", "x-ignore-shared")]
        self.monitor.execute("migrate-set-capabilities", {"capabilities": wanted})

    def wait(self, condition: Callable[[], bool], what: str, timeout_seconds: float) -> None:
        """Waits until `condition` holds, looking whenever the guest rings.

        `what` says what is waited for. Raises, with the console's last lines, GuestStopped if the guest ends by itself,
        RunError if QEMU ends otherwise, GuestSilent after `timeout_seconds`.
        """
        deadline = time.monotonic() + timeout_seconds
        poll = select.poll()
        poll.register(self._doorbell, select.POLLIN)
        while not condition():
            left_seconds = deadline - time.monotonic()
            if left_seconds <= 0:
                raise self.failure(f"{what}: nothing after {timeout_seconds:g} s", GuestSilent)
            if poll.poll(left_seconds * 1000):
                self._hear(what)

    def _hear(self, what: str) -> None:
        """Takes all rings; raises RunError if QEMU has closed its end."""
        try:
            rings = self._doorbell.recv(4096)
        except ConnectionError:
            rings = b""
        if not rings:
            raise self.ended(what)

    def has_ended(self) -> bool:
        """Whether QEMU has ended, or is ending."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        return self._process.poll() is not None

    def ended(self, what: str) -> RunError:
        """The error for a machine that has ended: `GuestStopped` if the guest did it, else RunError."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        code = self._process.poll()
        if code == 0:
            return self.failure(f"{what}: the guest stopped", GuestStopped)
        if code is None:
            return self.failure(f"{what}: QEMU closed the doorbell")
        if code < 0:
            return self.failure(f"{what}: QEMU (process {self.process_id}) was killed by signal {-code}")
        return self.failure(f"{what}: QEMU exited with code {code}")

    def failure(self, what: str, kind: type[RunError] = RunError) -> RunError:
        """An error about this machine, with what QEMU said and the last lines of the console."""
        text = " ".join(_read_all(self._messages).split())[-400:]
        panic = self.panic
        tail = panic or " / ".join(line.strip() for line in self.console.splitlines()[-6:] if line.strip())
        parts = [what, *([f"QEMU says: {text}"] if text else []), *([f"console: {tail}"] if tail else [])]
        return kind("; ".join(parts))

    @property
    def console(self) -> str:
        """The end of what the guest wrote to its console."""
        return _read_all(self._console)[-_CONSOLE_TAIL_BYTES:]

    @property
    def panic(self) -> str | None:
        """The line with which the kernel panicked, and what the runner or the kernel complained of first; None without
        one."""
        lines = [line.strip() for line in _read_all(self._console).splitlines()]
        for number, line in enumerate(lines):
            if "Kernel panic" in line:
                complaints = [text for text in lines[:number] if "commutant-runner:" in text or "BUG:" in text]
                return " / ".join([*complaints[:1], line])
        return None


def _memory_file(stack: contextlib.ExitStack, name: str, size_bytes: int) -> int:
    try:
        descriptor = os.memfd_create(name)
        stack.callback(os.close, descriptor)
        os.ftruncate(descriptor, size_bytes)
    except OSError as error:
        raise RunError(
            f"an anonymous file of {size_bytes >> 20} MiB: {error.strerror}; see `commutant doctor`"
        ) from None
    return descriptor


def _socket_pair(stack: contextlib.ExitStack) -> tuple[socket.socket, socket.socket]:
    try:
        near, far = socket.socketpair()
    except OSError as error:
        raise RunError(f"a pair of sockets: {error.strerror}; see `commutant doctor`") from None
    stack.callback(near.close)
    stack.callback(far.close)
    return near, far


def _read_all(descriptor: int) -> str:
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, size, 0).decode(errors="replace")
    except OSError:
        return ""
