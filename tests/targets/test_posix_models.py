"""posix's words of memory, what is watched, and children on a real kernel: a sample of the tests of some pairs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

from commutant.corpus.testcase import TestCase
from commutant.lang.load import load_interface
from commutant.targets.base import Job, WindowRecord
from commutant.targets.linux.target import LinuxOptions, LinuxTarget
from commutant.testgen.generation import generate

POSIX = load_interface("posix")
PAIRS = (
    ("futex_wake", "futex_wait"),
    ("futex_requeue", "munmap"),
    ("epoll_add", "epoll_del"),
    ("epoll_wait", "close"),
    ("fork", "exit"),
    ("fork", "wait"),
    ("exit", "wait"),
    ("exit", "exit"),
)
SAMPLE_OF_A_PAIR = 20


@cache
def of_pair(pair: tuple[str, str]) -> Sequence[TestCase]:
    """The tests of the pair alone, at level conflict."""
    found = generate(POSIX, [*dict.fromkeys(pair)], level="conflict").tests
    return [test for test in found if tuple(call.call for call in test.calls) == pair]


@cache
def sample() -> Sequence[TestCase]:
    """The same tests each time, some of every pair."""
    chance = random.Random(36)
    return [test for pair in PAIRS for test in chance.sample(of_pair(pair), min(len(of_pair(pair)), SAMPLE_OF_A_PAIR))]


@cache
def records() -> Sequence[WindowRecord]:
    """What Linux did in all orders of the sample."""
    target = LinuxTarget("linux", LinuxOptions())
    try:
        target.start(lambda _: None, 2)
        (session,) = target.sessions(1)
        return list(session.run([Job(test, order) for test in sample() for order in range(len(test.orders))]))
    finally:
        target.close()


def test_linux_does_what_the_model_says() -> None:
    wrong = {record.job.test.id: record.wrong or record.crashed for record in records()}
    assert {test_id: why for test_id, why in wrong.items() if why} == {}


def test_the_sample_uses_what_set_ups_and_observations_add() -> None:
    steps = {step.call for test in sample() for step in (*test.setup, *test.observe)}
    assert {"epoll_add", "peek_watches", "fork", "exit", "wait"} <= steps
    target = LinuxTarget("linux", LinuxOptions())
    assert all(target.implements(step.call, step.args) for test in sample() for step in (*test.calls, *test.observe))


def test_what_the_kernel_does_for_a_child_counts() -> None:
    """Two children that end take the lock of all tasks; nothing that their parents do in these calls does."""
    shared = {
        finding.name
        for record in records()
        if all(call.call == "exit" for call in record.job.test.calls)
        for finding in record.findings
    }
    assert "tasklist_lock" in shared
