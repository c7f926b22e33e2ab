"""A booted guest, kept in the cache folder, so that booting is paid for once.

A snapshot is the machine's state just before its first batch, together with the kernel's symbols as the guest has them
and its types. It stands under a hash of all that it depends on: kernel, runner, QEMU and the machine's arguments. Its
files are checked against their SHA-256 before they are used; a damaged snapshot is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from commutant.errors import RunError
from commutant.targets.linux import region
from commutant.targets.linux.cpio import initramfs
from commutant.targets.linux.elf import Elf
from commutant.targets.linux.emulator import Emulator
from commutant.targets.linux.kernel import Kernel
from commutant.targets.linux.machine import Boot, Machine, MakeTracer, Resume, hardware_arguments
from commutant.targets.linux.ram_image import Run, load_ram, save_ram

_FORMAT = 2
_BOOT_SECONDS = 120.0
_FILES = ("state", "ram", "kallsyms", "btf")
_KEPT = 6
"""Snapshots in the cache folder, of about 100 MB each."""

_RESUMED_SECONDS = 3600.0
"""Whoever looked at a snapshot has opened its files by then."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checked snapshot. `kallsyms` and `btf` are files as in the guest's /proc/kallsyms and
    /sys/kernel/btf/vmlinux."""

    folder: Path
    command_line: str
    core_count: int

    @property
    def kallsyms(self) -> Path:
        """The kernel's symbols."""
        return self.folder / "kallsyms"

    @property
    def btf(self) -> Path:
        """The kernel's types, as raw BTF."""
        return self.folder / "btf"

    def resume(self, emulator: Emulator, make_tracer: MakeTracer | None = None) -> Machine:
        """A machine that goes on from the snapshot; raises RunError if it does not come up."""
        with contextlib.ExitStack() as stack:
            try:
                runs = [(int(offset), int(length)) for offset, length in _description(self.folder)["ram_runs"]]
                ram = stack.enter_context((self.folder / "ram").open("rb", buffering=0))
                state = stack.enter_context((self.folder / "state").open("rb", buffering=0))
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise RunError(f"{self.folder}: damaged ({error}); run the command again") from None
            start = Resume(state.fileno(), lambda descriptor: load_ram(ram.fileno(), runs, descriptor))
            machine = Machine(emulator, self.core_count, start, make_tracer)
            try:
                machine.load(start)
                if not machine.region.ready:
                    raise machine.failure("the snapshot holds no guest that is ready")
            except BaseException:
                machine.close()
                raise
            return machine


def command_line(file_system: str) -> str:
    """The kernel's command line: why each option is there.

    nokaslr: symbols have the addresses of kallsyms. slab_nomerge: a slab cache holds one type, so its name tells it.
    lsm=, apparmor=0, mitigations=off: no lines of security modules and no code of mitigations in the windows.
    init_on_alloc=0: memory that nobody asked to have cleared is not; such lines are ignored anyway, and take a fifth of
    the time.
    nopku: no protection keys, whose restoring behind a signal makes the emulator forget all page translations.
    nowatchdog: no timers of lock-up detectors. no_timer_check, tsc=reliable: no doubts about clocks on a busy host.
    panic=-1 with -no-reboot and oops=panic: a guest in trouble ends at once.
    """
    return (
        "console=ttyS0 quiet nokaslr slab_nomerge lsm=capability apparmor=0 mitigations=off init_on_alloc=0 "
        "nopku nowatchdog no_timer_check tsc=reliable panic=-1 oops=panic "
        f"memmap={region.SIZE_BYTES:#x}${region.ADDRESS:#x} "
        f"commutant.region={region.ADDRESS:#x},{region.SIZE_BYTES:#x} "
        f"commutant.fs={file_system}"
    )


def take_snapshot(
    emulator: Emulator, kernel: Kernel, runner: Path, core_count: int, file_system: str, progress: Callable[[str], None]
) -> Snapshot:
    """The snapshot for this kernel, runner, QEMU and file system: from the cache folder, or booted and put there.

    Raises RunError if the guest does not come up in time, or the cache folder cannot be written.
    """
    try:
        runner_image = runner.read_bytes()
    except OSError as error:
        raise RunError(f"{runner}: {error.strerror}; run `make setup` again") from None
    line = command_line(file_system)
    key = json.dumps(
        [
            *(_FORMAT, kernel.sha256, hashlib.sha256(runner_image).hexdigest()),
            *(emulator.version, hardware_arguments(core_count), line),
        ]
    )
    folder = platformdirs.user_cache_path("commutant") / "snapshots" / hashlib.sha256(key.encode()).hexdigest()[:24]
    snapshot = Snapshot(folder, line, core_count)
    with _locked(folder):
        if is_whole(folder):
            os.utime(folder)  # used now, says `_forget_old`
        else:
            progress(f"booting Linux {kernel.release}")
            _make(folder, emulator, kernel, runner_image, core_count, line)
    return snapshot


@contextlib.contextmanager
def _locked(folder: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Only one program at a time looks at or makes a snapshot; the lock goes with the program, however it ends."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RunError(f"{folder.parent}: {error.strerror}; make it writable, or set XDG_CACHE_HOME") from None
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def _description(folder: Path) -> dict[str, Any]:
    """What stands in a snapshot's description; OSError, ValueError or TypeError if it is none."""
    description = json.loads((folder / "snapshot.json").read_text())
    if not isinstance(description, dict) or description.get("format") != _FORMAT:
        raise ValueError("its description is none, or another version's")
    return description


def is_whole(folder: Path) -> bool:
    """Whether all files of a snapshot are there, each with the size and SHA-256 that its description tells."""
    try:
        digests = _description(folder)["sha256"]
        for name in _FILES:
            with (folder / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != digests[name]:
                    return False
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True


def _make(folder: Path, emulator: Emulator, kernel: Kernel, runner_image: bytes, core_count: int, line: str) -> None:
    """Boots a guest and puts its snapshot into `folder`, all or nothing."""
    for abandoned in folder.parent.glob(f"{folder.name}.*.part"):
        shutil.rmtree(abandoned, ignore_errors=True)  # of a program that was killed: we hold the lock
    vmlinux = kernel.read()
    btf = Elf(vmlinux, str(kernel.vmlinux)).section(".BTF")
    assert btf, "checked when the kernel was unpacked"
    try:
        part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".part", dir=folder.parent))
        try:
            (part / "btf").write_bytes(btf)
            kallsyms, runs = _boot_and_save(emulator, vmlinux, runner_image, core_count, line, part)
            (part / "kallsyms").write_bytes(kallsyms)
            digests = {name: hashlib.sha256((part / name).read_bytes()).hexdigest() for name in _FILES}
            description = {"format": _FORMAT, "kernel": kernel.release, "qemu": emulator.version}
            (part / "snapshot.json").write_text(json.dumps({**description, "sha256": digests, "ram_runs": runs}))
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
            _forget_old(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror}; free 200 MiB there") from None


def _boot_and_save(
    emulator: Emulator, vmlinux: bytes, runner_image: bytes, core_count: int, line: str, folder: Path
) -> tuple[bytes, list[Run]]:
    """Boots, saves the machine to files, and returns the kernel's symbols and where the saved RAM belongs."""
    with contextlib.ExitStack() as stack:
        kernel_file = _anonymous_file(stack, "commutant-vmlinux", vmlinux)
        archive_file = _anonymous_file(stack, "commutant-initramfs", initramfs(runner_image))
        machine = stack.enter_context(Machine(emulator, core_count, Boot(kernel_file, archive_file, line)))
        machine.wait(lambda: machine.region.exporting, "booting Linux", _BOOT_SECONDS)
        kallsyms = machine.region.take_export()
        machine.wait(lambda: machine.region.ready, "starting the runner in the guest", _BOOT_SECONDS)
        with (folder / "state").open("wb") as file:
            machine.save(file.fileno())
        with (folder / "ram").open("wb") as file:
            return kallsyms, save_ram(machine.ram_descriptor, file)


def _forget_old(folder: Path) -> None:
    """Removes snapshots that have not been used for longest: each build of the runner has its own.

    Those that another program looks at or makes, or has just looked at and may be about to resume, stay.
    """
    others = []
    for path in folder.parent.iterdir():
        if path.is_dir() and path.suffix != ".part" and path != folder:
            with contextlib.suppress(OSError):  # another program was faster
                others.append((path.stat().st_mtime, path))
    for used, old in sorted(others)[: -(_KEPT - 1)]:
        if used < time.time() - _RESUMED_SECONDS:
            with contextlib.suppress(BlockingIOError), _locked(old, fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(old, ignore_errors=True)


def _anonymous_file(stack: contextlib.ExitStack, name: str, content: bytes) -> int:
    descriptor = os.memfd_create(name)
    stack.callback(os.close, descriptor)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    return descriptor
