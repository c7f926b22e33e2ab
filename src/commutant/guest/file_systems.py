"""The file systems that windows can run on, and what each needs: modules, and a disk made by its own tool.

A disk is made on the host as a file that is almost empty, and only what is not zero goes into the guest (`cpio`), where
it is written to a RAM disk: so a disk may be as large as its file system demands.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commutant.support import RunError, package_advice

DISK_BYTES = 320 << 20
"""xfs asks for 300 MiB, btrfs for 109 MiB."""

DISK_MODULE = "brd"
_BLOCK_BYTES = 4096
_TOOL_SECONDS = 60.0
_UUID = "c0330074-0000-4000-8000-000000000001"
"""The same for every disk, so that hashes which a file system seeds with it are the same in every run."""


@dataclass(frozen=True, slots=True)
class GuestFileSystem:
    """A file system by the name that the kernel mounts it under.

    `package` is the Debian package of `tool`, the command that makes its disk; without one it needs no disk.
    `memory_mib` is what a guest needs to work with it.
    """

    name: str
    modules: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    package: str = ""
    memory_mib: int = 512
    parameters: Mapping[str, str] = field(default_factory=dict)


def _on_disk(name: str, package: str, *tool: str) -> GuestFileSystem:
    parameters = {"brd.rd_nr": "1", "brd.rd_size": str(DISK_BYTES >> 10), "brd.max_part": "0"}
    return GuestFileSystem(name, (DISK_MODULE, name), tool, package, 1024, parameters)


FILE_SYSTEMS = {
    entry.name: entry
    for entry in (
        GuestFileSystem("tmpfs"),
        GuestFileSystem("ramfs"),
        # Tables are zeroed now rather than by a kernel thread later; blocks have the size that larger disks get.
        _on_disk(
            "ext4",
            "e2fsprogs",
            *("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-U", _UUID),
            *("-E", f"hash_seed={_UUID},lazy_itable_init=0,lazy_journal_init=0"),
        ),
        _on_disk("xfs", "xfsprogs", "mkfs.xfs", "-q", "-m", f"uuid={_UUID}"),
        _on_disk("btrfs", "btrfs-progs", "mkfs.btrfs", "-q", "-U", _UUID),
        GuestFileSystem("overlay", ("overlay",)),
    )
}

MODULES = sorted({module for entry in FILE_SYSTEMS.values() for module in entry.modules})
"""All modules that some file system needs; what these need in turn, they say themselves."""

DiskPart = tuple[int, bytes]
"""Bytes of a disk that are not all zero, and their offset."""


def tool_version(file_system: GuestFileSystem) -> str:
    """What the tool that makes the disk says of its version; empty without one. Raises RunError if it is missing."""
    if not file_system.tool:
        return ""
    answer = _run(file_system, [file_system.tool[0], "-V"])
    version = re.search(r"\d+(?:\.\d+)+", answer)
    if version is None:
        raise RunError(f"{file_system.tool[0]} -V: expected a version, got {answer[:60]!r}")
    return f"{file_system.tool[0]} {version[0]}"


def make_disk(file_system: GuestFileSystem) -> list[DiskPart]:
    """An empty disk, as its parts that are not zero; none for a file system without a disk. Raises RunError."""
    if not file_system.tool:
        return []
    with tempfile.TemporaryDirectory(prefix="commutant-disk-") as folder:
        path = Path(folder) / "disk"
        try:
            with path.open("wb") as file:
                file.truncate(DISK_BYTES)
            _run(file_system, [*file_system.tool, str(path)])
            return list(_parts(path))
        except OSError as error:
            raise RunError(f"making a disk for {file_system.name} in {folder}: {error.strerror}") from None


def _run(file_system: GuestFileSystem, command: list[str]) -> str:
    # Tools of an administrator, which are not in every user's PATH; they need none of an administrator's rights.
    path = shutil.which(command[0], path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if path is None:
        raise RunError(f"{command[0]} is not there; {package_advice(file_system.package)}")
    try:
        answer = subprocess.run(
            [path, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TOOL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{path} does not run: {error}") from None
    if answer.returncode != 0:
        reason = " ".join(answer.stdout.split())[-300:] or f"exit code {answer.returncode}"
        raise RunError(f"{' '.join(command)}: {reason}")
    return answer.stdout


def _parts(path: Path) -> Iterator[DiskPart]:
    """Runs of blocks that are not zero; holes of the file are not even read."""
    with path.open("rb", buffering=0) as file:
        start, part = 0, bytearray()
        for offset in _data_blocks(file.fileno()):
            block = os.pread(file.fileno(), _BLOCK_BYTES, offset)
            if not any(block):
                continue
            if start + len(part) != offset:
                if part:
                    yield start, bytes(part)
                start, part = offset, bytearray()
            part += block
        if part:
            yield start, bytes(part)


def _data_blocks(descriptor: int) -> Iterator[int]:
    """Offsets of the blocks that are not in holes."""
    offset, size_bytes = 0, os.fstat(descriptor).st_size
    while offset < size_bytes:
        try:
            data = os.lseek(descriptor, offset, os.SEEK_DATA)
        except OSError:
            return  # ENXIO: holes only from here on
        offset = os.lseek(descriptor, data, os.SEEK_HOLE)
        yield from range(data // _BLOCK_BYTES * _BLOCK_BYTES, offset, _BLOCK_BYTES)
