"""A saved RAM comes back as it was, and a damaged image gives one line."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commutant.guest.ram_image import load_ram, save_ram
from commutant.support.errors import RunError

SIZE_BYTES = 1 << 20


@contextlib.contextmanager
def _memory() -> Iterator[int]:
    descriptor = os.memfd_create("test-ram")
    try:
        os.ftruncate(descriptor, SIZE_BYTES)
        yield descriptor
    finally:
        os.close(descriptor)


@given(st.lists(st.tuples(st.integers(0, SIZE_BYTES - 300), st.binary(max_size=300)), max_size=12))
def test_ram_comes_back_as_it_was(writes: list[tuple[int, bytes]]) -> None:
    with _memory() as ram, _memory() as again, tempfile.TemporaryFile() as file:
        for offset, data in writes:
            os.pwrite(ram, data, offset)
        runs = save_ram(ram, file)
        file.flush()
        assert os.fstat(file.fileno()).st_size == sum(length for _, length in runs)
        load_ram(file.fileno(), runs, again)
        assert os.pread(again, SIZE_BYTES, 0) == os.pread(ram, SIZE_BYTES, 0)


def test_an_empty_ram_takes_no_room_and_neighbours_are_one_run() -> None:
    with _memory() as ram:
        assert save_ram(ram, io.BytesIO()) == []
        os.pwrite(ram, b"x" * (256 << 10), 128 << 10)
        assert save_ram(ram, io.BytesIO()) == [(128 << 10, 256 << 10)]


def test_an_image_cut_off_is_refused() -> None:
    with _memory() as ram, tempfile.TemporaryFile() as file:
        file.write(bytes(1000))
        file.flush()
        with pytest.raises(RunError, match="cut off at byte 1000"):
            load_ram(file.fileno(), [(0, 4096)], ram)
