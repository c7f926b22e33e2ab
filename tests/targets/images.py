"""Small invented kernels, as ELF files, bzImages and Debian packages, for the tests of what reads them."""

from __future__ import annotations

import struct
from pathlib import Path

RELEASE = "6.1.0-test"


def make_elf(
    *,
    machine: int = 62,
    pvh: bool = True,
    btf: bytes = b"\x9f\xeb\x01\x00types",
    banner: str = f"Linux version {RELEASE} ",
) -> bytes:
    """A vmlinux with one note segment and the sections .BTF and .shstrtab; nothing in it could run."""
    note = struct.pack("<III", 4, 8, 18) + b"Xen\0" + bytes(8) if pvh else b""
    return _elf(machine, note, ".BTF", btf, banner.encode())


def make_module(*, depends: str = "", softdep: str = "", alias: str = "") -> bytes:
    """A module that says so much of itself, in the section .modinfo."""
    facts = ["license=GPL", f"depends={depends}"]
    facts += [f"{key}={value}" for key, value in {"softdep": softdep, "alias": alias}.items() if value]
    return _elf(62, b"", ".modinfo", b"\0".join(fact.encode() for fact in facts) + b"\0", b"")


def _elf(machine: int, note: bytes, section: str, content: bytes, text: bytes) -> bytes:
    """An ELF file with one note segment, one section, the names of sections, and a text in no section."""
    own_name = section.encode() + b"\0"
    names = b"\0" + own_name + b".shstrtab\0"
    header_bytes, program_header_bytes, section_header_bytes = 64, 56, 64
    start = header_bytes + program_header_bytes
    note_at, content_at = start, start + len(note)
    names_at = content_at + len(content)
    text_at = names_at + len(names)
    table_at = text_at + len(text)
    sizes = (header_bytes, program_header_bytes, 1, section_header_bytes, 3, 2)
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<16sHHIQQQIHHHHHH", identity, 2, machine, 1, 0, header_bytes, table_at, 0, *sizes)
    program = struct.pack("<IIQQQQQQ", 4, 4, note_at, 0, 0, len(note), len(note), 4)
    sections = [
        struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, content_at, len(content), 0, 0, 1, 0),
        struct.pack("<IIQQQQIIQQ", 1 + len(own_name), 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
    ]
    return header + program + note + content + names + text + b"".join(sections)


def make_bzimage(payload: bytes, *, protocol: int = 0x020F, setup_sectors: int = 1) -> bytes:
    """A bzImage around a compressed payload, to which the size that the kernel's build appends is added."""
    payload += struct.pack("<I", 0)
    setup = bytearray(512 * (setup_sectors + 1))
    setup[0x1F1] = setup_sectors
    setup[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", setup, 0x206, protocol)
    struct.pack_into("<II", setup, 0x248, 16, len(payload))
    return bytes(setup) + bytes(16) + payload


def write(path: Path, data: bytes) -> Path:
    """Writes a file and gives its path."""
    path.write_bytes(data)
    return path
