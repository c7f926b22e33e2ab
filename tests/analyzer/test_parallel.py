"""Work over processes: order, errors, and an interrupt that leaves no process behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import commutant
from commutant.analyzer import analyze, executor_named
from commutant.lang import load_interface
from commutant.pool.parallel import map_in_processes
from commutant.pool.reference import ModelReference, name_of_set
from commutant.support import Progress
from commutant.support.errors import RunError, UsageError


def double(number: int) -> int:
    return 2 * number


def refuse_the_tenth(number: int) -> int:
    if number == 10:
        raise UsageError("ten is not to be had")
    return number


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 100])
def test_results_come_in_order_with_progress(jobs: int, count: int) -> None:
    seen: list[Progress] = []
    results = map_in_processes(double, range(count), jobs, seen.append)
    assert results == [2 * number for number in range(count)]
    assert seen == [Progress(number + 1, count) for number in range(count)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_a_piece_comes_through(jobs: int) -> None:
    with pytest.raises(UsageError, match=r"^ten is not to be had$"):
        map_in_processes(refuse_the_tenth, range(100), jobs)


def test_dear_pieces_begin_first() -> None:
    order: list[int] = []
    costs = [1.0, 5.0, 3.0]
    results = map_in_processes(lambda n: order.append(n) or n, range(3), make_executor=one_thread, costs=costs)
    assert (order, results) == ([1, 2, 0], [0, 1, 2])


def one_thread(_: int) -> Executor:
    return executor_named("thread")(1)


def fresh_processes(jobs: int) -> Executor:
    """Workers that know nothing of this process, as those of a cluster."""
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))


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


@pytest.mark.parametrize("name", ["process", "thread", "serial", f"{__name__}:fresh_processes"])
def test_every_executor_gives_the_same_analysis(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    model = load_interface(str(tmp_path / "model.py"))
    sets = analyze(model, detail="conditions", jobs=2, make_executor=executor_named(name)).sets
    assert [one.conditions for one in sets] == [["always"], ["amount.0 = 0"], ["always"]]
    assert [one.interface for one in sets] == [model] * 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nope", "unknown executor 'nope'"),
        ("nope:", "unknown executor 'nope:'"),
        ("no_such_module:make", "executor 'no_such_module:make': No module named 'no_such_module'"),
        ("os:no_such_name", "executor 'os:no_such_name': module 'os' has no attribute 'no_such_name'"),
    ],
)
def test_no_such_executor(name: str, expected: str) -> None:
    known = "process, thread, serial, dask://HOST:PORT, or module:callable"
    with pytest.raises(UsageError, match=f"expected {known}") as caught:
        executor_named(name)
    assert str(caught.value).startswith(expected)


def test_a_callable_that_fails_is_named() -> None:
    """It was called a defect of this package."""
    with pytest.raises(UsageError, match=r"executor 'os:getcwd': TypeError: .*; expected process"):
        map_in_processes(double, range(3), make_executor=executor_named("os:getcwd"))


def test_what_is_no_executor_is_refused() -> None:
    with pytest.raises(UsageError, match=r"returned int: expected"):
        map_in_processes(double, range(3), make_executor=executor_named("builtins:abs"))


class Refusing(Executor):
    """Takes nothing."""

    def submit(self, *_: object, **__: object) -> Any:
        raise ConnectionError("nobody there")


class Careless(Executor):
    """Runs at once, and returns the result instead of a future."""

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Any:
        return function(*arguments)


class Dying(Executor):
    """Loses what it was given."""

    def submit(self, *_: object, **__: object) -> Any:
        future: Future[None] = Future()
        future.set_exception(BrokenExecutor("a worker ended"))
        return future


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Refusing, "did not take a piece of work: ConnectionError: nobody there; expected"),
        (Careless, "did not take a piece of work: TypeError: submit returned list; expected"),
        (Dying, "did not finish a piece of work: BrokenExecutor: a worker ended; expected"),
    ],
)
def test_an_executor_that_fails_is_named(kind: type[Executor], expected: str) -> None:
    """An exception of `submit` was called a defect of this package."""
    with pytest.raises(UsageError, match=f"{kind.__name__} {expected}"):
        map_in_processes(double, range(3), make_executor=lambda _: kind())


def end_at_the_tenth(number: int) -> int:
    if number == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_process_that_ends_is_told_with_what_it_worked_on() -> None:
    """As one of which memory takes too much: the pool was called an executor that does not do what it should."""
    with pytest.raises(RunError, match=r"^a process that worked on .*\bpiece 10\b.* ended with SIGKILL: the model"):
        map_in_processes(end_at_the_tenth, range(100), 2, name=lambda number: f"piece {number}")
    assert not multiprocessing.active_children()


def end_at_once(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_process_may_end_while_work_is_still_handed_out() -> None:
    """The pool, broken by then, refused the next piece; or its thread ended at a dictionary that grew under it."""
    with pytest.raises(RunError, match=r"^a process that worked on .*\bended with SIGKILL: the model"):
        map_in_processes(end_at_once, range(30_000), 2)
    assert not multiprocessing.active_children()


def test_a_set_of_calls_has_a_name(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    work = (ModelReference(load_interface(str(path))), ("add", "get"), "counts")
    assert name_of_set(work) == f"add, get of {path}:Counter"


PROGRAM = """
import os, sys
from commutant.pool.parallel import map_in_processes
from commutant.pool.reference import ModelReference, name_of_set

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
    """Two workers, each busy forever with its first piece; then Ctrl-C."""
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
