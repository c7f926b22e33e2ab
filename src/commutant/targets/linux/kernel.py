"""The kernel under test: found, unpacked, checked, and kept in the user's cache folder.

The default is the one that Debian's `linux-image-amd64` depends on: downloaded as a package by `prepare` and unpacked,
never installed. A kernel of one's own is given as a bzImage, a vmlinux or a Debian package. Either way a vmlinux with a
description beside it is kept, under the SHA-256 of the file it came from, so that nothing is unpacked twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tarfile
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

from commutant.errors import RunError, UsageError
from commutant.targets.linux.bzimage import VMLINUX_LIMIT_BYTES, extract_vmlinux
from commutant.targets.linux.elf import Elf
from commutant.targets.linux.files import replace_file

_FORMAT = 1
_DEFAULT = "default.json"
_VERSION = re.compile(rb"Linux version ([!-~]{1,64}) ")
_FILE_LIMIT_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that can be started: its release (`uname -r`), where it came from, and the checked vmlinux."""

    release: str
    source: str
    vmlinux: Path
    sha256: str
    size_bytes: int

    def read(self) -> bytes:
        """The vmlinux; raises RunError if the file has changed since it was unpacked."""
        try:
            data = self.vmlinux.read_bytes()
        except OSError as error:
            raise RunError(f"{self.vmlinux}: {error.strerror}; run `make setup` again") from None
        if len(data) != self.size_bytes or hashlib.sha256(data).hexdigest() != self.sha256:
            remedy = f"delete {self.vmlinux.parent} and run `make setup` again"
            raise RunError(f"{self.vmlinux}: not the kernel that was unpacked there (its SHA-256 differs); {remedy}")
        return data


def kernels_folder() -> Path:
    """Where unpacked kernels lie, each in a folder of its own."""
    return platformdirs.user_cache_path("commutant") / "kernels"


def default_kernel() -> Kernel:
    """Debian's kernel as prepared by `make setup`; raises RunError if it is not there."""
    record = kernels_folder() / _DEFAULT
    try:
        name = json.loads(record.read_text())["folder"]
        return _load(kernels_folder() / Path(str(name)).name)
    except FileNotFoundError:
        raise RunError(
            f"no kernel is prepared: expected {record}; run `make setup` (downloads Debian's kernel package), "
            "or give your own: linux:kernel=PATH"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{record}: damaged ({error}); delete it and run `make setup` again") from None


def set_default(kernel: Kernel) -> None:
    """Makes an unpacked kernel the one that `default_kernel` gives."""
    text = json.dumps({"folder": kernel.vmlinux.parent.name})
    replace_file(kernels_folder() / _DEFAULT, text.encode())


def unpack(path: Path, source: str | None = None) -> Kernel:
    """The kernel in a bzImage, a vmlinux or a Debian package, unpacked into the cache folder if it is not there yet.

    `source` says where the file came from, its path if not given. Raises UsageError if the file is missing or is none
    of the three, cut off, damaged, or cannot be started directly.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_LIMIT_BYTES)
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; expected a kernel (bzImage, vmlinux or a Debian package)"
        ) from None
    folder = kernels_folder() / hashlib.sha256(data).hexdigest()[:24]
    try:
        return _load(folder)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not there, or not whole: unpacked anew
    if data.startswith(b"!<arch>\n"):
        data = _image_of_package(path)
    vmlinux = data if data.startswith(b"\x7fELF") else extract_vmlinux(data, str(path))
    elf = Elf(vmlinux, str(path))
    version = _VERSION.search(vmlinux)
    if version is None:
        raise UsageError(f"{path}: an ELF file without the text 'Linux version'; expected a kernel")
    if not elf.starts_by_pvh():
        raise UsageError(f"{path}: Linux {version[1].decode()} without CONFIG_PVH; QEMU cannot start its vmlinux")
    if not elf.section(".BTF"):
        raise UsageError(
            f"{path}: Linux {version[1].decode()} without CONFIG_DEBUG_INFO_BTF; its types cannot be named"
        )
    kernel = Kernel(
        release=version[1].decode(),
        source=source or str(path),
        vmlinux=folder / "vmlinux",
        sha256=hashlib.sha256(vmlinux).hexdigest(),
        size_bytes=len(vmlinux),
    )
    replace_file(kernel.vmlinux, vmlinux)
    description = {"format": _FORMAT, **asdict(kernel), "vmlinux": kernel.vmlinux.name}
    replace_file(folder / "kernel.json", json.dumps(description, indent=1).encode())
    return kernel


def _load(folder: Path) -> Kernel:
    """An unpacked kernel by its description; OSError, ValueError, KeyError or TypeError if it is not whole."""
    description = json.loads((folder / "kernel.json").read_text())
    if description["format"] != _FORMAT:
        raise ValueError("another version's description")
    kernel = Kernel(
        release=str(description["release"]),
        source=str(description["source"]),
        vmlinux=folder / "vmlinux",
        sha256=str(description["sha256"]),
        size_bytes=int(description["size_bytes"]),
    )
    if os.stat(kernel.vmlinux).st_size != kernel.size_bytes:
        raise ValueError(f"{kernel.vmlinux} is not whole")
    return kernel


def _image_of_package(path: Path) -> bytes:
    """The file boot/vmlinuz-* of a Debian package, read as the package is unpacked; nothing else is written
    anywhere."""
    command = ["dpkg-deb", "--fsys-tarfile", str(path)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise UsageError(f"{path}: dpkg-deb does not run ({error.strerror}); give the bzImage inside instead") from None
    with process:
        assert process.stdout is not None and process.stderr is not None
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    if member.isfile() and member.name.removeprefix("./").startswith("boot/vmlinuz-"):
                        if member.size > VMLINUX_LIMIT_BYTES:
                            raise UsageError(f"{path}: its kernel is larger than any kernel")
                        file = archive.extractfile(member)
                        assert file is not None
                        return file.read()
        except (tarfile.TarError, EOFError):
            reason = " ".join(process.stderr.read().decode(errors="replace").split())[-160:]
            raise UsageError(f"{path}: cut off or damaged package ({reason}); get it again") from None
        finally:
            process.kill()
    raise UsageError(f"{path}: a package without boot/vmlinuz-*; expected linux-image-VERSION-amd64")
