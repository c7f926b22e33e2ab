"""Lists and maps of crate `olf` behind their adapters: right results, and calls on one map share nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commutant.lang.load import load_interface
from commutant.targets.base import Job
from commutant.testgen import generate
from tests.libraries.building import session

ROOT = Path(__file__).resolve().parents[2]
ONE_LIST = {"find", "insert", "remove"}
MOST_MOVES = 60


@pytest.mark.parametrize("kind", ["maps", "sorted"])
def test_every_result_is_one_that_the_model_accepts(kind: str) -> None:
    built = subprocess.run(
        ["cargo", "build", "--quiet", "--offline", "-p", "olf", "--example", kind], cwd=ROOT, capture_output=True
    )
    assert built.returncode == 0, built.stderr.decode()
    tests = generate(load_interface("lists")).tests
    of_one = [test for test in tests if {placed.call for placed in test.calls} <= ONE_LIST]
    moves = [test for test in tests if not {placed.call for placed in test.calls} <= ONE_LIST][:MOST_MOVES]
    with session(ROOT / "target" / "debug" / "examples" / f"lib{kind}.so") as running:
        jobs = [Job(test, order) for test in (*of_one, *moves) for order in range(len(test.orders))]
        records = list(running.run(jobs))
    assert len(records) > len(of_one) > 100
    assert [
        (record.job.test.id, record.wrong, record.crashed) for record in records if record.wrong or record.crashed
    ] == []
    sharing = {record.job.test.id for record in records if record.findings}
    shared_of_one = sharing & {test.id for test in of_one}
    assert bool(shared_of_one) == (kind == "sorted"), shared_of_one
