"""From a bzImage, the kernel as it is packaged, to the vmlinux inside it.

A bzImage is a real-mode set-up (whose header the boot protocol fixes), a small decompressor, and the compressed
vmlinux. QEMU can start an uncompressed vmlinux directly (the kernel's PVH entry), which spares the guest to decompress
itself under emulation. Source: Documentation/x86/boot.rst of Linux, "The Real-Mode Kernel Header".
"""

from __future__ import annotations

import struct

from commutant.support import Budget, UsageError, decompressed

_SETUP_SECTORS_OFFSET = 0x1F1
_MAGIC_OFFSET = 0x202
_MAGIC = b"HdrS"
_PROTOCOL_OFFSET = 0x206
_PAYLOAD_OFFSET = 0x248
_SECTOR_BYTES = 512
_FIRST_PROTOCOL_WITH_PAYLOAD = 0x0208
_ZSTD = b"\x28\xb5\x2f\xfd"

VMLINUX_LIMIT_BYTES = 256 << 20
"""No packaged kernel is larger, Debian's has 60 MB; a damaged or hostile image must not fill the memory."""

UNPACK_SECONDS = 120.0


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
    budget = Budget(name, VMLINUX_LIMIT_BYTES, UNPACK_SECONDS)
    # The kernel's build appends the uncompressed size to most forms, which is no part of them; it is left unread.
    vmlinux = decompressed(payload[:-4] if payload.startswith(_ZSTD) else payload, budget)
    if vmlinux is None:
        raise UsageError(
            f"{name}: compressed in an unknown way ({payload[:4].hex()}); expected xz, lzma, bzip2, gzip, lz4 or "
            "zstd; the vmlinux inside will do, too"
        )
    if not vmlinux.startswith(b"\x7fELF"):
        raise UsageError(f"{name}: its content is not an ELF file; expected a kernel for x86-64")
    return vmlinux
