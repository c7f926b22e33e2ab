"""Children of a process on the targets `scalefs` and `plain`: who shares lines where calls commute."""

from __future__ import annotations

from collections import Counter

import pytest

from commutant.lang import load_interface
from commutant.targets.base import Job
from commutant.targets.registry import load_target
from commutant.testgen import generate

SETS = ["spawn", "spawn,wait", "spawn,dup3", "spawn,drop", "fork,exit", "exec,exit", "wait", "sees,drop"]


@pytest.mark.parametrize("name", ["scalefs", "plain"])
def test_processes_do_what_the_model_says(name: str) -> None:
    """A collision is on another line in each of three windows, so a conflict counts if all have it."""
    interface = load_interface("processes")
    tests = [test for calls in SETS for test in generate(interface, calls=calls.split(",")).tests]
    assert len(tests) > 300
    target = load_target(name)
    target.start(lambda _: None, 1)
    shared = Counter[str]()
    try:
        session = target.sessions(1)[0]
        jobs = [Job(test, order) for test in tests for order in range(len(test.orders))]
        try:
            for record in session.run(jobs if name == "plain" else jobs * 3):
                assert record.wrong is None, (record.job.test.id, record.wrong)
                shared[record.job.test.id] += bool(record.findings)
        finally:
            session.close()
    finally:
        target.close()
    conflicting = {test.set_name for test in tests if shared[test.id] == 3 * len(test.orders)}
    assert not conflicting
