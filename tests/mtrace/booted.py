"""A machine that boots a program of a test's own as its init, with the tracer."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from commutant.guest.cpio import initramfs
from commutant.guest.emulator import Emulator, find_emulator
from commutant.guest.kernel import default_kernel
from commutant.guest.machine import Hardware, processor
from commutant.guest.snapshot import Guest as RunnerGuest
from commutant.guest.snapshot import take_snapshot
from commutant.mtrace.trace import TraceReader, kernel_layout, kernel_names
from commutant.support import artifacts

# no_timer_check: on a loaded machine the emulated timer's ticks come too late for the check, which panics.
COMMAND_LINE = (
    "console=ttyS0 quiet nokaslr slab_nomerge lsm=capability apparmor=0 mitigations=off no_timer_check panic=-1"
)
RULES = ("runner", "interrupt", "softirq", "other_task", "allocation_clear", "device_memory")


@dataclass(frozen=True)
class Guest:
    """All that QEMU needs to boot the planted init, as files."""

    emulator: Emulator
    folder: Path
    kallsyms: bytes
    btf: bytes

    def boot(self, name: str, rules: str) -> tuple[Path, list[str]]:
        """Boots once and gives the trace and the scenarios; `rules` is `on` or `off`, for all of them."""
        trace, done = self.run(name, rules, "single")
        console = done.stdout.splitlines()
        assert done.returncode == 0 and "done" in console, (done.stderr, console)
        return trace, [line.removeprefix("scenario ") for line in console if line.startswith("scenario ")]

    def run(self, name: str, rules: str, threads: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
        """Runs QEMU once, with one thread for all virtual CPUs (`single`) or with one each (`multi`)."""
        trace, ram = self.folder / f"{name}.trace", self.folder / f"{name}.ram"
        plugin = [f"{artifacts.plugin_path()}", f"out={trace}", f"layout={self.folder / 'layout'}", f"ram={ram}"]
        plugin += [f"ignore_{rule}={rules}" for rule in RULES]
        command = [
            *(self.emulator.path, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"),
            *("-machine", "pc,hpet=off,memory-backend=ram", "-accel", f"tcg,thread={threads}"),
            *("-cpu", processor(self.emulator)),
            *("-smp", "3", "-m", "256", "-serial", "stdio"),
            *("-object", f"memory-backend-file,id=ram,size=256M,mem-path={ram},share=on"),
            *("-kernel", str(self.folder / "vmlinux"), "-initrd", str(self.folder / "initramfs")),
            *("-append", COMMAND_LINE),
            *("-plugin", ",".join(plugin)),
        ]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        return trace, done

    def reader(self, trace: BinaryIO) -> TraceReader:
        """Reads a trace with this kernel's names."""
        return TraceReader(trace.fileno(), kernel_names(self.kallsyms, self.btf))


def guest_of(folder: Path, source: Path) -> Guest:
    """A machine with the default kernel whose init is compiled from that source."""
    emulator, kernel = find_emulator(), default_kernel()
    # The kernel's symbols, which a guest alone can tell: those of the target's own snapshot, of the same kernel.
    snapshot = take_snapshot(emulator, RunnerGuest(kernel, artifacts.runner_path(), Hardware(2)), print)
    init = folder / "init"
    compiler = ["gcc", "-O1", "-static", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", str(init), str(source)]
    subprocess.run(compiler, check=True)
    kallsyms, btf = snapshot.kallsyms.read_bytes(), snapshot.btf.read_bytes()
    (folder / "layout").write_text(kernel_layout(kallsyms, btf))
    (folder / "vmlinux").write_bytes(kernel.read())
    (folder / "initramfs").write_bytes(initramfs(init.read_bytes()))
    return Guest(emulator, folder, kallsyms, btf)
