"""The host's view of the memory that guest and host share: batches out, results in.

Layout and protocol are described where the guest implements them, in linux/region.rs of crate `runner`. The region lies
in the middle of the guest's RAM, out of the way of the kernel (low) and the initramfs (high).
"""

from __future__ import annotations

import mmap
import struct

from commutant.support import RunError

ADDRESS = 0x1000_0000
"""Guest-physical address, and offset in the file of the RAM."""

SIZE_BYTES = 0x100_0000
LEAST_RAM_BYTES = 2 * ADDRESS
"""With less the region would be in the way of the initramfs."""

_MAGIC = int.from_bytes(b"CMTREGN1", "little")
_HEADER_BYTES = 0x1000
_BATCH_BYTES = 2 << 20
_RESULTS_BYTES = 3 << 20
SLOT_COUNT = 2

_STAGE, _SUBMITTED, _COMPLETED, _WINDOW, _EXPORT_BYTES, _EXPORTS_TAKEN = range(1, 7)
_STAGE_EXPORTING = 1
_STAGE_READY = 2

_NO_WINDOW = (1 << 64) - 1

BATCH_LIMIT_BYTES = _BATCH_BYTES


class Region:
    """The mapped region of one machine. The guest's numbers are checked: a damaged guest must not harm the host."""

    def __init__(self, ram_descriptor: int) -> None:
        """Maps the region of the machine whose RAM is the file `ram_descriptor`."""
        self._map = mmap.mmap(ram_descriptor, SIZE_BYTES, offset=ADDRESS)

    def close(self) -> None:
        """Unmaps; may be called twice."""
        self._map.close()

    def _get(self, index: int) -> int:
        value: int = struct.unpack_from("<Q", self._map, 8 * index)[0]
        return value

    def _put(self, index: int, value: int) -> None:
        # One aligned store of eight bytes, after all earlier ones: x86-64 keeps stores in order.
        struct.pack_into("<Q", self._map, 8 * index, value)

    @property
    def exporting(self) -> bool:
        """Whether the guest offers a text that has not been taken."""
        return self._get(0) == _MAGIC and self._get(_STAGE) == _STAGE_EXPORTING

    @property
    def ready(self) -> bool:
        """Whether the guest takes batches."""
        return self._get(0) == _MAGIC and self._get(_STAGE) == _STAGE_READY

    def take_export(self) -> bytes:
        """The text that the guest offers, which may go on then; raises RunError if its size is impossible."""
        size = self._get(_EXPORT_BYTES)
        if size > SIZE_BYTES - _HEADER_BYTES:
            raise RunError(f"the guest offers {size} bytes: more than the shared memory holds")
        text = self._map[_HEADER_BYTES : _HEADER_BYTES + size]
        self._put(_STAGE, 0)
        self._put(_EXPORTS_TAKEN, self._get(_EXPORTS_TAKEN) + 1)
        return text

    @property
    def submitted(self) -> int:
        """Number of batches given to the guest since it was started."""
        return self._get(_SUBMITTED)

    @property
    def completed(self) -> int:
        """Number of batches that the guest has completed."""
        return self._get(_COMPLETED)

    @property
    def window(self) -> int | None:
        """Index of the window that the guest runs in the batch under way; None between batches."""
        window = self._get(_WINDOW)
        return None if window == _NO_WINDOW else window

    def submit(self, batch: bytes) -> int:
        """Gives the guest a batch of at most `BATCH_LIMIT_BYTES` and returns its number; a slot must be free."""
        number = self.submitted
        slot = number % SLOT_COUNT
        assert number - self.completed < SLOT_COUNT, "a batch would overwrite one that is being run"
        start = _HEADER_BYTES + slot * (_BATCH_BYTES + _RESULTS_BYTES)
        self._map[start : start + len(batch)] = batch
        self._put(8 + 2 * slot, len(batch))
        self._put(_SUBMITTED, number + 1)
        return number

    def results(self, number: int) -> bytes:
        """The results of a completed batch; raises RunError if their size is impossible."""
        slot = number % SLOT_COUNT
        size = self._get(9 + 2 * slot)
        if size > _RESULTS_BYTES:
            raise RunError(f"the guest claims results of {size} bytes: more than the shared memory holds")
        start = _HEADER_BYTES + slot * (_BATCH_BYTES + _RESULTS_BYTES) + _BATCH_BYTES
        return self._map[start : start + size]
