"""Windows on a real kernel, and what happens when machine, emulator or this program end in the middle.

The machine's snapshot is that of the user's cache folder: booted once, if at all.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from commutant import _native
from commutant.guest.emulator import find_emulator
from commutant.guest.snapshot import is_whole
from commutant.support.errors import RunError
from commutant.targets.base import Job, WindowRecord
from commutant.targets.linux import session as sessions
from commutant.targets.linux.session import LinuxSession
from commutant.targets.linux.target import LinuxOptions, LinuxTarget
from commutant.targets.linux.tracing import TracedMachine
from tests.targets.handwritten import CREATE_CREATE, RIGHT, STAT_STAT, UNKNOWN_CALL, WRONG_COUNT, WRONG_INODE

CORES = 2
EVENT_SECONDS = 60.0


@pytest.fixture(scope="module", params=["tmpfs", "ramfs"])
def target(request: pytest.FixtureRequest) -> Iterator[LinuxTarget]:
    """The target on each file system, started: the self-test has passed."""
    target = LinuxTarget(f"linux:fs={request.param}", LinuxOptions(request.param))
    target.start(lambda _: None, CORES)
    yield target
    target.close()


@pytest.fixture
def session(target: LinuxTarget) -> Iterator[LinuxSession]:
    """A session of its own."""
    (session,) = target.sessions(1)
    assert isinstance(session, LinuxSession)
    yield session
    session.close()


def _jobs(count: int) -> list[Job]:
    """Jobs of right tests, cycled."""
    tests = [Job(test, order) for test in RIGHT for order in range(len(test.orders))]
    return [tests[number % len(tests)] for number in range(count)]


def _run_one(session: LinuxSession) -> WindowRecord:
    (record,) = session.run(_jobs(1))
    return record


def _machine_id(session: LinuxSession) -> int:
    assert session.process_id is not None
    return session.process_id


def _has_ended(process_id: int) -> bool:
    """Waits until a process of anybody's has ended."""
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], EVENT_SECONDS)[0])
    finally:
        os.close(descriptor)


def test_windows_give_what_linux_does(session: LinuxSession) -> None:
    jobs = _jobs(300)
    records = list(session.run(jobs))
    assert [record.job for record in records] == jobs
    assert [record.wrong for record in records] == [None] * len(jobs)
    assert [record.crashed for record in records] == [None] * len(jobs)


def test_what_is_shared_is_named(session: LinuxSession) -> None:
    shared = list(session.run([Job(CREATE_CREATE, order) for order in (0, 1, 0, 1)]))
    for record in shared:
        names = " ".join(finding.name for finding in record.findings)
        assert "d_lockref" in names and "i_rwsem" in names
    stacks = [finding.first.stack for record in shared for finding in record.findings]
    assert any("openat" in frame for stack in stacks for frame in stack)


def test_wrong_results_are_told(session: LinuxSession) -> None:
    jobs = [Job(WRONG_COUNT, 0), Job(STAT_STAT, 0), Job(WRONG_INODE, 1), Job(UNKNOWN_CALL, 0), Job(STAT_STAT, 1)]
    wrong = [record.wrong for record in session.run(jobs)]
    assert wrong[0] is not None and "nlink: returned 1, acceptable is 2" in wrong[0]
    assert wrong[2] is not None and "order 1,0: call 1, stat" in wrong[2]
    assert wrong[3] == "not run: unknown call fly()"
    assert wrong[1] is None and wrong[4] is None


def test_the_target_knows_its_calls_and_describes_itself(target: LinuxTarget) -> None:
    assert target.implements("rename", ["dst", "src"])
    assert target.implements("open", ["name", "creat", "excl"])
    assert not target.implements("open", ["name", "creat"])
    assert not target.implements("fly", ())
    description = target.describe()
    words = str(description["kernel_command_line"]).split()
    assert f"commutant.fs={target.options.file_system}" in words
    assert description["qemu"] == find_emulator().version


class _Saboteur:
    """Tests in whose place one batch is sent that makes the runner give up, and so the guest's kernel panic."""

    def __init__(self, registry: _native.TestBook, batch: int) -> None:
        self._registry = registry
        self._batches_left = batch

    def __getattr__(self, name: str) -> object:
        return getattr(self._registry, name)

    def encode(self, windows: list[tuple[int, int]]) -> bytes:
        self._batches_left -= 1
        return b"no batch" if self._batches_left == 0 else self._registry.encode(windows)


def test_a_guest_that_panics_costs_one_window(session: LinuxSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session._registry, "native", _Saboteur(session._registry.native, 2))
    jobs = _jobs(4 * sessions.BATCH_WINDOWS)
    before = _machine_id(session)
    records = list(session.run(jobs))
    assert [record.job for record in records] == jobs
    crashed = [index for index, record in enumerate(records) if record.crashed]
    assert crashed == [sessions.BATCH_WINDOWS]
    text = records[crashed[0]].crashed
    assert text is not None and "Kernel panic" in text and "not a batch" in text
    assert all(record.wrong is None for record in records)
    assert _machine_id(session) != before and _has_ended(before)


def test_a_guest_that_hangs_costs_one_window(session: LinuxSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that comes after it has as long as ever: its first window may well take more than a second."""
    assert _run_one(session).crashed is None
    start, patience_seconds = session._start, sessions._SILENCE_SECONDS

    def start_patiently() -> TracedMachine:
        monkeypatch.setattr(sessions, "_SILENCE_SECONDS", patience_seconds)
        return start()

    monkeypatch.setattr(session, "_start", start_patiently)
    monkeypatch.setattr(sessions, "_SILENCE_SECONDS", 1.0)
    session.monitor.execute("stop")
    records = list(session.run(_jobs(20)))
    assert [bool(record.crashed) for record in records] == [True] + [False] * 19
    assert records[0].crashed is not None and "nothing after 1 s" in records[0].crashed


def test_a_run_that_is_not_read_to_its_end_does_not_disturb_the_next(session: LinuxSession) -> None:
    next(session.run(_jobs(500)))
    jobs = _jobs(10)
    assert [record.job for record in session.run(jobs)] == jobs


def test_a_killed_emulator_ends_the_session_with_one_line(session: LinuxSession) -> None:
    records = session.run(_jobs(1000))
    next(records)
    killed = _machine_id(session)
    os.kill(killed, signal.SIGKILL)
    with pytest.raises(RunError, match=rf"QEMU \(process {killed}\) was killed by signal 9"):
        list(records)
    session.close()
    assert _has_ended(killed)


def test_a_session_closed_from_another_thread_stops_running(session: LinuxSession) -> None:
    records = session.run(_jobs(100_000))
    next(records)
    machine = _machine_id(session)
    closer = threading.Timer(0, session.close)
    closer.start()
    with pytest.raises(RunError, match="was closed"):
        list(records)
    closer.join()
    assert _has_ended(machine)
    session.close()


def test_sessions_leave_no_descriptors(target: LinuxTarget) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    target.sessions(1)[0].close()
    before = descriptors()
    for session in target.sessions(2):
        assert _run_one(session).wrong is None
        session.close()
    assert descriptors() == before


def test_a_damaged_snapshot_is_noticed(target: LinuxTarget, tmp_path: Path) -> None:
    assert target.snapshot is not None
    whole = target.snapshot.folder
    assert is_whole(whole)
    copy = tmp_path / "snapshot"
    shutil.copytree(whole, copy)
    assert is_whole(copy)
    with (copy / "state").open("r+b") as file:
        file.seek(12345)
        byte = file.read(1)
        file.seek(12345)
        file.write(bytes([byte[0] ^ 1]))
    assert not is_whole(copy)
    (copy / "state").unlink()
    assert not is_whole(copy)


PROGRAM = """
import sys
from commutant.targets.registry import load_target
target = load_target("linux")
target.start(lambda _: None, 2)
(session,) = target.sessions(1)
print(session.process_id, flush=True)
sys.stdin.read()
"""


def test_the_emulator_ends_with_this_program_even_if_that_is_killed() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with program:
        assert program.stdout is not None
        machine = int(program.stdout.readline())
        program.kill()
        assert _has_ended(machine)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_campaign_without_leftovers(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "commutant", "check", "names", "--target", "linux", "-o", str(tmp_path / "run")]
    # A session of its own, so that all of its descendants can be found by its number.
    program = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with program:
        machines: list[int] = []
        while not machines and program.poll() is None:
            machines = [child for child in _children(program.pid) if "qemu" in _name(child)]
        assert machines
        program.send_signal(number)
        _, messages = program.communicate(timeout=EVENT_SECONDS)
    assert all(_has_ended(machine) for machine in machines)
    assert "Traceback" not in messages
    assert program.returncode == 130 if number == signal.SIGINT else program.returncode != 0


def _children(process_id: int) -> list[int]:
    children: list[int] = []
    try:
        for task in os.listdir(f"/proc/{process_id}/task"):
            children += map(int, Path(f"/proc/{process_id}/task/{task}/children").read_text().split())
    except OSError:
        pass  # it has just ended
    return children


def _name(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/comm").read_text()
    except OSError:
        return ""
