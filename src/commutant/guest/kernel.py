"""The kernel under test: found, unpacked, checked, and kept in the user's cache folder.

The default is the one that Debian's `linux-image-amd64` depends on: downloaded as a package by `prepare` and unpacked,
never installed. A kernel of one's own is given as a bzImage, a vmlinux or a Debian package. Either way a vmlinux with a
description next to it is kept, under the SHA-256 of the file it came from, so that nothing is unpacked twice. Of a
package's modules those are kept that guests ask for: what file systems under test need (`file_systems.MODULES`), and
FUSE, by which ScaleFS is mounted in one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import platformdirs
from msgspec import structs

from commutant.documents import Count, Document, Measure, Part, encode, read, text
from commutant.guest.bzimage import UNPACK_SECONDS, extract_vmlinux
from commutant.guest.elf import Elf
from commutant.guest.file_systems import MODULES
from commutant.guest.modules import load_order, plain_name, read_module
from commutant.guest.package import open_package
from commutant.support import Budget, RunError, UsageError, kernel_advice, read_regular, replace_file

DEFAULT = "default"
"""The name of the kernel that is used where none is given."""

SOUGHT_MODULES = (*MODULES, "fuse")
"""The modules that are kept of a package, with those that they need."""

_TYPES = "types.btf"
_PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]{1,127}")
_VERSION = re.compile(rb"Linux version ([!-~]{1,64}) ")
_FILE_LIMIT_BYTES = 1 << 30
"""A vmlinux with debug information has 700 MB."""
_FILES_LIMIT_BYTES = 2 << 30
"""All files of a package; Debian's 6.1 has 400 MB."""
_KEPT_LIMIT_BYTES = 256 << 20
"""What is kept of a package: its image, and modules, packed and unpacked each. Those of 6.1 have 55 MB."""
_MODULES_LIMIT = 2_048

_MODULE_FILE = re.compile(
    r"(?:\./)?(?:usr/)?lib/modules/[^/]+/kernel/(?:(?:fs|lib|crypto)/(?:.*/)?|drivers/block/)([^/]+)\.ko(?:\.\w+)?"
)
"""Where the kernel's source tree has file systems, what they share, checksums, and the RAM disk."""


class KernelPatch(Part, frozen=True, kw_only=True):
    """A patch that a kernel was built with."""

    title: str
    sha256: str
    text: str


class KernelBuild(Part, frozen=True, kw_only=True):
    """What `commutant kernel build` made a kernel of: sources, reference kernel, configuration, compiler, patches; how
    many types were compared with the reference's, and which differ. `compiled` counts the files that the patches had
    compiled, `scope` says which and why."""

    source: str
    source_sha256: str
    version: str
    reference: str
    config_sha256: str
    compiler: str
    patches: tuple[KernelPatch, ...]
    types_compared: Count
    types_that_differ: tuple[str, ...]
    compiled: Count = 0
    cpu_seconds: Measure = 0.0
    scope: str = ""


class KernelDescription(Document, frozen=True, kw_only=True, tag_field="format", tag=2):
    """What `kernel.json` says of the vmlinux next to it; see `Kernel`."""

    release: str
    source: str
    sha256: str
    size_bytes: Count
    load_orders: dict[str, tuple[str, ...]]
    modules: dict[str, str]
    built: KernelBuild | None = None
    types_sha256: str = ""
    sought: tuple[str, ...] = ()


class PreparedKernel(Part, frozen=True):
    """The kernel that was prepared under a name: the folder where it lies."""

    folder: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that can be started: its release (`uname -r`), where it came from, and the checked vmlinux.

    `load_orders` has, for each module that a guest may ask for, the modules to be loaded for it, itself last, and
    `modules` the SHA-256 of each. What is not in there may be a part of the kernel. `sought` says which were looked for
    when it was unpacked. `built` says of a kernel of
    `commutant kernel build` what it was made of; `types_sha256` is that of types (BTF) that are kept next to the
    vmlinux and meant in place of those inside.
    """

    release: str
    source: str
    vmlinux: Path
    sha256: str
    size_bytes: int
    load_orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    built: KernelBuild | None = None
    types_sha256: str = ""
    sought: tuple[str, ...] = ()

    @property
    def has_all_modules(self) -> bool:
        """Whether no package would give modules that are asked for and were not looked for when it was unpacked."""
        return self.built is not None or set(self.sought) >= set(SOUGHT_MODULES)

    def read(self) -> bytes:
        """The vmlinux; raises RunError if the file has changed since it was unpacked."""
        return self._checked(self.vmlinux, self.sha256)

    def read_types(self) -> bytes:
        """The kernel's types as BTF, no bytes if it has none; raises RunError if a file has changed."""
        if self.types_sha256:
            return self._checked(self.vmlinux.with_name(_TYPES), self.types_sha256)
        return Elf(self.read(), str(self.vmlinux)).section(".BTF") or b""

    def modules_for(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """The modules to be loaded so that those are there that are wanted, in this order, and each once."""
        return tuple(dict.fromkeys(name for module in wanted for name in self.load_orders.get(module, ())))

    def read_module(self, name: str) -> bytes:
        """A module's file, decompressed; raises RunError if it has changed since it was unpacked."""
        return self._checked(_module_path(self.vmlinux.parent, name), self.modules[name])

    def _checked(self, path: Path, sha256: str) -> bytes:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}; {kernel_advice()}") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            remedy = f"delete {path.parent} and {kernel_advice()}"
            raise RunError(f"{path}: not what was unpacked there (its SHA-256 differs); {remedy}")
        return data


def kernels_folder() -> Path:
    """Where unpacked kernels lie, each in a folder of its own."""
    return platformdirs.user_cache_path("commutant") / "kernels"


def default_kernel() -> Kernel:
    """Debian's kernel as prepared by `make setup`; raises RunError if it is not there."""
    kernel = prepared_kernel(DEFAULT)
    if kernel is None:
        raise RunError(
            f"no kernel is prepared: expected {_record(DEFAULT)}; {kernel_advice()} (downloads Debian's kernel "
            "package), or give your own: linux:kernel=PATH"
        )
    return kernel


def prepared_kernel(name: str) -> Kernel | None:
    """The kernel that was prepared under a name, a package's; None if none was. Raises RunError if it is damaged."""
    record = _record(name)
    try:
        return _load(kernels_folder() / Path(read(PreparedKernel, record.read_bytes()).folder).name)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RunError(f"{record}: damaged ({error}); delete it and {kernel_advice()}") from None


def kernel_in(folder: Path) -> Kernel | None:
    """The kernel in a folder of the cache; None if it is not whole."""
    try:
        return _load(folder)
    except (OSError, ValueError):
        return None


def names_of_kernels() -> dict[str, list[str]]:
    """By folder, the names that kernels were prepared under."""
    names: dict[str, list[str]] = {}
    for record in sorted(kernels_folder().glob("*.json")):
        try:
            names.setdefault(Path(read(PreparedKernel, record.read_bytes()).folder).name, []).append(record.stem)
        except (OSError, ValueError):
            continue
    return names


def set_default(kernel: Kernel) -> None:
    """Makes an unpacked kernel the one that `default_kernel` gives."""
    set_prepared(DEFAULT, kernel)


def set_prepared(name: str, kernel: Kernel) -> None:
    """Makes an unpacked kernel the one that `prepared_kernel` gives for a name."""
    replace_file(_record(name), encode(PreparedKernel(kernel.vmlinux.parent.name)))


def is_package_name(name: str) -> bool:
    """Whether a Debian package may have this name (Debian Policy, section 5.6.1)."""
    return _PACKAGE_NAME.fullmatch(name) is not None


def _record(name: str) -> Path:
    assert is_package_name(name), name
    return kernels_folder() / f"{name}.json"


def kernel_of(argument: str) -> Path | Kernel:
    """What `kernel=ARGUMENT` means: a file, or a package that was prepared; raises UsageError if neither is there."""
    path = Path(argument)
    if path.is_file():
        return path
    kernel = prepared_kernel(argument) if is_package_name(argument) else None
    if kernel is None:
        raise UsageError(
            f"no file {argument}; expected a kernel: a bzImage, a vmlinux, a Debian package, or the name of a package "
            "that `commutant prepare NAME` has prepared"
        )
    return kernel


def unpack(path: Path, source: str | None = None) -> Kernel:
    """The kernel in a bzImage, a vmlinux or a Debian package, unpacked into the cache folder if it is not there yet.

    `source` says where the file came from, its path if not given. Raises UsageError if the file is missing or is none
    of the three, cut off, damaged, or cannot be started directly.
    """
    try:
        data = read_regular(path, _FILE_LIMIT_BYTES)
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; expected a kernel (bzImage, vmlinux or a Debian package)"
        ) from None
    if len(data) > _FILE_LIMIT_BYTES:
        raise UsageError(f"{path}: larger than {_FILE_LIMIT_BYTES >> 20} MiB; expected a kernel, or its package")
    folder = kernels_folder() / hashlib.sha256(data).hexdigest()[:24]
    kernel = kernel_in(folder)
    if kernel is not None and kernel.has_all_modules:
        return kernel
    # not there, not whole, or without modules that are asked for by now: unpacked again
    packed: dict[str, bytes] = {}
    if data.startswith(b"!<arch>\n"):
        data, packed = _read_package(path)
    vmlinux = data if data.startswith(b"\x7fELF") else extract_vmlinux(data, str(path))
    elf = Elf(vmlinux, str(path))
    version = _VERSION.search(vmlinux)
    if version is None:
        raise UsageError(f"{path}: an ELF file without the text 'Linux version'; expected a kernel")
    if not elf.starts_by_pvh():
        raise UsageError(f"{path}: Linux {version[1].decode()} without CONFIG_PVH; QEMU cannot start its vmlinux")
    images, load_orders = _needed_modules(packed, Budget(str(path), _KEPT_LIMIT_BYTES, UNPACK_SECONDS))
    kernel = Kernel(
        release=version[1].decode(),
        source=source or str(path),
        vmlinux=folder / "vmlinux",
        sha256=hashlib.sha256(vmlinux).hexdigest(),
        size_bytes=len(vmlinux),
        load_orders=load_orders,
        modules={name: hashlib.sha256(image).hexdigest() for name, image in images.items()},
        sought=SOUGHT_MODULES,
    )
    replace_file(kernel.vmlinux, vmlinux)
    for name, image in images.items():
        replace_file(_module_path(folder, name), image)
    _describe(kernel)
    return kernel


def keep_built(path: Path, name: str, built: KernelBuild, types: bytes | None) -> Kernel:
    """Keeps the vmlinux of a build under a name, with what it was made of, and its types if they are not all inside.

    Raises UsageError if it is none that can be started, RunError if it cannot be written.
    """
    kernel = unpack(path, f"built as {name}")
    kernel = replace(kernel, built=built, types_sha256="" if types is None else hashlib.sha256(types).hexdigest())
    if types is not None:
        replace_file(kernel.vmlinux.with_name(_TYPES), types)
    _describe(kernel)
    set_prepared(name, kernel)
    return kernel


def _describe(kernel: Kernel) -> None:
    kept = {name: getattr(kernel, name) for name in KernelDescription.__struct_fields__}
    replace_file(kernel.vmlinux.with_name("kernel.json"), text(KernelDescription(**kept)).encode())


def _module_path(folder: Path, name: str) -> Path:
    return folder / "modules" / f"{name}.ko"


def _needed_modules(packed: Mapping[str, bytes], budget: Budget) -> tuple[dict[str, bytes], dict[str, tuple[str, ...]]]:
    """Of a package's modules those that are sought, decompressed, and what to load for each of them.

    What the package does not have is left out: it may be a part of the kernel, which the guest knows.
    """
    modules = {name: read_module(name, data, budget) for name, data in packed.items()}
    orders = {wanted: load_order(wanted, modules) for wanted in SOUGHT_MODULES if wanted in modules}
    return {name: modules[name].image for order in orders.values() for name in order}, orders


def _load(folder: Path) -> Kernel:
    """An unpacked kernel by its description; OSError or ValueError if it is not whole."""
    description = read(KernelDescription, (folder / "kernel.json").read_bytes())
    kernel = Kernel(vmlinux=folder / "vmlinux", **structs.asdict(description))
    if any(plain_name(name) != name or not name.isidentifier() for name in kernel.modules):
        raise ValueError("a module with an impossible name")
    if not all(name in kernel.modules for order in kernel.load_orders.values() for name in order):
        raise ValueError("a module is missing")
    if kernel.vmlinux.stat().st_size != kernel.size_bytes:
        raise ValueError(f"{kernel.vmlinux} is not whole")
    return kernel


def _read_package(path: Path) -> tuple[bytes, dict[str, bytes]]:
    """The file boot/vmlinuz-* of a Debian package, and by name those modules that file systems may need, as they are
    packed. The package is read as it is unpacked; nothing else is written anywhere."""
    image, modules = None, {}
    packed = Budget(str(path), _FILES_LIMIT_BYTES, UNPACK_SECONDS)
    kept = Budget(str(path), _KEPT_LIMIT_BYTES, UNPACK_SECONDS)
    with open_package(path, packed) as archive:
        for member in archive:
            is_image = member.name.removeprefix("./").startswith("boot/vmlinuz-")
            module = _MODULE_FILE.fullmatch(member.name)
            if not member.isfile() or not (is_image or module):
                continue
            kept.spend(member.size)
            if module:
                modules[plain_name(module[1])] = archive.read(member)
            else:
                image = archive.read(member)
            if len(modules) > _MODULES_LIMIT:
                raise UsageError(f"{path}: more than {_MODULES_LIMIT:,} modules of file systems, expected a kernel")
    if image is None:
        raise UsageError(f"{path}: a package without boot/vmlinuz-*; expected linux-image-VERSION-amd64")
    return image, modules
