"""From a bzImage, the kernel as it is packaged, to the vmlinux inside it.

A bzImage is a real-mode set-up (whose header the boot protocol fixes), a small decompressor, and the compressed
vmlinux. QEMU can start an uncompressed vmlinux directly (the kernel's PVH entry), which spares the guest to decompress
itself under emulation. Source: Documentation/x86/boot.rst of Linux, "The Real-Mode Kernel Header".
"""

from __future__ import annotations

import bz2
import lzma
import shutil
import struct
import subprocess
import zlib

from commutant.guest import lz4
from commutant.support import UsageError

_SETUP_SECTORS_OFFSET = 0x1F1
_MAGIC_OFFSET = 0x202
_MAGIC = b"HdrS"
_PROTOCOL_OFFSET = 0x206
_PAYLOAD_OFFSET = 0x248
_SECTOR_BYTES = 512
_FIRST_PROTOCOL_WITH_PAYLOAD = 0x0208

VMLINUX_LIMIT_BYTES = 1 << 30
"""No kernel is larger; a damaged or hostile image must not fill the memory."""

_ZSTD_SECONDS = 120.0


def is_bzimage(image: bytes) -> bool:
    """Whether the bytes start like a bzImage."""
    return image[_MAGIC_OFFSET : _MAGIC_OFFSET + 4] == _MAGIC


def extract_vmlinux(image: bytes, name: str) -> bytes:
    """The uncompressed kernel inside a bzImage; `name` stands in messages.

    Raises UsageError if the image is no bzImage, is cut off or damaged, or is compressed in a way that cannot be read.
    """
    if not is_bzimage(image):
        raise UsageError(f"{name}: expected a kernel (bzImage, vmlinux or a Debian package), found something else")
    if len(image) < _PAYLOAD_OFFSET + 8:
        raise UsageError(f"{name}: cut off: {len(image)} bytes, expected at least {_PAYLOAD_OFFSET + 8}; get it again")
    (protocol,) = struct.unpack_from("<H", image, _PROTOCOL_OFFSET)
    if protocol < _FIRST_PROTOCOL_WITH_PAYLOAD:
        raise UsageError(f"{name}: a kernel of boot protocol {protocol:#06x}, expected 0x0208 (Linux 2.6.26) or newer")
    payload_offset, payload_bytes = struct.unpack_from("<II", image, _PAYLOAD_OFFSET)
    start = ((image[_SETUP_SECTORS_OFFSET] or 4) + 1) * _SECTOR_BYTES + payload_offset
    payload = image[start : start + payload_bytes]
    if len(payload) < payload_bytes or payload_bytes < 8:
        raise UsageError(
            f"{name}: cut off: {len(image)} bytes, expected at least {start + payload_bytes}; get it again"
        )
    vmlinux = _decompress(payload, name)
    if not vmlinux.startswith(b"\x7fELF"):
        raise UsageError(f"{name}: what is inside is no ELF file; expected a kernel for x86-64")
    return vmlinux


def _decompress(payload: bytes, name: str) -> bytes:
    """Decompresses a payload. The kernel's build appends the uncompressed size to most forms; it is left unread."""
    try:
        if payload.startswith(b"\xfd7zXZ\0"):
            return _limited(lzma.LZMADecompressor(lzma.FORMAT_XZ), payload, name)
        if payload.startswith(b"\x5d\0\0"):
            return _limited(lzma.LZMADecompressor(lzma.FORMAT_ALONE), payload, name)
        if payload.startswith(b"BZh"):
            return _limited(bz2.BZ2Decompressor(), payload, name)
        if payload.startswith(b"\x1f\x8b"):
            gzip = zlib.decompressobj(wbits=31)
            data = gzip.decompress(payload, VMLINUX_LIMIT_BYTES)
            return _complete(data, gzip.eof, name)
        if payload.startswith(lz4.MAGIC):
            return lz4.decompress(payload, VMLINUX_LIMIT_BYTES)
    except (lzma.LZMAError, zlib.error, OSError, EOFError, ValueError) as error:
        raise UsageError(f"{name}: damaged ({error}); get it again") from None
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstd(payload, name)
    raise UsageError(
        f"{name}: compressed in an unknown way ({payload[:4].hex()}); expected xz, lzma, bzip2, gzip, lz4 or zstd; "
        "the vmlinux inside does as well"
    )


def _limited(decompressor: lzma.LZMADecompressor | bz2.BZ2Decompressor, payload: bytes, name: str) -> bytes:
    return _complete(decompressor.decompress(payload, VMLINUX_LIMIT_BYTES), decompressor.eof, name)


def _complete(data: bytes, at_end: bool, name: str) -> bytes:
    if at_end:
        return data
    limit = len(data) >= VMLINUX_LIMIT_BYTES
    raise UsageError(f"{name}: " + ("larger than any kernel" if limit else "damaged: it ends too early; get it again"))


def _zstd(payload: bytes, name: str) -> bytes:
    """Python 3.11 has no zstd: the program of that name does it."""
    program = shutil.which("zstd")
    if program is None:
        raise UsageError(f"{name}: compressed with zstd; install the program zstd, or give the vmlinux inside")
    # The size that the kernel's build appends is no part of the frame.
    command = [program, "--decompress", "--stdout", "--quiet", "--memory=2048MB"]
    try:
        answer = subprocess.run(command, input=payload[:-4], capture_output=True, timeout=_ZSTD_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"{name}: zstd does not run: {error}") from None
    if answer.returncode != 0 or len(answer.stdout) > VMLINUX_LIMIT_BYTES:
        reason = " ".join(answer.stderr.decode(errors="replace").split())[:120]
        raise UsageError(f"{name}: damaged ({reason}); get it again")
    return answer.stdout
