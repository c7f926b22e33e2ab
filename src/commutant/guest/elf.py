"""The little that is needed of a vmlinux's ELF: is it one that can be started, and its BTF section."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from commutant.support import UsageError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_NOTE_HEADER = struct.Struct("<III")
_EM_X86_64 = 62
_PT_NOTE = 4
_XEN_ELFNOTE_PHYS32_ENTRY = 18
_NOTES_LIMIT_BYTES = 1 << 16
"""Of notes this many bytes are looked at, in all of a file; a kernel has some hundred."""


class Elf:
    """A little-endian x86-64 ELF file in memory."""

    def __init__(self, data: bytes, name: str) -> None:
        """Raises UsageError if `data` is no such file; `name` stands in messages."""
        self._data = data
        self._name = name
        if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
            raise UsageError(f"{name}: expected a 64-bit little-endian ELF file (vmlinux)")
        header = _HEADER.unpack_from(data)
        if header[2] != _EM_X86_64:
            raise UsageError(f"{name}: a kernel for another machine (ELF machine {header[2]}), expected x86-64")
        self._program_table = (header[5], header[9], header[10])
        self._section_table = (header[6], header[11], header[12])
        self._names_index = header[13]

    def _table(self, table: tuple[int, int, int], entry: struct.Struct) -> Iterator[tuple[int, ...]]:
        offset, size, count = table
        if size != entry.size or offset + size * count > len(self._data):
            raise UsageError(f"{self._name}: cut off or damaged: its tables lie outside the file")
        for index in range(count):
            yield entry.unpack_from(self._data, offset + index * size)

    def section(self, wanted: str) -> bytes | None:
        """The content of a section, None if there is none of that name; raises UsageError if the file is damaged."""
        sections = list(self._table(self._section_table, _SECTION_HEADER))
        if self._names_index >= len(sections):
            return None
        names = self._slice(sections[self._names_index][4], sections[self._names_index][5])
        for section in sections:
            if names.startswith(wanted.encode() + b"\0", section[0]):
                return self._slice(section[4], section[5])
        return None

    def starts_by_pvh(self) -> bool:
        """Whether the kernel has the entry that QEMU needs for starting a vmlinux (CONFIG_PVH)."""
        left_bytes = _NOTES_LIMIT_BYTES
        for header in self._table(self._program_table, _PROGRAM_HEADER):
            if header[0] == _PT_NOTE:
                notes = self._slice(header[2], min(header[5], left_bytes))
                left_bytes -= len(notes)
                if any(note == (b"Xen\0", _XEN_ELFNOTE_PHYS32_ENTRY) for note in _notes(notes)):
                    return True
        return False

    def _slice(self, offset: int, size: int) -> bytes:
        if offset + size > len(self._data):
            raise UsageError(f"{self._name}: cut off: {len(self._data)} bytes, expected {offset + size}")
        return self._data[offset : offset + size]


def _notes(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Owner and type of each note; stops at the first that is not whole."""
    position = 0
    while position + _NOTE_HEADER.size <= len(data):
        name_bytes, description_bytes, kind = _NOTE_HEADER.unpack_from(data, position)
        position += _NOTE_HEADER.size
        yield data[position : position + name_bytes], kind
        position += -(-name_bytes // 4) * 4 + -(-description_bytes // 4) * 4
