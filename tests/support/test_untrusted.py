"""What unpacks to far more than it should is refused while it is unpacked, whichever way it is compressed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import subprocess
from collections.abc import Callable

import pytest

from commutant.support import Budget, UsageError, decompressed
from commutant.support.untrusted import PIECE_BYTES


def _zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "--stdout"], input=data, capture_output=True, check=True).stdout


def _lzma_alone(data: bytes) -> bytes:
    return lzma.compress(data, lzma.FORMAT_ALONE)


COMPRESSIONS: list[Callable[[bytes], bytes]] = [lzma.compress, _lzma_alone, bz2.compress, gzip.compress]
if shutil.which("zstd"):
    COMPRESSIONS.append(_zstd)
BUDGET_BYTES = 8 << 20


def _budget(seconds: float = 60.0) -> Budget:
    return Budget("image", BUDGET_BYTES, seconds)


@pytest.mark.parametrize("compress", COMPRESSIONS)
def test_what_is_within_the_budget_is_given_and_paid(compress: Callable[[bytes], bytes]) -> None:
    for data in (b"x", bytes(range(256)) * 5000, bytes(BUDGET_BYTES)):
        budget = _budget()
        assert decompressed(compress(data) if data else data, budget) == data
        assert budget.left_bytes == BUDGET_BYTES - len(data)


@pytest.mark.parametrize("compress", COMPRESSIONS)
def test_no_more_than_a_piece_above_the_budget_is_unpacked(compress: Callable[[bytes], bytes]) -> None:
    budget = _budget()
    with pytest.raises(UsageError, match="image: unpacks to more than 8 MiB"):
        decompressed(compress(bytes(20 * BUDGET_BYTES)), budget)
    assert -PIECE_BYTES <= budget.left_bytes < 0


@pytest.mark.parametrize("compress", COMPRESSIONS)
def test_what_takes_too_long_or_is_cut_off_is_refused(compress: Callable[[bytes], bytes]) -> None:
    packed = compress(bytes(range(256)) * 1000)
    with pytest.raises(UsageError, match="image: not unpacked after"):
        decompressed(packed, _budget(seconds=-1.0))
    with pytest.raises(UsageError, match="image: damaged"):
        decompressed(packed[: len(packed) // 2], _budget())


def test_a_decoder_that_wants_a_gigabyte_for_itself_is_refused() -> None:
    """How far back copies reach stands in the file; the decoder sets so much aside before the first byte."""
    packed = bytearray(_lzma_alone(b"some text"))
    packed[1:5] = (1 << 30).to_bytes(4, "little")
    with pytest.raises(UsageError, match=r"image: damaged \(Memory usage limit"):
        decompressed(bytes(packed), _budget())


def test_what_is_not_compressed_is_none() -> None:
    assert decompressed(b"\x7fELF", _budget()) is None
