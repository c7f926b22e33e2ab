"""Reads what the kernel's build compresses with LZ4: the legacy frame, a magic number and then blocks of known size.

Source: the LZ4 block format and legacy frame (lz4_Block_format.md, lz4_Frame_format.md), lib/decompress_unlz4.c of
Linux. Python's library has no LZ4, and programs that read it are seldom installed. A kernel takes some seconds, once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAGIC = b"\x02\x21\x4c\x18"
_BLOCK_BYTES = 8 << 20
_MINIMUM_MATCH_BYTES = 4


def blocks(data: bytes) -> Iterator[bytes]:
    """The blocks of a legacy frame, of at most 8 MiB each; raises ValueError where it is damaged or cut off."""
    if not data.startswith(MAGIC):
        raise ValueError("no LZ4 frame of the legacy form")
    position = len(MAGIC)
    while position < len(data):
        (size,) = struct.unpack_from("<I", data, position) if position + 4 <= len(data) else (0,)
        position += 4
        if not 0 < size <= len(data) - position:
            raise ValueError("it ends too early")
        block = _block(data[position : position + size])
        position += size
        yield bytes(block)
        if len(block) < _BLOCK_BYTES:
            break  # the last one; the kernel's build appends the uncompressed size


def _block(block: bytes) -> bytearray:
    """One block: sequences of literals and a match, the last one of literals alone."""
    out = bytearray()
    position, end = 0, len(block)
    try:
        while True:
            token = block[position]
            position += 1
            length = token >> 4
            if length == 15:
                length, position = _long(block, position, length)
            if position + length > end:
                raise ValueError("it ends too early")
            out += block[position : position + length]
            position += length
            if position == end:
                break
            distance = block[position] | block[position + 1] << 8
            position += 2
            length = token & 15
            if length == 15:
                length, position = _long(block, position, length)
            length += _MINIMUM_MATCH_BYTES
            start = len(out) - distance
            if distance == 0 or start < 0 or len(out) + length > _BLOCK_BYTES:
                raise ValueError("a match reaches out of its block")
            # A match may overlap what it makes: then it repeats.
            out += out[start : start + length] if distance >= length else _repeated(out[start:], length)
    except IndexError:
        raise ValueError("it ends too early") from None
    if len(out) > _BLOCK_BYTES:
        raise ValueError("a block is too long")
    return out


def _long(block: bytes, position: int, length: int) -> tuple[int, int]:
    while True:
        more = block[position]
        position += 1
        length += more
        if more != 255:
            return length, position


def _repeated(pattern: bytearray, length: int) -> bytearray:
    return (pattern * (length // len(pattern) + 1))[:length]
