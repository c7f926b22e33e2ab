"""Runs a workload in a Linux guest with the lock recorder, and reads what was recorded of the kernel's locks."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from commutant.guest import (
    Emulator,
    Guest,
    Hardware,
    Kernel,
    default_kernel,
    find_emulator,
    kernel_of,
    processor,
    take_snapshot,
    unpack,
)
from commutant.lock_view.record import Recording, read_record
from commutant.lock_view.recording.folder import recording_folder, require_room
from commutant.lock_view.recording.guest_image import BEGUN, ENDED, Workload, build_image
from commutant.support import OnProgress, Progress, RunError, UsageError, artifacts, no_progress, start_program
from commutant.targets import CPUS_KEY, Option, cpus, parse_target, read_options

DEFAULT_WORKLOAD = Path(__file__).parent / "workloads" / "compile.sh"
"""A parallel compilation of libFLAC, as in section 4 of the paper."""

DEFAULT_CPU_COUNT = 4
DEFAULT_TIMEOUT_SECONDS = 900.0
_RAM_BYTES = 2 << 30
_BOOT_SECONDS = 180.0
_LOOK_SECONDS = 0.2
_END_SECONDS = 60.0

_COMMAND_LINE = (
    "console=ttyS0 quiet nokaslr slab_nomerge lsm=capability apparmor=0 mitigations=off nopku nowatchdog "
    "no_timer_check tsc=reliable panic=-1 oops=panic rcupdate.rcu_cpu_stall_suppress=1 noreplace-smp"
)
"""As for the guests that run tests (targets/linux/snapshot.py), where each option's reason stands; and no complaints of
RCU about a slow guest. noreplace-smp: with one processor, too, locks are taken by atomic instructions, from which the
recorder knows them."""


@dataclass(frozen=True, slots=True)
class KernelTarget:
    """What is booted: Debian's kernel or a given one, with this many virtual CPUs."""

    kernel: Path | Kernel | None = None
    cpu_count: int = DEFAULT_CPU_COUNT

    @classmethod
    def parse(cls, argument: str) -> KernelTarget:
        """Reads `linux`, `linux:cpus=8` or `linux:kernel=PATH`; raises UsageError."""
        name, options = parse_target(argument)
        if name != "linux":
            raise UsageError(f"expected the target linux, got {name}: only its locks are those of a kernel")
        read = read_options(argument, options, {"kernel": Option("PATH", kernel_of), CPUS_KEY: cpus()})
        return cls(read.get("kernel"), read.get(CPUS_KEY, DEFAULT_CPU_COUNT))


@dataclass(frozen=True, slots=True)
class KernelRun:
    """What was recorded of a kernel, with the files that name its code, and how long its workload took.

    `timed_out` if it was stopped before its end; `console` is what the guest wrote there."""

    record: Recording
    kallsyms: Path
    btf: Path
    release: str
    cpu_count: int
    workload: str
    workload_seconds: float
    timed_out: bool
    console: str


def record_kernel(
    workload: Workload,
    target: KernelTarget = KernelTarget(),
    *,
    window_sections: int = 128,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    on_progress: OnProgress = no_progress,
) -> KernelRun:
    """Boots a guest with a root file system made for the workload, records its locks while the workload runs, and reads
    the record.

    A workload that does not end within `timeout_seconds` is stopped, and what was recorded until then is read. Raises
    UsageError for a kernel that is none, RunError if the workload or the guest fails.
    """
    emulator = find_emulator()
    kernel = target.kernel or default_kernel()
    if isinstance(kernel, Path):
        kernel = unpack(kernel)
    cpu_count = target.cpu_count
    snapshot = take_snapshot(emulator, Guest(kernel, artifacts.runner_path(), Hardware(2)), on_progress)
    on_progress(Progress(text=f"unpacking Debian packages for {workload.name}"))
    image = build_image(workload)
    with recording_folder() as folder:
        out = folder / "record.json"
        arguments = {
            "out": out,
            "window": window_sections,
            "kallsyms": snapshot.kallsyms,
            "btf": snapshot.btf,
        }
        with _Guest(emulator, kernel, image, cpu_count, arguments) as guest:
            on_progress(Progress(text=f"booting Linux {kernel.release}"))
            guest.wait_for(BEGUN, _BOOT_SECONDS, "the guest does not reach its workload")
            on_progress(Progress(text=f"running {workload.name}"))
            started = time.monotonic()
            try:
                line = guest.wait_for(ENDED, timeout_seconds, "")
                timed_out = False
            except TimeoutError:
                timed_out = True
            seconds = time.monotonic() - started
            if timed_out:
                guest.ask_to_end()
            elif line != "0":
                raise RunError(
                    f"{workload.name}: the workload ended with exit code {line}; its output: {guest.messages(BEGUN)}"
                )
            guest.wait_for_end()
        if not out.exists():
            require_room(out)
            raise RunError(f"{workload.name}: nothing was recorded; console: {guest.messages('')}")
        record = read_record(out)
    return KernelRun(
        record=record,
        kallsyms=snapshot.kallsyms,
        btf=snapshot.btf,
        release=kernel.release,
        cpu_count=cpu_count,
        workload=workload.name,
        workload_seconds=seconds,
        timed_out=timed_out,
        console=guest.console,
    )


class _Guest:
    """A machine with the recorder, all in anonymous files; killed when this program ends, however that happens."""

    def __init__(
        self, emulator: Emulator, kernel: Kernel, image: bytes, cpu_count: int, arguments: dict[str, object]
    ) -> None:
        self._resources = contextlib.ExitStack()
        self._last_console: str | None = None
        try:
            files = {"ram": None, "console": None, "messages": None, "vmlinux": kernel.read(), "initramfs": image}
            self._files = {name: self._anonymous_file(name, content) for name, content in files.items()}
            os.ftruncate(self._files["ram"], _RAM_BYTES)
            path = {name: f"/proc/self/fd/{descriptor}" for name, descriptor in self._files.items()}
            plugin = str(artifacts.locks_plugin_path()).replace(",", ",,")  # doubled, a comma stands for itself
            given = {**arguments, "ram": path["ram"]}
            plugin = ",".join([plugin, *(f"{name}={value}".replace(",", ",,") for name, value in given.items())])
            command = [
                *(emulator.path, "-name", "commutant"),
                *("-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-nic", "none"),
                *("-machine", "pc,memory-backend=ram,hpet=off", "-accel", "tcg,thread=single"),
                *("-cpu", processor(emulator), "-smp", str(cpu_count), "-m", str(_RAM_BYTES >> 20)),
                "-object",
                f"memory-backend-file,id=ram,size={_RAM_BYTES},mem-path={path['ram']},share=on",
                *("-chardev", f"file,id=console,path={path['console']}", "-serial", "chardev:console"),
                *("-kernel", path["vmlinux"], "-initrd", path["initramfs"], "-append", _COMMAND_LINE),
                *("-plugin", plugin),
            ]
            messages = self._files["messages"]
            self._process = start_program(
                command, passed=list(self._files.values()), output=messages, messages=messages
            )
            self._resources.callback(self._end)
        except BaseException:
            self._resources.close()
            raise

    def _anonymous_file(self, name: str, content: bytes | None) -> int:
        descriptor = os.memfd_create(f"commutant-{name}")
        self._resources.callback(os.close, descriptor)
        if content is not None:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(content)
        return descriptor

    def __enter__(self) -> _Guest:
        return self

    def __exit__(self, *_: object) -> None:
        self._last_console = self.console
        self._resources.close()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait(_END_SECONDS)

    @property
    def console(self) -> str:
        """What the guest wrote to its console, also past its end."""
        if self._last_console is not None:
            return self._last_console
        descriptor = self._files["console"]
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")

    def messages(self, behind: str) -> str:
        """The end of what the guest wrote to its console after a text, on one line."""
        text = self.console
        lines = (text.rpartition(behind)[2] if behind else text).splitlines()
        return " / ".join(line.strip() for line in lines if line.strip())[-400:]

    def wait_for(self, text: str, timeout_seconds: float, failure: str) -> str:
        """What stands after `text` on its line of the console, once it is there. Raises RunError if the guest ends
        without it; TimeoutError, or RunError with `failure`, if it takes too long."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            ended = self._process.poll() is not None
            _, found, behind = self.console.partition(text)
            line, newline, _ = behind.partition("\n")
            if found and newline:
                return line.strip()
            if ended:
                raise RunError(self._failure())
            if time.monotonic() > deadline:
                if failure:
                    raise RunError(f"{failure} within {timeout_seconds:g} s; console: {self.messages('')}")
                raise TimeoutError
            time.sleep(_LOOK_SECONDS)

    def _failure(self) -> str:
        descriptor = self._files["messages"]
        text = os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")
        panic = next((line.strip() for line in self.console.splitlines() if "Kernel panic" in line), None)
        if panic:
            return f"the guest stopped: {panic}"
        if text.strip():
            return f"QEMU ended with exit code {self._process.returncode}: {' '.join(text.split())[-400:]}"
        return f"the guest ended before its workload did; console: {self.messages('')}"

    def ask_to_end(self) -> None:
        """Has QEMU end as by itself, so that the recorder writes what it has."""
        self._process.terminate()

    def wait_for_end(self) -> None:
        """Waits until the recorder has written its record. Raises RunError if that takes too long."""
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            raise RunError(f"the recorder does not write its record within {_END_SECONDS:g} s") from None
