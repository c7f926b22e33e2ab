"""The target `plain`: results are judged as elsewhere, and that nothing is shared means nothing there."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import pytest
from click.testing import CliRunner

from commutant.cli.main import cli
from commutant.lang.load import load_interface
from commutant.support.errors import RunError, UsageError
from commutant.targets.base import Job, WindowRecord
from commutant.targets.plain import PlainTarget
from commutant.targets.process import selftest
from commutant.targets.process.session import ProcessSession
from commutant.targets.registry import TARGETS, load_target
from commutant.testgen import TestCase, generate
from tests.targets.handwritten import CREATE_CREATE, RIGHT, UNKNOWN_CALL, WRONG_COUNT, WRONG_INODE


@pytest.fixture(scope="module")
def target() -> Iterator[PlainTarget]:
    """The target, started: the self-test has passed."""
    target = load_target("plain")
    assert isinstance(target, PlainTarget)
    target.start(lambda _: None, 2)
    yield target
    target.close()


@pytest.fixture
def session(target: PlainTarget) -> Iterator[ProcessSession]:
    session = target.sessions(1)[0]
    yield session
    session.close()


def jobs(*tests: TestCase, times: int = 1) -> list[Job]:
    return [Job(test, order) for test in tests for order in range(len(test.orders))] * times


@pytest.mark.parametrize("calls", [None, ["mmap", "munmap", "memwrite"], ["pipe", "read", "write", "close"]])
def test_all_results_are_right_and_all_calls_known(session: ProcessSession, calls: list[str] | None) -> None:
    tests = generate(load_interface("posix18" if calls else "names"), calls=calls).tests
    records = list(session.run(jobs(*tests)))
    assert [(record.job.test.id, record.wrong) for record in records if record.wrong] == []
    assert len(records) > 100 and not any(record.findings or record.crashed for record in records)


def test_right_results_are_accepted_and_wrong_ones_named(session: ProcessSession) -> None:
    assert [record.wrong for record in session.run(jobs(*RIGHT))] == [None] * len(jobs(*RIGHT))
    records = list(session.run(jobs(WRONG_COUNT, CREATE_CREATE, WRONG_INODE, UNKNOWN_CALL)))
    assert [bool(record.wrong) for record in records] == [True, True, False, False, True, True, True, True]


def test_the_calls_of_the_self_test_are_no_interface_s(target: PlainTarget) -> None:
    assert target.implements("rename", ["src", "dst"]) and target.implements("memwrite", ["data", "address"])
    assert not target.implements("rename", ["src"]) and not target.implements("count_shared", [])


def test_users_are_told_that_sharing_is_not_seen(target: PlainTarget) -> None:
    assert "conflict-free means nothing" in str(target.describe()["limits"])


def test_options_and_large_tests_are_refused() -> None:
    with pytest.raises(UsageError, match=r"'plain:cores=2': unknown option 'cores'; expected tx=both\|one"):
        load_target("plain:cores=2")
    with pytest.raises(UsageError, match="a test has 99 calls: expected at most"):
        load_target("plain").start(lambda _: None, 99)
    with pytest.raises(RunError, match="has not been started"):
        load_target("plain").sessions(1)


def test_a_killed_runner_ends_the_run_with_its_signal(session: ProcessSession) -> None:
    records = session.run(jobs(CREATE_CREATE, times=2000))
    next(records)
    os.kill(session.process_id, signal.SIGKILL)
    with pytest.raises(RunError, match=rf"plain, process {session.process_id}: .*killed by signal 9"):
        list(records)


class _Misjudging:
    """A session that says the same of each window."""

    def __init__(self, wrong: str | None) -> None:
        self._wrong = wrong

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        return iter([replace(WindowRecord(job), wrong=self._wrong) for job in jobs])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "expected a planted wrong result to be noticed, got acceptable ones"),
        ("call 0: returned 1", "expected acceptable results, got call 0: returned 1"),
    ],
)
def test_the_self_test_finds_a_judge_that_misjudges(wrong: str | None, message: str) -> None:
    with pytest.raises(RunError, match=f"^self-test: {message}$"):
        selftest.check_judgement(cast(ProcessSession, _Misjudging(wrong)))


@pytest.mark.parametrize("verb", ["check", "conform"])
def test_the_help_of_a_verb_names_every_target(verb: str) -> None:
    text = CliRunner().invoke(cli, [verb, "--help"]).output
    assert [name for name in TARGETS if name not in text.split("Examples")[0]] == []
