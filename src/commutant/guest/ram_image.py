"""The content of a guest's RAM as a file: runs of pages that are in use, one after the other.

Most of a fresh guest's RAM has never been written. Copying the rest at once, from the system's page cache into the new
machine's RAM, takes a fraction of what QEMU needs to load it page by page.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from typing import BinaryIO

from commutant.support import RunError

Run = tuple[int, int]
"""Offset and length in bytes of a run of RAM."""

_BLOCK_BYTES = 64 << 10
"""RAM is looked at in blocks of this size; a smaller one would give more runs and hardly fewer bytes."""


def save_ram(ram_descriptor: int, file: BinaryIO) -> list[Run]:
    """Writes the blocks of RAM that are not zero to a file, and returns their runs in the order of the file."""
    runs: list[Run] = []
    zero = bytes(_BLOCK_BYTES)
    size_bytes = os.fstat(ram_descriptor).st_size
    with mmap.mmap(ram_descriptor, size_bytes, access=mmap.ACCESS_READ) as ram:
        for offset in range(0, size_bytes, _BLOCK_BYTES):
            block = ram[offset : offset + _BLOCK_BYTES]
            if block == zero[: len(block)]:
                continue
            file.write(block)
            if runs and sum(runs[-1]) == offset:
                runs[-1] = (runs[-1][0], runs[-1][1] + len(block))
            else:
                runs.append((offset, len(block)))
    return runs


def load_ram(file_descriptor: int, runs: Iterable[Run], ram_descriptor: int) -> None:
    """Fills an empty RAM; raises RunError if the file is too short or there is no memory."""
    position = 0
    try:
        for offset, length in runs:
            os.lseek(ram_descriptor, offset, os.SEEK_SET)
            left = length
            while left:
                copied = os.sendfile(ram_descriptor, file_descriptor, position, left)
                if copied == 0:
                    raise RunError(f"the image of the guest's RAM is cut off at byte {position}; run the command again")
                position += copied
                left -= copied
    except OSError as error:
        raise RunError(f"filling the guest's RAM: {error.strerror}; see `commutant doctor`") from None
