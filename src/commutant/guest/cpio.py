"""Writes the initramfs: a cpio archive in the "newc" form that the kernel unpacks as its first root.

Source: Documentation/driver-api/early-userspace/buffer-format.rst of Linux.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence

_ALIGNMENT_BYTES = 4


class CpioWriter:
    """Collects entries; `finish` gives the archive. Entries have no times and belong to root: equal input, equal
    bytes."""

    def __init__(self) -> None:
        """An empty archive."""
        self._data = bytearray()
        self._next_inode = 1

    def directory(self, name: str) -> None:
        """Adds a directory; its parents must have been added before."""
        self._entry(name, stat.S_IFDIR | 0o755, b"")

    def program(self, name: str, content: bytes) -> None:
        """Adds an executable file."""
        self._entry(name, stat.S_IFREG | 0o755, content)

    def file(self, name: str, content: bytes) -> None:
        """Adds a file that is no program."""
        self._entry(name, stat.S_IFREG | 0o644, content)

    def symbolic_link(self, name: str, target: str) -> None:
        """Adds a symbolic link."""
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def character_device(self, name: str, major: int, minor: int) -> None:
        """Adds a device file."""
        self._entry(name, stat.S_IFCHR | 0o600, b"", (major, minor))

    def finish(self) -> bytes:
        """The archive."""
        self._entry("TRAILER!!!", 0, b"")
        return bytes(self._data)

    def _entry(self, name: str, mode: int, content: bytes, device: tuple[int, int] = (0, 0)) -> None:
        path = name.encode() + b"\0"
        fields = (self._next_inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(path), 0)
        self._next_inode += 1
        self._data += b"070701" + b"".join(b"%08x" % field for field in fields) + path
        self._pad()
        self._data += content
        self._pad()

    def _pad(self) -> None:
        self._data += bytes(-len(self._data) % _ALIGNMENT_BYTES)


def initramfs(
    runner: bytes, modules: Sequence[tuple[str, bytes]] = (), disk: Sequence[tuple[int, bytes]] = ()
) -> bytes:
    """The initramfs with the runner as init; the console's device file lets it speak before it has mounted anything.

    `modules`, by name and in the order in which they are to be loaded, and `disk`, what stands on it where, are laid
    out as the runner expects (crates/checker/runner/src/linux/file_system.rs).
    """
    archive = CpioWriter()
    archive.directory("dev")
    archive.character_device("dev/console", 5, 1)
    archive.program("init", runner)
    if modules:
        archive.directory("modules")
    for number, (name, image) in enumerate(modules):
        archive.file(f"modules/{number:02}-{name}.ko", image)
    if disk:
        archive.directory("disk")
    for offset, content in disk:
        archive.file(f"disk/{offset:012x}", content)
    return archive.finish()
