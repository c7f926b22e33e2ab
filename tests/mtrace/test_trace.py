"""The Python face of the trace reader: what it makes of traces that are good, bad, or not there."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from commutant import _native
from commutant.guest import find_user_emulator
from commutant.mtrace.trace import TraceReader, kernel_layout, kernel_names
from commutant.support import artifacts
from commutant.support.errors import RunError

NAMES = _native.ProgramNames([])


def read(path: Path) -> list[int]:
    """Sizes of the batches of a trace."""
    with path.open("rb") as file:
        reader = TraceReader(file.fileno(), NAMES)
        return [len(batch) for batch in iter(reader.read_batch, None)]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The trace of a program without markers: a header and an end."""
    path = tmp_path / "trace"
    subprocess.run(
        [*find_user_emulator().command, "-plugin", f"{artifacts.plugin_path()},out={path}", "/bin/true"], check=True
    )
    return path


def test_a_program_without_markers_has_no_windows(trace: Path) -> None:
    assert read(trace) == [0]


def test_every_truncation_is_one_line_with_a_position(trace: Path, tmp_path: Path) -> None:
    content = trace.read_bytes()
    cut = tmp_path / "cut"
    for length in range(len(content)):
        cut.write_bytes(content[:length])
        with pytest.raises(RunError, match=r"^trace cut off at byte \d+: expected [^\n]+$"):
            read(cut)


def test_damage_is_one_line_with_a_position(trace: Path) -> None:
    content = bytearray(trace.read_bytes())
    content[-1] ^= 1
    trace.write_bytes(content)
    with pytest.raises(RunError, match=r"^trace damaged at byte \d+: expected [^\n]+$"):
        read(trace)


def test_a_trace_comes_through_a_pipe_whose_writer_starts_later() -> None:
    far_end, near_end = os.pipe()
    reader = TraceReader(far_end, NAMES)
    os.close(far_end)
    errors: list[str] = []

    def wait() -> None:
        try:
            reader.read_batch()
        except RunError as error:
            errors.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    os.write(near_end, b"\x89MTRACE\n")
    os.close(near_end)
    thread.join(30)
    assert errors == ["trace cut off at byte 8: expected a header of 32 bytes"]


def test_a_window_with_lost_accesses_is_an_error(monkeypatch: pytest.MonkeyPatch, trace: Path) -> None:
    class Overflowing:
        def __init__(self, fd: int, names: object) -> None: ...

        def read_batch(self) -> list[tuple[object, ...]]:
            return [(7, [], [0] * len(_native.RULES), [1, 1], 12, ([], []))]

    monkeypatch.setattr(_native, "TraceReader", Overflowing)
    with pytest.raises(RunError, match="window 7: the tracer's buffers were too small for 12 accesses"):
        read(trace)


def test_kernels_that_are_none_are_one_line() -> None:
    for make in (kernel_layout, kernel_names):
        for kallsyms, btf in ((b"", b""), (b"\xff", b""), (b"0000000000000000 T _text\n", b"BTF"), (b"x", b"\x7fELF")):
            with pytest.raises(RunError, match=r"^this kernel[^\n]+$"):
                make(kallsyms, btf)
