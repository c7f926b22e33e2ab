"""A target that runs on the workers of a cluster: each batch of windows is a piece of work.

What is judged, and asked for again, is decided here, as with a target of this machine. A worker only runs windows, on
a session of its own that stays warm. A worker that dies costs its batch, which another one gets. All must run the same:
a worker whose kernel, emulator or package differs from that of the first is refused.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any

from commutant.pool import CLUSTER, DaskExecutor
from commutant.support import OnProgress, Progress, RunError, UsageError, no_progress, plural
from commutant.targets.base import OF_MACHINE, Job, SequenceRecord, Session, Target, WindowRecord
from commutant.targets.registry import load_target

LEFT_SECONDS = 600.0
"""So long a worker keeps a target that nothing asks for."""


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
        executor = self._executor
        on_progress(Progress(text=f"starting {self.argument} on {plural(executor.worker_count, 'worker')}"))
        self._description = _result(executor.submit(_describe, executor.client_id, self.argument, core_count))

    def sessions(self, count: int) -> Sequence[Session]:
        """One for each worker, whatever the number of processors here."""
        return [FarSession(self._run_windows) for _ in range(self._started.worker_count)]

    @property
    def _started(self) -> DaskExecutor:
        assert self._executor is not None, "the target is started first"
        return self._executor

    def _run_windows(self, jobs: Sequence[Job]) -> Future[list[WindowRecord]]:
        executor, what = self._started, (self.argument, self._core_count, self._description)
        return executor.submit(_run_windows, executor.client_id, *what, list(jobs))

    def reseeded(self) -> Sequence[Target]:
        """The others of the target here, on the same workers."""
        return [FarTarget(other, self._make, self._executor) for other in self._near.reseeded()]

    def describe(self) -> Mapping[str, object]:
        """What the first worker said."""
        return self._description

    def close(self) -> None:
        """Ends what this client has started on all workers and leaves them."""
        if self._is_owner and self._executor is not None:
            self._executor.end_on_workers(close_warm, self._executor.client_id)
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
        """No one waits for the batch under way any more."""
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
    """On a worker: a target that was started for a client, with one session, which one thread has at a time."""

    def __init__(self, argument: str, core_count: int) -> None:
        self.lock = threading.Lock()
        self.last_asked = time.monotonic()
        self.target = load_target(argument)
        try:
            self.target.start(no_progress, core_count)
            (self.session,) = self.target.sessions(1)
        except BaseException:
            self.target.close()
            raise

    def close(self) -> None:
        """Waits for the batch under way, and ends the target."""
        with self.lock:
            self.target.close()


_Key = tuple[str, str, int]
"""The client, the argument of the target, and its number of cores."""

_starting = threading.Lock()
_warm: dict[_Key, _Warm] = {}  # guarded by the lock


def _warmed(client: str, argument: str, core_count: int) -> _Warm:
    key = client, argument, core_count
    with _starting:
        _close_left()
        if key not in _warm:
            _warm[key] = _Warm(argument, core_count)
        _warm[key].last_asked = time.monotonic()
        return _warm[key]


def _close_left() -> None:
    """Ends what was not asked for a long time: its client was killed. One that lives has it started again."""
    for key, one in list(_warm.items()):
        if time.monotonic() - one.last_asked > LEFT_SECONDS and not one.lock.locked():
            _warm.pop(key).close()


def _describe(client: str, argument: str, core_count: int) -> dict[str, object]:
    return dict(_warmed(client, argument, core_count).target.describe())


def _run_windows(
    client: str, argument: str, core_count: int, description: Mapping[str, object], jobs: Sequence[Job]
) -> list[WindowRecord]:
    """On a worker: the windows, on what is the same as on the first worker."""
    warm = _warmed(client, argument, core_count)
    own = warm.target.describe()
    for key in sorted((own.keys() | description.keys()) - OF_MACHINE):
        if own.get(key) != description.get(key):
            raise UsageError(
                f"a worker runs {argument} with {key} {own.get(key)!r:.80}, another with {description.get(key)!r:.80}; "
                "expected the same on all workers"
            )
    with warm.lock:
        return list(warm.session.run(jobs))


async def close_warm(client: str) -> None:
    """On a worker: ends the targets that run there for a client; others' batches go on."""
    await asyncio.to_thread(_close_of, client)


def _close_of(client: str) -> None:
    with _starting:
        ended = [_warm.pop(key) for key in list(_warm) if key[0] == client]
    for one in ended:
        one.close()
