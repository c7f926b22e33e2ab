"""Work over processes: order, errors, and an interrupt that leaves nobody behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import commutant
from commutant.analyzer.parallel import map_in_processes
from commutant.errors import UsageError


def double(number: int) -> int:
    return 2 * number


def refuse_the_tenth(number: int) -> int:
    if number == 10:
        raise UsageError("ten is not to be had")
    return number


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 100])
def test_results_come_in_order_with_progress(jobs: int, count: int) -> None:
    told: list[tuple[int, int]] = []
    results = map_in_processes(double, range(count), jobs, lambda done, total: told.append((done, total)))
    assert results == [2 * number for number in range(count)]
    assert told == [(number + 1, count) for number in range(count)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_a_piece_comes_through(jobs: int) -> None:
    with pytest.raises(UsageError, match=r"^ten is not to be had$"):
        map_in_processes(refuse_the_tenth, range(100), jobs)


PROGRAM = """
import os, sys
from commutant.analyzer.parallel import map_in_processes

def never_ends(_):
    while True:
        pass


def begin_and_stay(number):
    os.write(1, f"{os.getpid()}\\n".encode())
    never_ends(number)

try:
    map_in_processes(begin_and_stay, range(100), 2)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupt_leaves_no_process() -> None:
    """Two workers, each busy for ever with its first piece; then Ctrl-C."""
    source = str(Path(commutant.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
        start_new_session=True,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            workers = {int(process.stdout.readline()), int(process.stdout.readline())}
            assert len(workers) == 2
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
            for worker in workers:
                with pytest.raises(ProcessLookupError):
                    os.kill(worker, 0)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
