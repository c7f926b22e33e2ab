"""What can be said of an adapter's file before anything loads it: whether it is a shared object for this machine."""

from __future__ import annotations

from pathlib import Path

from commutant.support import UsageError

_BUILD_FOLDERS = frozenset({"build", "target", "release", "debug", "lib", "out", "bin", "deps"})
"""Folders that say nothing of a project."""
_HEADER_BYTES = 20
_MAGIC = b"\x7fELF"
_CLASS_64 = 2
_SHARED_OBJECT = 3
_X86_64 = 62
_MACHINES = {3: "32-bit x86", 40: "32-bit Arm", 183: "64-bit Arm", 243: "RISC-V", 21: "POWER", 22: "s390x"}


def project_of(path: Path) -> str:
    """The name of the project that an adapter is of: its file's, unless that says nothing; then its folder's.

    >>> project_of(Path("/x/my-map/target/release/libmy_map_adapter.so"))
    'my_map'
    >>> project_of(Path("/x/my-map/build/adapter.so"))
    'my-map'
    """
    name = path.name.split(".")[0].removeprefix("lib").removesuffix("adapter").rstrip("_-")
    if name:
        return name
    folders = (folder for folder in path.resolve().parent.parts[::-1] if folder not in _BUILD_FOLDERS)
    return next(folders, "library").strip("/") or "library"


def check_file(path: Path) -> None:
    """Raises UsageError, with what was expected and what came, if the file is no x86-64 shared object."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: expected an adapter, a shared object: {error.strerror}") from None
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise UsageError(f"{path}: expected an adapter, a shared object (ELF); this is none; build it with -shared")
    machine = int.from_bytes(header[18:20], "little")
    if header[4] != _CLASS_64 or machine != _X86_64:
        named = _MACHINES.get(machine, f"machine {machine}")
        raise UsageError(f"{path}: expected a shared object for x86-64, got one for {named}; compile it for x86-64")
    if int.from_bytes(header[16:18], "little") != _SHARED_OBJECT:
        raise UsageError(f"{path}: expected a shared object, got another kind of ELF file; link it with -shared")
