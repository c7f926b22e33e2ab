"""Programs and workers end with the process that started them, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commutant.support import Limits, RunError, start_program

_PATIENCE_SECONDS = 60.0

_POOL = r"""
import os, sys, time
from commutant.pool import executor_named, map_in_processes

def piece(number):
    os.write(1, b"%d\n" % os.getpid())  # in one piece
    time.sleep(1000)

map_in_processes(piece, range(100), jobs=2)
"""

_PROGRAM = """
import subprocess, time
from commutant.support import start_program

print(start_program(["sleep", "1000"]).pid, flush=True)
print(start_program(["sleep", "1000"]).pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("script", [_POOL, _PROGRAM], ids=["pool", "program"])
def test_children_end_with_a_parent_that_is_killed(script: str) -> None:
    """A killed `generate` left its workers asleep forever: each held the pipes open that the others waited at."""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        try:
            children = [int(parent.stdout.readline()) for _ in range(2)]
        finally:
            parent.kill()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while left := [child for child in children if _runs(child)]:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.05)


def _runs(process: int) -> bool:
    """Whether a process is there that is no zombie, which only waits for being counted."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_a_program_takes_no_more_than_is_granted(tmp_path: Path) -> None:
    too_much = f"with open({str(tmp_path / 'large')!r}, 'wb') as file: file.write(bytes(100_000))"
    with start_program([sys.executable, "-c", too_much], limits=Limits(file_bytes=10_000)) as process:
        assert process.wait(_PATIENCE_SECONDS) != 0
    assert (tmp_path / "large").stat().st_size <= 10_000
    with start_program([sys.executable, "-c", "bytes(1 << 30)"], limits=Limits(memory_bytes=1 << 29)) as process:
        assert process.wait(_PATIENCE_SECONDS) == 1
    limits = Limits(open_files=7)
    with start_program(["sh", "-c", "ulimit -n; ulimit -c"], limits=limits) as process:
        assert process.communicate()[0].split() == [b"7", b"0"]


def test_what_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RunError, match="setpriv does not start"):
        start_program(["true"])


def test_a_forked_process_starts_programs_of_its_own() -> None:
    """The thread that starts programs is left behind by fork."""
    with start_program(["true"]) as process:
        assert process.wait(_PATIENCE_SECONDS) == 0
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        code = 1
        try:
            code = start_program(["true"]).wait()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
