"""A booted guest, kept in the cache folder, so that booting is paid for once.

A snapshot is the machine's state just before its first batch, together with the kernel's symbols as the guest has them
and its types. It stands under a hash of all that it depends on: kernel, modules, runner, QEMU, the machine's arguments,
and the tool that made its disk. Its files are checked against their SHA-256 before they are used; a damaged snapshot is
made again.
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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from commutant.guest import region
from commutant.guest.cpio import initramfs
from commutant.guest.elf import Elf
from commutant.guest.emulator import Emulator
from commutant.guest.file_systems import FILE_SYSTEMS, GuestFileSystem, make_disk, tool_version
from commutant.guest.kernel import Kernel
from commutant.guest.machine import Boot, Hardware, Machine, MakeTracer, Resume, hardware_arguments
from commutant.guest.ram_image import Run, load_ram, save_ram
from commutant.support import OnProgress, Progress, RunError, UsageError, build_advice

_FORMAT = 3
_BOOT_SECONDS = 120.0
_FILES = ("state", "ram", "kallsyms", "btf")
_MODULE_PREFIX = "btf."
_KEPT = 6
"""Snapshots in the cache folder, of about 100 MB each."""

_RESUMED_SECONDS = 3600.0
"""Those who looked at a snapshot have opened its files by then."""


_COMMAND_LINE = (
    "console=ttyS0 quiet nokaslr slab_nomerge mitigations=off init_on_alloc=0 "
    "nopku nowatchdog no_timer_check tsc=reliable panic=-1 oops=panic "
    f"memmap={region.SIZE_BYTES:#x}${region.ADDRESS:#x} "
    f"commutant.region={region.ADDRESS:#x},{region.SIZE_BYTES:#x}"
)
"""What every guest's kernel is given, and why.

nokaslr: symbols have the addresses of kallsyms. slab_nomerge: a slab cache holds one type, so its name tells it.
mitigations=off: no code of mitigations in the windows.
init_on_alloc=0: memory that no one asked to have cleared is not; such lines are ignored anyway, and take a fifth of
the time.
nopku: no protection keys, whose restoring after a signal makes the emulator forget all page translations.
nowatchdog: no timers of lock-up detectors. no_timer_check, tsc=reliable: no doubts about clocks on a busy host.
panic=-1 with -no-reboot and oops=panic: a guest in trouble ends at once.
"""


_WITHOUT_SECURITY_MODULES = "lsm=capability apparmor=0"
"""Unless they are asked for: no lines of security modules in the windows."""


@dataclass(frozen=True, slots=True)
class Guest:
    """What is booted: a kernel with a runner on a file system that is mounted with `mount_options`, in a machine.

    `parameters` are words for the kernel's command line, after those that every guest gets; with `security_modules`
    those are on that the kernel has by default.
    """

    kernel: Kernel
    runner: Path
    hardware: Hardware
    file_system: GuestFileSystem = FILE_SYSTEMS["tmpfs"]
    mount_options: str = ""
    parameters: str = ""
    security_modules: bool = False

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that the guest loads, in order."""
        return self.kernel.modules_for(self.file_system.modules)

    @property
    def command_line(self) -> str:
        """The kernel's whole command line."""
        words = [_COMMAND_LINE]
        words += [] if self.security_modules else [_WITHOUT_SECURITY_MODULES]
        words += [f"commutant.fs={self.file_system.name}"]
        words += [f"commutant.mount={self.mount_options}"] if self.mount_options else []
        words += [f"{name}={value}" for name, value in self.file_system.parameters.items()]
        return " ".join([*words, self.parameters]).strip()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checked snapshot. `kallsyms` and `btf` are files as in the guest's /proc/kallsyms and
    /sys/kernel/btf/vmlinux."""

    folder: Path
    guest: Guest

    @property
    def kallsyms(self) -> Path:
        """The kernel's symbols."""
        return self.folder / "kallsyms"

    @property
    def btf(self) -> Path:
        """The kernel's types, as raw BTF; an empty file if it has none."""
        return self.folder / "btf"

    @property
    def module_btf(self) -> list[Path]:
        """The types of the modules that the guest has loaded, one file each."""
        return [path for name in self.guest.modules if (path := self.folder / f"{_MODULE_PREFIX}{name}").exists()]

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
            machine = Machine(emulator, self.guest.hardware, start, make_tracer)
            try:
                machine.load(start)
                if not machine.region.ready:
                    raise machine.failure("the snapshot holds no guest that is ready")
            except BaseException:
                machine.close()
                raise
            return machine


def take_snapshot(emulator: Emulator, guest: Guest, on_progress: OnProgress) -> Snapshot:
    """The snapshot for this guest and QEMU: from the cache folder, or booted and put there.

    Raises RunError if the guest does not come up in time, or the cache folder cannot be written, UsageError if the
    kernel does not have the file system.
    """
    try:
        runner_image = guest.runner.read_bytes()
    except OSError as error:
        raise RunError(f"{guest.runner}: {error.strerror}; {build_advice()}") from None
    key = json.dumps(
        [
            *(_FORMAT, guest.kernel.sha256 + guest.kernel.types_sha256, hashlib.sha256(runner_image).hexdigest()),
            *(emulator.version, hardware_arguments(emulator, guest.hardware), guest.command_line),
            [guest.kernel.modules[name] for name in guest.modules],
            *(guest.file_system.tool, tool_version(guest.file_system)),
        ]
    )
    folder = platformdirs.user_cache_path("commutant") / "snapshots" / hashlib.sha256(key.encode()).hexdigest()[:24]
    snapshot = Snapshot(folder, guest)
    with _locked(folder):
        if is_whole(folder):
            os.utime(folder)  # used now, says `_forget_old`
        else:
            on_progress(Progress(text=f"booting Linux {guest.kernel.release} with {guest.file_system.name}"))
            _make(folder, emulator, guest, runner_image)
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
        if not digests.keys() >= set(_FILES):
            return False
        for name in digests:
            with (folder / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != digests[name]:
                    return False
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return True


def _make(folder: Path, emulator: Emulator, guest: Guest, runner_image: bytes) -> None:
    """Boots a guest and puts its snapshot into `folder`, all or nothing."""
    for abandoned in folder.parent.glob(f"{folder.name}.*.part"):
        shutil.rmtree(abandoned, ignore_errors=True)  # of a program that was killed: we hold the lock
    kernel = guest.kernel
    vmlinux = kernel.read()
    modules = [(name, kernel.read_module(name)) for name in guest.modules]
    files = {"btf": kernel.read_types()}
    for name, image in modules if files["btf"] else ():
        if types := Elf(image, name).section(".BTF"):
            files[f"{_MODULE_PREFIX}{name}"] = types
    archive = initramfs(runner_image, modules, make_disk(guest.file_system))
    try:
        part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".part", dir=folder.parent))
        try:
            files["kallsyms"], runs = _boot_and_save(emulator, guest, vmlinux, archive, part)
            for name, content in files.items():
                (part / name).write_bytes(content)
            names = {*_FILES, *files}
            digests = {name: hashlib.sha256((part / name).read_bytes()).hexdigest() for name in names}
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
    emulator: Emulator, guest: Guest, vmlinux: bytes, archive: bytes, folder: Path
) -> tuple[bytes, list[Run]]:
    """Boots, saves the machine to files, and returns the kernel's symbols and where the saved RAM belongs."""
    with contextlib.ExitStack() as stack:
        kernel_file = _anonymous_file(stack, "commutant-vmlinux", vmlinux)
        archive_file = _anonymous_file(stack, "commutant-initramfs", archive)
        start = Boot(kernel_file, archive_file, guest.command_line)
        machine = stack.enter_context(Machine(emulator, guest.hardware, start))
        machine.wait(lambda: machine.region.exporting, "booting Linux", _BOOT_SECONDS)
        _require_file_system(guest, machine.region.take_export())
        mounting = f"mounting {guest.file_system.name} in the guest"
        machine.wait(lambda: machine.region.exporting, mounting, _BOOT_SECONDS)
        kallsyms = machine.region.take_export()
        machine.wait(lambda: machine.region.ready, "starting the runner in the guest", _BOOT_SECONDS)
        with (folder / "state").open("wb") as file:
            machine.save(file.fileno())
        with (folder / "ram").open("wb") as file:
            return kallsyms, save_ram(machine.ram_descriptor, file)


def _require_file_system(guest: Guest, known: bytes) -> None:
    """Raises UsageError unless the file system is among those that the guest knows, the text of /proc/filesystems."""
    wanted = guest.file_system.name
    if wanted.encode() not in known.split():
        raise UsageError(
            f"Linux {guest.kernel.release} ({guest.kernel.source}) does not have the file system {wanted}: it is "
            "no part of it, and no module came with it; expected a kernel that has it, or a package with its module"
        )


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
