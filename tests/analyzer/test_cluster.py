"""`dask://HOST:PORT`: a scheduler and two workers of this machine give what this process gives, also if one dies."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commutant.analyzer import analyze, executor_named
from commutant.lang import Interface, load_interface
from commutant.pool import cluster
from commutant.pool.parallel import map_in_processes
from commutant.runs import Check
from commutant.support import OnProgress, Progress, RunError, UsageError
from commutant.targets import far, load_target, on_executor
from commutant.testgen import generate

ROOT = Path(__file__).parents[2]


class Cluster:
    """A scheduler and workers, each a process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        host, _, port = self.address.partition(":")
        often = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
        self._start("scheduler", "--host", host, "--port", port, "--no-dashboard", **often)
        until = time.monotonic() + 120
        while not self._answers() and time.monotonic() < until:
            time.sleep(0.1)
        self.workers = [self.start_worker(), self.start_worker()]

    def _answers(self) -> bool:
        host, _, port = self.address.partition(":")
        with socket.socket() as one:
            return one.connect_ex((host, int(port))) == 0

    def start_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        alone = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self._folder))
        return self._start("worker", f"tcp://{self.address}", *alone, **environment)

    def _start(self, what: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), **environment}
        with (self._folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "distributed.cli.dask_" + what, *arguments]
            process = subprocess.Popen(command, env=variables, cwd=self._folder, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    one = Cluster(tmp_path_factory.mktemp("cluster"))
    yield one
    one.close()


MODEL = """
from commutant.lang import Interface, call

class Counter(Interface):
    value: int

    @call
    def add(self, amount: int) -> None:
        self.value += amount

    @call
    def get(self) -> int:
        return self.value
"""


def test_a_model_of_a_file_goes_with_its_text(running: Cluster, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    model = load_interface(str(tmp_path / "model.py"))
    (tmp_path / "model.py").rename(tmp_path / "moved.py")  # a worker on another machine has no such file
    (tmp_path / "model.py").write_text(MODEL)
    sets = analyze(model, detail="conditions", make_executor=executor_named(f"dask://{running.address}")).sets
    assert [one.conditions for one in sets] == [["always"], ["amount.0 = 0"], ["always"]]
    assert [one.interface for one in sets] == [model] * 3


def sent_model(file: Path) -> type[Interface]:
    """What a worker makes of a model that another process sends."""
    question = "import sys; from commutant.lang import *; print(model_hash(load_interface(sys.argv[1])))"
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(file.parent)])}
    command = [sys.executable, "-c", question, str(file)]
    digest = subprocess.run(command, env=variables, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    return cluster._sent_model(f"{file}:Counter", digest, file.read_text()).model


def test_what_a_model_imports_is_loaded_again_after_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cluster, "_models", {})
    (tmp_path / "model.py").write_text(f"from step_of_a_counter import STEP\n{MODEL}\n    step = STEP\n")
    (tmp_path / "step_of_a_counter.py").write_text("STEP = 1\n")
    first = sent_model(tmp_path / "model.py")
    (tmp_path / "step_of_a_counter.py").write_text("STEP = 1_000\n")
    second = sent_model(tmp_path / "model.py")
    assert (first.step, second.step) == (1, 1000)  # type: ignore[attr-defined]
    assert sent_model(tmp_path / "model.py") is second


def dask(running: Cluster) -> str:
    return f"dask://{running.address}"


def test_a_worker_that_is_killed_costs_nothing_but_time(running: Cluster) -> None:
    model = load_interface("names")
    local = generate(model)
    victim = running.workers.pop()

    def kill(progress: Progress) -> None:
        assert progress.done < progress.total or victim.poll() is not None, "it dies in the middle"
        victim.kill()

    remote = generate(model, on_progress=kill, make_executor=executor_named(dask(running)))
    assert victim.wait(10) == -signal.SIGKILL
    assert remote == local
    running.workers.append(running.start_worker())


@pytest.mark.parametrize("argument", ["plain", "scalefs"])  # windows of the second one are traced
def test_tests_are_run_by_workers_as_here(running: Cluster, tmp_path: Path, argument: str) -> None:
    corpus = generate(load_interface("names"), ["link", "unlink"])
    judged, descriptions = [], []
    for name, executor in (("here", None), ("there", dask(running))):
        target = on_executor(load_target(argument), executor)
        with Check.new(corpus, target, jobs=2, directory=tmp_path / name) as check:
            check.start()
            run = check.run()
        judged.append({verdict.test_id: verdict for verdict in run.verdicts()})
        descriptions.append(run.info.target_description)
    assert judged[0] == judged[1]
    assert len(judged[0]) == len(corpus.tests) > 0
    assert descriptions[0] == descriptions[1]
    executor = cluster.DaskExecutor(dask(running))
    assert list(executor._client.run(warm_count).values()) == [0, 0]
    executor.shutdown()


def warm_count() -> int:
    return len(far._warm)


class FakeTarget:
    """What a worker keeps, which says that it was ended."""

    def __init__(self, argument: str) -> None:
        self.is_closed = False

    def start(self, on_progress: OnProgress, core_count: int) -> None:
        pass

    def sessions(self, count: int) -> list[str]:
        return ["session"]

    def close(self) -> None:
        self.is_closed = True


def test_the_end_of_a_client_ends_nothing_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far, "load_target", FakeTarget)
    monkeypatch.setattr(far, "_warm", {})
    one, other = (far._warmed(client, "fake", 1) for client in ("one", "other"))
    with one.lock:  # a batch is under way
        ending = threading.Thread(target=lambda: asyncio.run(far.close_warm("one")))
        ending.start()
        ending.join(0.2)
        assert not one.target.is_closed  # type: ignore[attr-defined]
    ending.join()
    assert [one.target.is_closed, other.target.is_closed] == [True, False]  # type: ignore[attr-defined]
    assert far._warmed("other", "fake", 1) is other


def test_what_a_killed_client_left_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far, "load_target", FakeTarget)
    monkeypatch.setattr(far, "_warm", {})
    left, busy = (far._warmed(client, "fake", 1) for client in ("left", "busy"))
    monkeypatch.setattr(far, "LEFT_SECONDS", -1.0)
    with busy.lock:
        far._warmed("new", "fake", 1)
    assert [left.target.is_closed, busy.target.is_closed] == [True, False]  # type: ignore[attr-defined]


def test_a_worker_with_another_version_is_refused(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_ROOMS", ("lang",))
    cluster.here.cache_clear()
    with pytest.raises(
        UsageError, match=r"worker tcp://.* has another version of Commutant or Python .*; install the s"
    ):
        executor_named(dask(running))(1)
    cluster.here.cache_clear()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dask://", "executor 'dask://': expected dask://HOST:PORT"),
        ("dask://host", "expected dask://HOST:PORT"),
        ("dask://host:port", "expected dask://HOST:PORT"),
        (
            "dask://localhost:99999",
            "expected dask://HOST:PORT with a port from 1 to 65535",
        ),
        ("dask://localhost:0", "expected dask://HOST:PORT with a port from 1 to 65535"),
        ("dask://127.0.0.1:1", "executor dask://127.0.0.1:1: no scheduler answers"),
    ],
)
def test_no_scheduler(name: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    with pytest.raises(UsageError) as caught:
        executor_named(name)(1)
    assert expected in str(caught.value)


def refuse_the_third(number: int) -> int:
    if number == 3:
        raise UsageError("three is not to be had")
    return number


def end_at_the_third(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_an_error_of_a_piece_comes_through(running: Cluster) -> None:
    with pytest.raises(UsageError, match=r"^three is not to be had$"):
        map_in_processes(refuse_the_third, range(10), make_executor=executor_named(dask(running)))


def test_a_piece_that_ends_workers_is_given_up(running: Cluster) -> None:
    with pytest.raises(RunError, match="workers ended at one piece of work"):
        map_in_processes(end_at_the_third, range(10), make_executor=executor_named(dask(running)))
    assert [worker.wait(10) for worker in running.workers] == [-signal.SIGKILL] * 2
    running.workers = [running.start_worker(), running.start_worker()]


def test_a_cluster_whose_workers_are_gone_is_left(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WORKER_SECONDS", 30.0)
    executor = executor_named(dask(running))(1)
    monkeypatch.setattr(cluster, "WORKER_SECONDS", 0.5)
    for worker in running.workers:
        worker.kill()
        worker.wait()
    future = executor.submit(slowly, 1)
    with pytest.raises(RunError, match="no worker is left"):
        future.result(60)
    executor.shutdown()
    with pytest.raises(UsageError, match=r"no worker came in 0.5 s; `dask worker 127.*--nthreads 1` starts one"):
        executor_named(dask(running))(1)
    running.workers = [running.start_worker(), running.start_worker()]


def test_a_scheduler_that_goes_away_ends_the_work(running: Cluster) -> None:
    def kill(progress: Progress) -> None:
        running.processes[0].kill()

    with pytest.raises(RunError, match="the scheduler went away"):
        map_in_processes(slowly, range(40), on_progress=kill, make_executor=executor_named(dask(running)))


def slowly(number: int) -> int:
    time.sleep(0.3)
    return number
