"""posix18 on a real kernel: a sample of its tests, in which every call of the interface and of its set-ups occurs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

import pytest

from commutant.corpus.testcase import TestCase
from commutant.lang.load import load_interface
from commutant.targets.base import Job
from commutant.targets.linux.target import LinuxOptions, LinuxTarget
from commutant.testgen.generation import generate

CALLS = load_interface("posix18").call_names()
PAIRS = tuple(zip(CALLS, (*CALLS[5:], *CALLS[:5]), strict=True))
"""Each call with one of another area."""

SAMPLE_OF_A_PAIR = 12


@cache
def sample() -> Sequence[TestCase]:
    """The same tests each time, some of every pair."""
    tests: list[TestCase] = []
    for pair in PAIRS:
        found = [test for test in generate(load_interface("posix18"), pair, level="path").tests if is_pair(test)]
        tests += random.Random(18).sample(found, min(len(found), SAMPLE_OF_A_PAIR))
    return tests


def is_pair(test: TestCase) -> bool:
    """Whether two different calls are tested."""
    return test.calls[0].call != test.calls[1].call


@pytest.mark.parametrize(
    "file_system",
    ["tmpfs", "ramfs", "ext4", *(pytest.param(name, marks=pytest.mark.long) for name in ("xfs", "btrfs", "overlay"))],
)
def test_linux_does_what_the_model_says(file_system: str) -> None:
    target = LinuxTarget(f"linux:fs={file_system}", LinuxOptions(file_system))
    try:
        target.start(lambda _: None, 2)
        (session,) = target.sessions(1)
        jobs = [Job(test, order) for test in sample() for order in range(len(test.orders))]
        wrong = {record.job.test.id: record.wrong or record.crashed for record in session.run(jobs)}
    finally:
        target.close()
    assert {test_id: why for test_id, why in wrong.items() if why} == {}


def test_the_sample_uses_everything() -> None:
    steps = [step for test in sample() for step in (*test.calls, *test.setup, *test.observe)]
    calls = {step.call for step in steps}
    setup = {"make_file", "fill_page", "name_file", "enter_directory", "open_file", "forget_file", "map_file"}
    pipes = {"make_pipe", "fill_pipe", "open_pipe", "forget_pipe"}
    observation = {"peek_directory", "peek_descriptors", "peek_memory", "probe_memory"}
    assert calls == {*CALLS, *setup, *pipes, *observation}
    target = LinuxTarget("linux", LinuxOptions())
    assert all(target.implements(step.call, step.args) for step in steps)
