"""One reader of compressed data from anyone: as many bytes as were granted, and no longer than was granted.

How much a file unpacks to is its author's choice: 7 KB may hold gigabytes. So whatever is unpacked is unpacked piece by
piece, and each piece is paid for (`Budget`) before the next is asked for.
"""

from __future__ import annotations

import bz2
import lzma
import os
import select
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from commutant.support import lz4
from commutant.support.child import Limits, start_program
from commutant.support.errors import RunError, UsageError

PIECE_BYTES = 1 << 20

DECODER_MEMORY_BYTES = 256 << 20
"""What the decoder itself may take: xz and zstd let the author say how far back copies reach. The kernel's own build
goes up to 128 MiB (`zstd -22 --ultra`)."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class Budget:
    """What may be unpacked from one file: bytes in all, and seconds from now on. `name` stands in messages."""

    def __init__(self, name: str, size_bytes: int, seconds: float) -> None:
        self.name = name
        self.left_bytes = size_bytes
        self._size_bytes = size_bytes
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    @property
    def left_seconds(self) -> float:
        """Until the time is over; raises UsageError if it is."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise UsageError(f"{self.name}: not unpacked after {self._seconds:g} s; is it a kernel, and whole?")
        return left

    def spend(self, size_bytes: int) -> None:
        """Pays for unpacked bytes; raises UsageError if they are too many, or the time is over."""
        self.left_bytes -= size_bytes
        if self.left_bytes < 0:
            raise UsageError(
                f"{self.name}: unpacks to more than {self._size_bytes >> 20} MiB, larger than any kernel; get it again"
            )
        _ = self.left_seconds


def decompressed(data: bytes, budget: Budget) -> bytes | None:
    """What `data` holds, compressed with xz, lzma, bzip2, gzip, lz4 or zstd, whatever follows; None for anything else.

    Raises UsageError where it is damaged, or is not within the budget.
    """
    name = budget.name
    try:
        for magic, make in _DECOMPRESSORS.items():
            if data.startswith(magic):
                return b"".join(_pieces(make(), data, budget))
        if data.startswith(lz4.MAGIC):
            return b"".join(_paid(lz4.blocks(data), budget))
    except (lzma.LZMAError, zlib.error, OSError, EOFError, ValueError) as error:
        raise UsageError(f"{name}: damaged ({error}); get it again") from None
    return b"".join(_zstd_pieces(data, budget)) if data.startswith(_ZSTD_MAGIC) else None


_DECOMPRESSORS: dict[bytes, Callable[[], Any]] = {
    b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, DECODER_MEMORY_BYTES),
    b"\x5d\0\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, DECODER_MEMORY_BYTES),
    b"BZh": bz2.BZ2Decompressor,
    b"\x1f\x8b": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
}


def _pieces(decompressor: Any, data: bytes, budget: Budget) -> Iterator[bytes]:
    while True:
        piece = decompressor.decompress(data, PIECE_BYTES)
        budget.spend(len(piece))
        yield piece
        if decompressor.eof:
            return
        data = getattr(decompressor, "unconsumed_tail", b"")  # zlib gives back what it has not looked at
        if not piece and not data:
            raise EOFError("it ends too early")


def _paid(pieces: Iterable[bytes], budget: Budget) -> Iterator[bytes]:
    for piece in pieces:
        budget.spend(len(piece))
        yield piece


def _zstd_pieces(data: bytes, budget: Budget) -> Iterator[bytes]:
    """Python 3.11 has no zstd: the program of that name does it."""
    program = shutil.which("zstd")
    if program is None:
        raise UsageError(f"{budget.name}: compressed with zstd; install the program zstd, or give what is inside")
    command = [program, "--decompress", "--stdout", "--quiet", f"--memory={DECODER_MEMORY_BYTES >> 20}MB"]
    packed = os.memfd_create("commutant-zstd")
    messages = os.memfd_create("commutant-zstd-messages")
    try:
        with os.fdopen(os.dup(packed), "wb") as file:
            file.write(data)
        os.lseek(packed, 0, os.SEEK_SET)
        limits = Limits(memory_bytes=2 * DECODER_MEMORY_BYTES)
        with start_program(command, limits=limits, input=packed, messages=messages) as process:
            assert process.stdout is not None
            try:
                while select.select([process.stdout], [], [], budget.left_seconds)[0]:
                    piece = os.read(process.stdout.fileno(), PIECE_BYTES)
                    if not piece:
                        break
                    budget.spend(len(piece))
                    yield piece
                failed = process.wait(budget.left_seconds) != 0
            finally:
                process.kill()
        if failed:
            output = os.pread(messages, 1000, 0).decode(errors="replace")
            raise UsageError(f"{budget.name}: damaged ({' '.join(output.split())[:120]}); get it again")
    except (OSError, RunError) as error:
        raise UsageError(f"{budget.name}: zstd does not run: {error}") from None
    finally:
        os.close(packed)
        os.close(messages)
