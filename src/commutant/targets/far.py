"""A target that runs on the workers of a cluster: each batch of windows is a piece of work.

What is judged, and asked for again, is decided here, as with a target of this machine. A worker only runs windows, on
a session of its own that stays warm. A worker that dies costs its batch, which another one gets. All must run the same:
a worker whose kernel, emulator or package differs from that of the first is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any

from commutant.pool import CLUSTER, DaskExecutor
from commutant.support import OnProgress, Progress, RunError, UsageError, no_progress, plural
from commutant.targets.base import OF_MACHINE, Job, SequenceRecord, Session, Target, WindowRecord
from commutant.targets.registry import load_target


class FarTarget:
    """The target of an argument, on a cluster: that of `executor`, or one that is made once the target starts."""

    def __init__(self, near: Target, make: Callable[[], DaskExecutor], executor: DaskExecutor | None = None) -> None:
        self.argument = near.argument
        self.folder_name = getattr(near, "folder_name", near.argument)
        self.key_windows = getattr(near, "key_windows", 0)
        self._near = near
        self._make = make
        self._executor = executor
        self._is_owner = executor is None
        self._core_count = 0
        self._description: Mapping[str, object] = {}

    def implements(self, call: str, parameters: Iterable[str]) -> bool:
        """As the target here."""
        return self._near.implements(call, parameters)

    def start(self, on_progress: OnProgress, core_count: int) -> None:
        """Starts the target on a worker, which says what it is; others start it when they get their first batch."""
        self._core_count = core_count
        if self._executor is None:
            self._executor = self._make()
        workers = plural(self._executor.worker_count, "worker")
        on_progress(Progress(text=f"starting {self.argument} on {workers}"))
        self._description = _result(self._executor.submit(_describe, self.argument, core_count))

    def sessions(self, count: int) -> Sequence[Session]:
        """One for each worker, whatever the number of processors here."""
        return [FarSession(self._run_windows) for _ in range(self._started.worker_count)]

    @property
    def _started(self) -> DaskExecutor:
        assert self._executor is not None, "the target is started first"
        return self._executor

    def _run_windows(self, jobs: Sequence[Job]) -> Future[list[WindowRecord]]:
        return self._started.submit(_run_windows, self.argument, self._core_count, self._description, list(jobs))

    def reseeded(self) -> Sequence[Target]:
        """The others of the target here, on the same workers."""
        return [FarTarget(other, self._make, self._executor) for other in self._near.reseeded()]

    def describe(self) -> Mapping[str, object]:
        """What the first worker said."""
        return self._description

    def close(self) -> None:
        """Ends the target on all workers and leaves them."""
        if self._is_owner and self._executor is not None:
            self._executor.run_on_workers(close_warm)
            self._executor.shutdown(cancel_futures=True)
            self._executor = None


class FarSession:
    """Windows on whichever worker is free."""

    def __init__(self, submit: Callable[[Sequence[Job]], Future[list[WindowRecord]]]) -> None:
        self._submit = submit
        self._under_way: Future[list[WindowRecord]] | None = None
        self._is_closed = False

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        """The records of a batch, once all are there."""
        if self._is_closed:
            raise RunError("the session is closed")
        self._under_way = self._submit(jobs)
        yield from _result(self._under_way)

    def run_sequences(self, texts: Sequence[str]) -> Iterator[SequenceRecord]:
        """Not on a cluster."""
        raise UsageError("random sequences run on this machine alone; leave --executor out")

    def close(self) -> None:
        """Nobody waits for the batch under way any more."""
        self._is_closed = True
        if self._under_way is not None:
            self._under_way.cancel()


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except CancelledError:
        raise RunError("the session was closed") from None


def on_executor(near: Target, executor: str | None) -> Target:
    """The target where `--executor` has its pieces: on the workers of a cluster, or here."""
    if executor is None or not executor.startswith(CLUSTER):
        return near
    return FarTarget(near, partial(DaskExecutor, executor))


class _Warm:
    """On a worker: a target that was started, with one session, which one thread has at a time."""

    def __init__(self, argument: str, core_count: int) -> None:
        self.lock = threading.Lock()
        self.target = load_target(argument)
        try:
            self.target.start(no_progress, core_count)
            (self.session,) = self.target.sessions(1)
        except BaseException:
            self.target.close()
            raise


_starting = threading.Lock()
_warm: dict[tuple[str, int], _Warm] = {}  # guarded by the lock


def _warmed(argument: str, core_count: int) -> _Warm:
    with _starting:
        if (argument, core_count) not in _warm:
            _warm[argument, core_count] = _Warm(argument, core_count)
        return _warm[argument, core_count]


def _describe(argument: str, core_count: int) -> dict[str, object]:
    return dict(_warmed(argument, core_count).target.describe())


def _run_windows(
    argument: str, core_count: int, description: Mapping[str, object], jobs: Sequence[Job]
) -> list[WindowRecord]:
    """On a worker: the windows, on what is the same as on the first worker."""
    warm = _warmed(argument, core_count)
    own = warm.target.describe()
    for key in sorted((own.keys() | description.keys()) - OF_MACHINE):
        if own.get(key) != description.get(key):
            raise UsageError(
                f"a worker runs {argument} with {key} {own.get(key)!r:.80}, another with {description.get(key)!r:.80}; "
                "expected the same on all workers"
            )
    with warm.lock:
        return list(warm.session.run(jobs))


def close_warm() -> None:
    """On a worker: ends the targets that run there."""
    with _starting:
        while _warm:
            _, one = _warm.popitem()
            one.target.close()
