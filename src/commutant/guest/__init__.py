"""A Linux that boots: kernels found and unpacked, virtual machines run and talked to, a booted guest kept.

Used by the target `linux` and by the lock view. `prepare` and `kernel` (with `package`, `tar`, `bzimage`, `elf`,
`modules`) get a kernel, `file_systems` says what one needs and makes its disk, `cpio` packs all that with a first
program, `emulator` (with `versions`), `machine`, `qmp` and `region` run a virtual machine and talk to it, `snapshot`
boots once. `user_emulator` finds the emulator of programs, `fetched_emulator` brings one.
"""

from commutant.guest.cpio import CpioWriter
from commutant.guest.debian import binary_packages, downloaded_package, source_archive
from commutant.guest.emulator import Emulator, find_emulator
from commutant.guest.file_systems import FILE_SYSTEMS, tool_version
from commutant.guest.kept import Kept, forget, kept_kernels
from commutant.guest.kernel import (
    Kernel,
    KernelBuild,
    KernelPatch,
    default_kernel,
    is_package_name,
    keep_built,
    kernel_of,
    unpack,
)
from commutant.guest.machine import GuestSilent, GuestStopped, Hardware, Tracer, hardware_arguments, processor
from commutant.guest.package import open_package, open_sources
from commutant.guest.qmp import Monitor
from commutant.guest.region import BATCH_LIMIT_BYTES, LEAST_RAM_BYTES, SLOT_COUNT, Region
from commutant.guest.snapshot import Guest, Snapshot, take_snapshot
from commutant.guest.tar import Archive
from commutant.guest.user_emulator import find_user_emulator
from commutant.guest.versions import tested_versions


def fetch_emulator() -> Emulator:
    """As `fetched_emulator.fetch_emulator`, imported when it is asked for as below."""
    from commutant.guest.fetched_emulator import fetch_emulator

    return fetch_emulator()


def prepare_kernel(package: str | None = None, *, update: bool = False) -> Kernel:
    """As `prepare.prepare`, which is also a program of its own and so is imported when it is asked for."""
    from commutant.guest.prepare import prepare

    return prepare(package, update=update)


__all__ = [
    "BATCH_LIMIT_BYTES",
    "FILE_SYSTEMS",
    "LEAST_RAM_BYTES",
    "SLOT_COUNT",
    "Archive",
    "CpioWriter",
    "Emulator",
    "Guest",
    "GuestSilent",
    "GuestStopped",
    "Hardware",
    "Kept",
    "Kernel",
    "KernelBuild",
    "KernelPatch",
    "Monitor",
    "Region",
    "Snapshot",
    "Tracer",
    "binary_packages",
    "default_kernel",
    "downloaded_package",
    "fetch_emulator",
    "find_emulator",
    "find_user_emulator",
    "forget",
    "hardware_arguments",
    "is_package_name",
    "keep_built",
    "kept_kernels",
    "kernel_of",
    "open_package",
    "open_sources",
    "prepare_kernel",
    "processor",
    "source_archive",
    "take_snapshot",
    "tested_versions",
    "tool_version",
    "unpack",
]
