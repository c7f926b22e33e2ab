"""Types of a kernel, with newer ones put over them: BTF that continues other BTF, as a module's does its kernel's.

The two are written one after the other, which is BTF again (`Documentation/bpf/btf.rst`). Where the newer part defines
a structure that the older one has, the older becomes another name of it (a `typedef`), so that whatever referred to it
means the newer.
"""

from __future__ import annotations

import struct

from commutant.support import RunError

_HEADER = struct.Struct("<HBBIIIII")
_TYPE = struct.Struct("<III")
_MAGIC = 0xEB9F
_STRUCT, _UNION, _TYPEDEF = 4, 5, 8
_BEHIND = {
    1: (4, 0),
    3: (12, 0),
    4: (0, 12),
    5: (0, 12),
    6: (0, 8),
    13: (0, 8),
    14: (4, 0),
    15: (0, 12),
    17: (4, 0),
    19: (0, 12),
}
"""By kind, bytes after a type: fixed, and for each of its members."""

_Parts = tuple[list[bytes], bytes]


def overlay(older: bytes, newer: bytes) -> bytes:
    """The types of `older`, with those of `newer`, which continues it, put over them. Raises RunError (damaged)."""
    records, strings = _read(older)
    more, more_strings = _read(newer)
    named: dict[tuple[int, bytes], int] = {}
    together = strings + more_strings
    for number, record in enumerate(more, start=len(records) + 1):
        name, info, _ = _TYPE.unpack_from(record)
        if name and (info >> 24 & 0x1F) in (_STRUCT, _UNION):
            named.setdefault((info >> 24 & 0x1F, _text(together, name)), number)
    for index, record in enumerate(records):
        name, info, _ = _TYPE.unpack_from(record)
        target = named.get((info >> 24 & 0x1F, _text(strings, name))) if name else None
        if target is not None:
            records[index] = _TYPE.pack(name, _TYPEDEF << 24, target)
    types = b"".join(records) + b"".join(more)
    return _HEADER.pack(_MAGIC, 1, 0, _HEADER.size, 0, len(types), len(types), len(together)) + types + together


def _read(btf: bytes) -> _Parts:
    """The records of all types, and the strings."""
    try:
        magic, version, _, header_bytes, type_at, type_bytes, string_at, string_bytes = _HEADER.unpack_from(btf)
        if (magic, version) != (_MAGIC, 1):
            raise ValueError("no BTF")
        types = btf[header_bytes + type_at : header_bytes + type_at + type_bytes]
        strings = btf[header_bytes + string_at : header_bytes + string_at + string_bytes]
        records, at = [], 0
        while at < len(types):
            info = _TYPE.unpack_from(types, at)[1]
            fixed_bytes, member_bytes = _BEHIND.get(info >> 24 & 0x1F, (0, 0))
            end = at + _TYPE.size + fixed_bytes + member_bytes * (info & 0xFFFF)
            if end > len(types):
                raise ValueError("cut off")
            records.append(types[at:end])
            at = end
    except (struct.error, ValueError) as error:
        raise RunError(f"types of a kernel: damaged BTF ({error})") from None
    return records, strings


def _text(strings: bytes, at: int) -> bytes:
    return strings[at : strings.find(b"\0", at)]
