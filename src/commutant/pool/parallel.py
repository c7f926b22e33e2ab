"""Independent pieces of work over a `concurrent.futures.Executor`, dear ones first, with progress; results in order.

By default that is a pool of processes on this machine; little work stays in this process. The pool's workers are
forked, so that models loaded from files need no second loading. They leave SIGINT to the parent, which ends them and
lets the interrupt through. Any other executor gets the same pieces: a function of this package by name, and a model by
where it was loaded from (`ModelReference`); a cluster (`cluster`) gets models themselves, and neighbours together.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import nullcontext, suppress
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from commutant.pool.cluster import CLUSTER, DaskExecutor
from commutant.pool.neighbours import Neighbours, in_stretches
from commutant.support import OnProgress, Progress, RunError, UsageError, die_with, no_progress

W = TypeVar("W")
R = TypeVar("R")


MakeExecutor = Callable[[int], Executor]
"""Makes an executor for this many pieces at a time."""


EXECUTORS = ("process", "thread", "serial")
"""The executors that `executor_named` knows by name; others are `dask://HOST:PORT` and `module:callable`."""

STRETCHES_PER_WORKER = 8
"""A cluster is given this many stretches of pieces for each of its workers: what one has found out it knows for the
next piece, and the last stretches are short."""

FEW = 24
"""With fewer pieces than this, starting processes costs more than it gains."""


class Serial(Executor):
    """Runs each piece when it is submitted, in this thread."""

    def submit(self, function: Callable[..., R], /, *arguments: Any, **named: Any) -> Future[R]:
        """The finished piece; an exception of the piece goes through."""
        future: Future[R] = Future()
        future.set_result(function(*arguments, **named))
        return future


def executor_named(name: str) -> MakeExecutor:
    """What makes the executor of this name: one of EXECUTORS, `dask://HOST:PORT`, or `module:callable`, which is called
    with the number of pieces to run at a time and returns a `concurrent.futures.Executor`.

    Raises UsageError if there is no such callable, and later if what it returns is no executor.
    """
    if name == "process":
        return _processes
    if name == "thread":
        return ThreadPoolExecutor
    if name == "serial":
        return lambda jobs: Serial()
    if name.startswith(CLUSTER):
        return lambda jobs: DaskExecutor(name)
    module_name, colon, attribute = name.partition(":")
    known = ", ".join([*EXECUTORS, f"{CLUSTER}HOST:PORT"])
    expected = f"expected {known}, or module:callable that returns a concurrent.futures.Executor"
    if not colon or not module_name or not attribute:
        raise UsageError(f"unknown executor {name!r}: {expected}")
    try:
        make = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"executor {name!r}: {error}; {expected}") from None

    def made(jobs: int) -> Executor:
        try:
            executor = make(jobs)
        except Exception as error:  # a function of anybody's
            raise UsageError(f"executor {name!r}: {type(error).__name__}: {error}; {expected}") from error
        if not isinstance(executor, Executor):
            raise UsageError(f"executor {name!r} returned {type(executor).__name__}: {expected}")
        return executor

    return made


def map_in_processes(
    function: Callable[[W], R],
    pieces: Sequence[W],
    jobs: int = 1,
    on_progress: OnProgress = no_progress,
    *,
    make_executor: MakeExecutor | None = None,
    costs: Sequence[float] | None = None,
    order: Sequence[int] | None = None,
    name: Callable[[W], str] = str,
    on_result: Callable[[int, R], None] = lambda number, result: None,
) -> list[R]:
    """`[function(piece) for piece in pieces]`; the first exception of a piece is raised.

    `on_result` is given the number of each piece with what came of it, as soon as that is there.
    `make_executor`: None is the pool of processes, if there is enough to do. `costs` estimates what the pieces take;
    pieces that are near each other in `order` have much in common. `name` is what a piece is called if a process ends
    at it, which is a RunError.
    """
    if make_executor is None:
        make_executor = _processes if jobs > 1 and len(pieces) >= FEW else executor_named("serial")
    others = set(multiprocessing.active_children())
    plan = None  # of pieces that workers choose by themselves
    if make_executor is _processes:
        plan = Neighbours(order or range(len(pieces)), costs or [1.0] * len(pieces), jobs)
        executor: Executor = _processes(jobs, _Offer(plan, pieces))
    else:
        executor = make_executor(jobs)
    results: dict[int, R] = {}
    workers: set[BaseProcess] = set()

    def take(found: Iterable[tuple[int, R]]) -> None:
        for number, result in found:
            results[number] = result
            on_result(number, result)
            on_progress(Progress(len(results), len(pieces)))

    try:
        numbers: dict[Future[Any], Sequence[int]] = {}
        future: Future[Any]
        # A process whose piece ended it would break the pool. One that breaks while it is given more may lose the
        # thread that says so to those who wait.
        with plan.closed() if plan else nullcontext():
            for stretch in _stretches_for(executor, len(pieces), costs, order):
                if plan:
                    try:
                        future = executor.submit(_chosen, function)
                    except BrokenExecutor:
                        if not numbers:
                            raise
                        break  # somebody has killed a process: those that are under way say so
                    if len(workers) < jobs:  # now, since one that has ended is not among the children later
                        workers |= set(multiprocessing.active_children()) - others
                else:
                    future = _submitted(executor, function, [pieces[number] for number in stretch])
                if isinstance(executor, Serial):
                    take(zip(stretch, future.result(), strict=True))
                else:
                    numbers[future] = stretch
        for future in _as_completed(numbers):
            try:
                take([future.result()] if plan else zip(numbers[future], future.result(), strict=True))
            except (BrokenExecutor, CancelledError) as error:
                if plan:
                    executor.shutdown()
                    # A piece that was handed out at that moment may never be answered: none is waited for.
                    ended = (future for future in numbers if future.done() and not future.cancelled())
                    done = {future.result()[0] for future in ended if future.exception() is None}
                    raise _ended(workers, [name(pieces[number]) for number in plan.taken - done]) from error
                raise _failed(executor, "did not finish a piece of work", error) from error
    except BaseException:
        # A piece may take long, or never end: a caller that waits no more ends the workers.
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        executor.shutdown(wait=True, cancel_futures=True)
        raise
    executor.shutdown()
    return [results[number] for number in range(len(pieces))]


def _each(function: Callable[[W], R], pieces: Sequence[W]) -> list[R]:
    return [function(piece) for piece in pieces]


def _stretches_for(
    executor: Executor, count: int, costs: Sequence[float] | None, order: Sequence[int] | None
) -> Sequence[Sequence[int]]:
    """Which pieces are handed out together: neighbours, to a cluster; else each by itself, dear ones first."""
    if isinstance(executor, DaskExecutor) and count:
        parts = executor.worker_count * STRETCHES_PER_WORKER
        stretches = in_stretches(order or range(count), costs or [1.0] * count, parts)
        return [stretch for stretch in stretches if stretch]
    in_turn = range(count) if isinstance(executor, Serial) else _expensive_first(costs, count)
    return [(number,) for number in in_turn]


_LONGEST_WAIT_SECONDS = 0.5


def _as_completed(futures: Iterable[Future[Any]]) -> Iterator[Future[Any]]:
    """The futures as they are done.

    Python looks for signals before it waits, and one that comes just then does not end a wait without limit: with
    `concurrent.futures.as_completed`, Ctrl-C would be lost now and then.
    """
    futures = list(futures)
    done: SimpleQueue[Future[Any]] = SimpleQueue()
    for future in futures:
        future.add_done_callback(done.put)
    for _ in futures:
        found = None
        while found is None:
            with suppress(Empty):
                found = done.get(timeout=_LONGEST_WAIT_SECONDS)
        yield found


def _expensive_first(costs: Sequence[float] | None, count: int) -> Sequence[int]:
    return range(count) if costs is None else sorted(range(count), key=lambda number: -costs[number])


def _submitted(executor: Executor, function: Callable[[Any], Any], pieces: Sequence[Any]) -> Future[Any]:
    """The pieces under way; UsageError for an executor, which may be anybody's, that does not take them."""
    if isinstance(executor, Serial):
        return executor.submit(_each, function, pieces)
    try:
        future = executor.submit(_each, function, pieces)
    except Exception as error:
        raise _failed(executor, "did not take a piece of work", error) from error
    if not isinstance(future, Future):
        raise _failed(executor, "did not take a piece of work", TypeError(f"submit returned {type(future).__name__}"))
    return future


def _failed(executor: Executor, what: str, error: Exception) -> UsageError:
    kind = type(executor)
    return UsageError(
        f"executor {kind.__module__}:{kind.__qualname__} {what}: {type(error).__name__}: {error}; "
        "expected a concurrent.futures.Executor that runs what it is given"
    )


def _ended(workers: Iterable[BaseProcess], under_way: Sequence[str]) -> RunError:
    """A process of our own pool has ended; the pool has then ended the others, by SIGTERM."""
    codes = [code for worker in workers if (code := worker.exitcode) not in (None, 0, -signal.SIGTERM)]
    known = {-one.value: one.name for one in signal.Signals}
    how = "".join(f" with {known.get(code, f'exit code {code}')}" for code in codes[:1])
    return RunError(
        f"a process that worked on {' or '.join(under_way)} ended{how}: the model ended it, or the system for want of "
        "memory, of which fewer --jobs take less"
    )


class _Offer(NamedTuple):
    """What the workers of a pool choose from; they have it by being forked."""

    plan: Neighbours
    pieces: Sequence[Any]


_offered: tuple[_Offer, int] | None = None
"""In a worker that chooses: from what, and the number of the worker."""


def _processes(jobs: int, offer: _Offer | None = None) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("fork")
    return ProcessPoolExecutor(jobs, context, initializer=_begin_work, initargs=(os.getpid(), offer))


def _begin_work(parent: int, offer: _Offer | None) -> None:
    """Ends with the parent, and leaves interrupts to it. What it has brought into being is no garbage, and pieces make
    little of it."""
    global _offered
    die_with(parent)
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if offer is not None:
        _offered = offer, offer.plan.enter()


def _chosen(function: Callable[[Any], R]) -> tuple[int, R]:
    """Does the piece that this worker chooses: its number, and what came of it."""
    assert _offered is not None
    offer, worker = _offered
    number = offer.plan.take(worker)
    return number, function(offer.pieces[number])
