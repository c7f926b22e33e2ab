"""The target `scalefs` as a whole: verdicts on the tests of `names`, and what happens when a program or we ourselves
end in the middle."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

import pytest

import commutant
from commutant import _native
from commutant.lang.load import load_interface
from commutant.mtrace.finding import Finding
from commutant.mtrace.trace import TracedWindow
from commutant.support.errors import RunError, UsageError
from commutant.targets.base import Job, WindowRecord
from commutant.targets.process import selftest
from commutant.targets.process.session import BATCH_WINDOWS, ProcessSession
from commutant.targets.registry import load_target
from commutant.targets.scalefs import ScaleFsTarget
from commutant.testgen import TestCase, generate
from tests.targets.handwritten import CREATE_CREATE, RIGHT, STAT_STAT, UNKNOWN_CALL, WRONG_COUNT, WRONG_INODE

EVENT_SECONDS = 60.0
EXPECTED_CONFLICTS = {("open", "open"): 2, ("open", "rename"): 4}
"""Tests of `names` that no implementation passes, by their calls; docs/notes/scalefs-sharing.md says why."""


def started(argument: str = "scalefs") -> ScaleFsTarget:
    target = load_target(argument)
    assert isinstance(target, ScaleFsTarget)
    target.start(lambda _: None, 2)
    return target


@pytest.fixture(scope="module")
def target() -> Iterator[ScaleFsTarget]:
    """The target, started: the self-test has passed."""
    target = started()
    yield target
    target.close()


@pytest.fixture
def session(target: ScaleFsTarget) -> Iterator[ProcessSession]:
    session = target.sessions(1)[0]
    yield session
    session.close()


def jobs(*tests: TestCase, times: int = 1) -> list[Job]:
    return [Job(test, order) for test in tests for order in range(len(test.orders))] * times


def has_ended(process: int) -> bool:
    """Whether a process has ended, or does so while we wait for it."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(EVENT_SECONDS * 1000))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    "argument",
    ["scalefs", "scalefs:cores=16,seed=2,warm=64", "scalefs:names=long,depth=4,users=2"],
)
def test_names_has_right_results_and_conflicts_only_where_expected(argument: str) -> None:
    """A conflict counts if three windows of each order have it, so hash collisions, which change, do not. What shares
    nothing in one window of an order cannot be one."""
    target = started(argument)
    try:
        (session,) = target.sessions(1)
        tests = generate(load_interface("names")).tests
        windows = Counter[str]()
        shared = Counter[str]()

        def run(tests: Sequence[TestCase], times: int) -> None:
            for record in session.run(jobs(*tests, times=times)):
                assert record.wrong is None, (record.job.test.id, record.wrong)
                windows[record.job.test.id] += 1
                shared[record.job.test.id] += bool(record.findings)

        run(tests, 1)
        run([test for test in tests if shared[test.id] == windows[test.id]], 2)
    finally:
        target.close()
    conflicting = [test for test in tests if shared[test.id] == windows[test.id]]
    assert Counter(tuple(call.call for call in test.calls) for test in conflicting) == EXPECTED_CONFLICTS
    collisions = sum(shared.values()) - sum(shared[test.id] for test in conflicting)
    assert collisions <= sum(windows.values()) // 100


def open_of_one_new_name_by_both() -> TestCase:
    return next(
        test
        for test in generate(load_interface("names"), ("open",)).tests
        if not test.setup
        and test.calls[0].args == test.calls[1].args
        and test.calls[0].args["creat"]
        and not test.calls[0].args["excl"]
    )


def test_the_bytes_of_a_long_name_are_an_object_of_their_own() -> None:
    target = started("scalefs:names=long")
    try:
        (session,) = target.sessions(1)
        (record,) = session.run([Job(open_of_one_new_name_by_both(), 0)])
    finally:
        target.close()
    assert {"directory bucket.first", "long name.bytes"} <= {finding.name for finding in record.findings}


def test_a_word_of_an_inode_has_its_name() -> None:
    """Two users make and open one file: the second asks for its permissions, which the first has just written."""
    target = started("scalefs:users=2")
    try:
        (session,) = target.sessions(1)
        (record,) = session.run([Job(open_of_one_new_name_by_both(), 0)])
    finally:
        target.close()
    (finding,) = [one for one in record.findings if one.object == "file"]
    words = {"number", "sequence of permissions", "access time", "mode", "owner", "group", "whether it had a name"}
    assert finding.field in words
    assert {f"file.{word}" for word in words} <= {one.name for one in finding.fields}


def test_a_finding_says_where_and_who(session: ProcessSession) -> None:
    (record,) = session.run([Job(open_of_one_new_name_by_both(), 0)])
    assert {"directory bucket.first", "directory entry.name"} <= {finding.name for finding in record.findings}
    for finding in record.findings:
        assert finding.object in {"directory bucket", "directory entry", "file", "maximum's slot", "count's slot"}
        assert finding.field and not finding.field.startswith("+") and finding.fields
        assert (finding.first.core, finding.second.core) == (0, 1)
        for access in (finding.first, finding.second):
            of_symbols = [frame for frame in access.stack if "+0x" in frame]
            assert of_symbols[0].startswith(f"{access.function}+0x")
            assert any(frame.startswith("commutant_scalefs_runner::calls::open_node+") for frame in of_symbols)
            in_source = ("crates/file-system/scalefs/src/", "crates/file-system/posix-calls/src/")
            assert any(frame.split(" ")[-1].startswith(in_source) for frame in access.stack)


def test_right_results_are_accepted_and_wrong_ones_named(session: ProcessSession) -> None:
    assert [record.wrong for record in session.run(jobs(*RIGHT))] == [None] * len(jobs(*RIGHT))
    records = list(session.run(jobs(WRONG_COUNT, CREATE_CREATE, WRONG_INODE, UNKNOWN_CALL)))
    assert [bool(record.wrong) for record in records] == [True, True, False, False, True, True, True, True]
    assert "unknown call fly" in str(records[-1].wrong)


def test_many_windows_cost_no_memory(session: ProcessSession) -> None:
    """Files are made and removed by one core here, so that their memory is used again at once."""

    def resident_pages() -> int:
        with open(f"/proc/{session.process_id}/statm") as statm:
            return int(statm.read().split()[1])

    for _ in session.run(jobs(STAT_STAT, times=500)):
        pass
    before = resident_pages()
    for _ in session.run(jobs(STAT_STAT, times=1500)):
        pass
    assert resident_pages() - before < 50


def test_a_run_that_is_not_read_to_its_end_leaves_the_session_usable(session: ProcessSession) -> None:
    next(session.run(jobs(CREATE_CREATE, times=2 * BATCH_WINDOWS)))
    records = list(session.run(jobs(WRONG_COUNT)))
    assert [record.job.test for record in records] == [WRONG_COUNT] * 2
    assert records[0].wrong


def test_a_killed_emulator_ends_the_run_with_its_signal(session: ProcessSession) -> None:
    records = session.run(jobs(CREATE_CREATE, times=2000))
    next(records)
    os.kill(session.process_id, signal.SIGKILL)
    with pytest.raises(RunError, match=rf"process {session.process_id}: .*killed by signal 9"):
        list(records)
    session.close()
    assert has_ended(session.process_id)


class _Poisoned:
    """A book in which one test makes the runner give up."""

    def __init__(self, registry: _native.TestBook, number: int) -> None:
        self._registry = registry
        self._number = number

    def __getattr__(self, name: str) -> object:
        return getattr(self._registry, name)

    def encode(self, windows: list[tuple[int, int]]) -> bytes:
        return b"no batch" if self._number in {number for number, _ in windows} else self._registry.encode(windows)


def test_a_program_that_dies_costs_the_window_that_kills_it(
    session: ProcessSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = jobs(CREATE_CREATE, times=10) + jobs(WRONG_COUNT) + jobs(CREATE_CREATE, times=BATCH_WINDOWS)
    monkeypatch.setattr(
        session._registry, "native", _Poisoned(session._registry.native, session._registry.number(WRONG_COUNT))
    )
    before = session.process_id
    records = list(session.run(asked))
    assert [record.job for record in records] == asked
    assert [record.job.test for record in records if record.crashed] == [WRONG_COUNT] * 2
    assert all("a batch: not a batch" in str(record.crashed) for record in records if record.crashed)
    assert all(record.wrong is None for record in records)
    assert session.process_id != before and has_ended(before)


def test_a_program_that_hangs_ends_the_run(session: ProcessSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commutant.targets.process.session._SILENCE_SECONDS", 0.2)
    os.kill(session.process_id, signal.SIGSTOP)
    with pytest.raises(RunError, match=r"no results after 0\.2 s"):
        list(session.run(jobs(CREATE_CREATE)))
    session.close()
    assert has_ended(session.process_id)


def test_a_session_closed_from_another_thread_stops_running(session: ProcessSession) -> None:
    records = session.run(jobs(CREATE_CREATE, times=100_000))
    next(records)
    closer = threading.Timer(0, session.close)
    closer.start()
    with pytest.raises(RunError, match="was closed"):
        list(records)
    closer.join()
    assert has_ended(session.process_id)
    session.close()


def test_sessions_leave_no_descriptors(target: ScaleFsTarget) -> None:
    target.sessions(1)[0].close()
    before = len(os.listdir("/proc/self/fd"))
    for session in target.sessions(2):
        list(session.run(jobs(CREATE_CREATE)))
        session.close()
    assert len(os.listdir("/proc/self/fd")) == before


_ENDLESS = """
import sys
sys.path[:0] = {path}
from commutant.targets.base import Job
from commutant.targets.registry import load_target
from tests.targets.handwritten import CREATE_CREATE
target = load_target("scalefs")
target.start(lambda _: None, 2)
(session,) = target.sessions(1)
print(session.process_id, flush=True)
for _ in session.run([Job(CREATE_CREATE, 0)] * 1_000_000):
    pass
"""


def test_our_own_death_takes_the_emulator_along() -> None:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = [os.path.dirname(os.path.dirname(commutant.__file__)), root]
    command = [sys.executable, "-c", _ENDLESS.format(path=path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        emulator = int(run.stdout.readline())
        run.kill()
    assert has_ended(emulator)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (
            "scalefs:fs=tmpfs",
            (
                "unknown option 'fs'; expected cores=N, seed=N, warm=N, tx=both|one, names=long, depth=N, users=N, "
                "neighbours=on, ignore_RULE=off"
            ),
        ),
        ("scalefs:cores=1", "cores=1: expected a number from 2 to 255"),
        ("scalefs:cores=two", "cores=two: expected a number"),
        ("scalefs:seed=-1", "seed=-1: expected a number from 0"),
        ("scalefs:warm=1", "warm=1: expected a number from 2 to 4096"),
        ("scalefs:names=short", "names=short: expected one of long"),
        ("scalefs:depth=65", "depth=65: expected a number from 2 to 64"),
        ("scalefs:users=1", "users=1: expected a number from 2 to 6"),
        (f"scalefs:seed={1 << 64}", "expected a number from 0 to 18446744073709551615"),
    ],
)
def test_bad_options_are_named(argument: str, message: str) -> None:
    with pytest.raises(UsageError, match="target 'scalefs:") as caught:
        load_target(argument)
    assert message in str(caught.value)


def test_more_calls_than_cores_are_refused() -> None:
    with pytest.raises(UsageError, match="a test has 3 calls: expected at most 2"):
        load_target("scalefs").start(lambda _: None, 3)


def test_the_calls_of_names_are_known_and_those_of_the_self_test_are_not() -> None:
    target = load_target("scalefs")
    calls = [("open", "name creat excl"), ("link", "old new"), ("rename", "src dst"), ("stat", "name")]
    assert all(target.implements(call, parameters.split()) for call, parameters in calls)
    assert not any(target.implements(call, ()) for call in ("fly", "count_shared", "count_per_core"))


class _Misjudging:
    """Gives the records of a real session, changed by a fault of the tracer."""

    def __init__(self, session: ProcessSession, findings: Sequence[Finding] | None, counted: tuple[int, ...]) -> None:
        self._session, self._findings, self._counted = session, findings, counted

    def run_traced(self, jobs: Sequence[Job]) -> Iterator[tuple[WindowRecord, TracedWindow]]:
        for record, traced in self._session.run_traced(jobs):
            findings = record.findings if self._findings is None else tuple(self._findings)
            window = TracedWindow(traced.sequence, findings, traced.ignored, self._counted)
            yield WindowRecord(record.job, findings, record.ignored, record.wrong), window


def test_the_self_test_finds_a_tracer_that_misjudges(session: ProcessSession) -> None:
    def check(findings: Sequence[Finding] | None, counted: tuple[int, ...]) -> None:
        selftest.check(cast(ProcessSession, _Misjudging(session, findings, counted)))

    (planted, _) = session.run(jobs(selftest.planted("count_shared")))
    check(None, (5, 5))
    with pytest.raises(RunError, match=r"count_shared: expected the shared line .* found nothing"):
        check([], (5, 5))
    with pytest.raises(RunError, match=r"count_per_core: expected no shared line, found .*PLANTED"):
        check(planted.findings, (5, 5))
    with pytest.raises(RunError, match="expected accesses on two cores"):
        check(None, (5, 0))
