"""Runs windows in one virtual machine: batches in, judged results and traced lines out, and on again after a crash.

Jobs go to the guest in batches, of which one is prepared while another is run. A guest that panics or hangs in a window
costs that window and a new machine; what its batch had done before is run again, since results come by the batch. A
QEMU that ends in any other way ends the session.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from commutant.guest import BATCH_LIMIT_BYTES, SLOT_COUNT, GuestSilent, GuestStopped, Monitor
from commutant.mtrace import TracedWindow
from commutant.support import RunError, UsageError
from commutant.targets.base import Job, SequenceRecord, WindowRecord
from commutant.targets.batches import Batch, CaseRegistry, Record, SequenceBatch, WindowBatch
from commutant.targets.linux.tracing import TracedMachine

BATCH_WINDOWS = 64
"""Windows per batch: enough to hide the hand-over, few enough that a crash costs little."""

_SILENCE_SECONDS = 30.0
"""So long the guest may take for one window before it counts as hung; a window takes about a millisecond."""

Start = Callable[[], TracedMachine]
"""Starts a machine, ready for batches."""


@dataclass(slots=True)
class _Submitted:
    """A batch that the guest has, and its number there."""

    work: Batch[Any]
    number: int


@dataclass(slots=True)
class _Crashed(Generic[Record]):
    """The record of a window in which the guest died, waiting for its turn."""

    record: Record


class LinuxSession:
    """One virtual machine that runs windows; the machine is started by `start`, and again after each crash."""

    def __init__(self, start: Start, name_length: int | None = None) -> None:
        """Starts the machine; raises RunError if it does not come up. `name_length` is that of the tests' names."""
        self._start = start
        self._registry = CaseRegistry(name_length)
        self._machine: TracedMachine | None = None
        self._pending: deque[_Submitted] = deque()
        self._closed = False
        self._waiting = threading.Lock()  # held while a thread waits for the machine, so that it is not freed before
        self._restart()

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        """Runs the jobs in the order given and yields their records in that order.

        Raises RunError if QEMU ends other than by the guest's doing, a new machine does not come up, or the session is
        closed in the meantime; UsageError if a test cannot be run at all.
        """
        return (record for record, _ in self.run_traced(jobs))

    def run_traced(self, jobs: Sequence[Job]) -> Iterator[tuple[WindowRecord, TracedWindow | None]]:
        """As `run`, with what the tracer saw in each window; None where the guest died."""
        return self._run(WindowBatch(self._registry, jobs))

    def run_sequences(self, texts: Sequence[str]) -> Iterator[SequenceRecord]:
        """As `commutant.targets.base.Session.run_sequences`; raises as `run` does."""
        return (record for record, _ in self._run(SequenceBatch(texts)))

    def _run(self, work: Batch[Record]) -> Iterator[tuple[Record, TracedWindow | None]]:
        """Runs a batch of any size in parts, and yields the records with what the tracer saw."""
        if self._pending:
            self._restart()  # an earlier run was not read to its end
        waiting: deque[Batch[Record] | _Crashed[Record]] = deque(
            work.part(start, start + BATCH_WINDOWS) for start in range(0, len(work), BATCH_WINDOWS)
        )
        while waiting or self._pending:
            try:
                while waiting and len(self._pending) < SLOT_COUNT and not isinstance(waiting[0], _Crashed):
                    self._submit(waiting)
                records: list[tuple[Record, TracedWindow]] = self._complete(self._pending[0]) if self._pending else []
            except (GuestStopped, GuestSilent) as error:
                self._recover(error, waiting)
                continue
            if self._pending:
                self._pending.popleft()
                yield from records
            elif waiting and isinstance(waiting[0], _Crashed):
                yield waiting[0].record, None
                waiting.popleft()

    @property
    def process_id(self) -> int | None:
        """The id of the QEMU process; None without a machine."""
        return self._machine.process_id if self._machine else None

    @property
    def monitor(self) -> Monitor:
        """The monitor of the machine; raises RunError without one."""
        if self._machine is None:
            raise RunError("the session has no machine")
        return self._machine.monitor

    def close(self) -> None:
        """Ends the machine; may be called twice and from another thread, whose `run` then raises RunError."""
        self._closed = True
        machine = self._machine
        if machine is not None:
            machine.kill()
            with self._waiting:
                machine.close()

    def _restart(self) -> None:
        if self._machine is not None:
            self._machine.close()
        self._pending.clear()
        self._require_open()
        self._machine = self._start()
        if self._closed:  # closed while the machine came up
            self._machine.close()
        self._require_open()

    def _require_open(self) -> None:
        if self._closed:
            raise RunError("the session was closed while it ran")

    def _submit(self, waiting: deque[Batch[Record] | _Crashed[Record]]) -> None:
        """Gives the guest the next batch; one that is too large is split first."""
        work = waiting.popleft()
        assert not isinstance(work, _Crashed)
        if not len(work):
            return
        batch = work.encode()
        if len(batch) > BATCH_LIMIT_BYTES:
            if len(work) == 1:
                raise UsageError(f"one test takes {len(batch)} bytes; the guest takes {BATCH_LIMIT_BYTES}")
            half = len(work) // 2
            waiting.extendleft((work.part(half, len(work)), work.part(0, half)))
            return
        with self._waiting:
            self._require_open()
            assert self._machine is not None
            self._pending.append(_Submitted(work, self._machine.region.submit(batch)))

    def _complete(self, batch: _Submitted) -> list[tuple[Any, TracedWindow]]:
        """Waits for a batch and reads its results."""
        with self._waiting:
            self._require_open()
            machine = self._machine
            assert machine is not None
            try:
                traced = self._wait(machine, batch)
                results = machine.region.results(batch.number)
            except RunError:
                self._require_open()
                raise
        if len(traced) != len(batch.work):
            raise machine.failure(f"a trace of {len(traced)} windows, expected {len(batch.work)}")
        try:
            return list(zip(batch.work.records(results, traced), traced, strict=True))
        except ValueError as error:
            raise machine.failure(f"the guest's results cannot be read: {error}") from None

    def _wait(self, machine: TracedMachine, batch: _Submitted) -> Sequence[TracedWindow]:
        region = machine.region
        while True:
            window = region.window
            try:
                machine.wait(lambda: region.completed > batch.number, "running windows", _SILENCE_SECONDS)
                return machine.traced_windows(_SILENCE_SECONDS)
            except GuestSilent:
                if region.window == window:
                    raise
                # else slow, but going on

    def _recover(self, error: RunError, waiting: deque[Batch[Record] | _Crashed[Record]]) -> None:
        """Starts a new machine and queues again what was lost, with the record of the window that did it in its
        place."""
        assert self._machine is not None
        window = self._machine.region.window or 0
        first, *others = [batch.work for batch in self._pending]
        window = min(window, len(first) - 1)
        self._restart()
        crashed = _Crashed(first.crashed(window, str(error)))
        behind = first.part(window + 1, len(first))
        waiting.extendleft(reversed([first.part(0, window), crashed, behind, *others]))
