"""Writes the initramfs: a cpio archive in the "newc" form that the kernel unpacks as its first root.

Source: Documentation/driver-api/early-userspace/buffer-format.rst of Linux.
"""

from __future__ import annotations

import stat

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


def initramfs(runner: bytes) -> bytes:
    """The initramfs with the runner as init; the console's device file lets it speak before it has mounted anything."""
    archive = CpioWriter()
    archive.directory("dev")
    archive.character_device("dev/console", 5, 1)
    archive.program("init", runner)
    return archive.finish()
