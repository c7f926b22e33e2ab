"""Runs windows in one virtual machine: batches in, judged results and traced lines out, and on again after a crash.

Jobs go to the guest in batches, of which one is prepared while another is run. A guest that panics or hangs in a window
costs that window and a new machine; what its batch had done before is run again, since results come by the batch. A
QEMU that ends in any other way ends the session.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from commutant import _native
from commutant.errors import RunError, UsageError
from commutant.mtrace.trace import TracedWindow
from commutant.targets.base import Job, WindowRecord
from commutant.targets.linux.machine import GuestSilent, GuestStopped
from commutant.targets.linux.qmp import Monitor
from commutant.targets.linux.region import BATCH_LIMIT_BYTES, SLOT_COUNT
from commutant.targets.linux.tracing import TracedMachine
from commutant.testgen.testcase import TestCase

BATCH_WINDOWS = 64
"""Windows per batch: enough to hide the hand-over, few enough that a crash costs little."""

_SILENCE_SECONDS = 30.0
"""So long the guest may take for one window before it counts as hung; a window takes about a millisecond."""

Start = Callable[[], TracedMachine]
"""Starts a machine, ready for batches."""


@dataclass(slots=True)
class _Batch:
    """A batch that the guest has: its jobs, their windows as the native module names them, and its number."""

    jobs: Sequence[Job]
    windows: list[tuple[int, int]]
    number: int


class LinuxSession:
    """One virtual machine that runs windows; the machine is started by `start`, and anew after each crash."""

    def __init__(self, start: Start) -> None:
        """Starts the machine; raises RunError if it does not come up."""
        self._start = start
        self._book = _native.TestBook()
        self._numbers: dict[str, int] = {}
        self._machine: TracedMachine | None = None
        self._pending: deque[_Batch] = deque()
        self._closed = False
        self._waiting = threading.Lock()  # held while a thread waits for the machine: it must not be freed meanwhile
        self._restart()

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        """Runs the jobs in the order given and yields their records in that order.

        Raises RunError if QEMU ends other than by the guest's doing, a new machine does not come up, or the session is
        closed meanwhile; UsageError if a test cannot be run at all.
        """
        return (record for record, _ in self.run_traced(jobs))

    def run_traced(self, jobs: Sequence[Job]) -> Iterator[tuple[WindowRecord, TracedWindow | None]]:
        """As `run`, with what the tracer saw in each window; None where the guest died."""
        if self._pending:
            self._restart()  # an earlier run was not read to its end
        waiting: deque[Sequence[Job] | WindowRecord] = deque(
            jobs[start : start + BATCH_WINDOWS] for start in range(0, len(jobs), BATCH_WINDOWS)
        )
        while waiting or self._pending:
            try:
                while waiting and len(self._pending) < SLOT_COUNT and not isinstance(waiting[0], WindowRecord):
                    self._submit(waiting)
                records = self._complete(self._pending[0]) if self._pending else ()
            except (GuestStopped, GuestSilent) as error:
                self._recover(error, waiting)
                continue
            if self._pending:
                self._pending.popleft()
                yield from records
            elif waiting and isinstance(waiting[0], WindowRecord):
                record = waiting.popleft()
                assert isinstance(record, WindowRecord)
                yield record, None

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

    def _submit(self, waiting: deque[Sequence[Job] | WindowRecord]) -> None:
        """Gives the guest the next batch; one that is too large is split first."""
        jobs = waiting.popleft()
        assert not isinstance(jobs, WindowRecord)
        if not jobs:
            return
        windows = [(self._number(job.test), job.order_index) for job in jobs]
        try:
            batch = self._book.encode(windows)
        except (ValueError, IndexError) as error:
            raise UsageError(f"{jobs[0].test.id} and others cannot be sent to the guest: {error}") from None
        if len(batch) > BATCH_LIMIT_BYTES:
            if len(jobs) == 1:
                raise UsageError(f"{jobs[0].test.id}: {len(batch)} bytes; the guest takes {BATCH_LIMIT_BYTES}")
            half = len(jobs) // 2
            waiting.extendleft((jobs[half:], jobs[:half]))
            return
        with self._waiting:
            self._require_open()
            assert self._machine is not None
            self._pending.append(_Batch(jobs, windows, self._machine.region.submit(batch)))

    def _number(self, test: TestCase) -> int:
        number = self._numbers.get(test.id)
        if number is None:
            try:
                number = self._book.add(json.dumps(test.to_json()))
            except ValueError as error:
                raise UsageError(f"{test.id} cannot be run: {error}") from None
            self._numbers[test.id] = number
        return number

    def _complete(self, batch: _Batch) -> list[tuple[WindowRecord, TracedWindow]]:
        """Waits for a batch and judges it."""
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
        try:
            wrong = self._book.judge(batch.windows, results)
        except ValueError as error:
            raise machine.failure(f"the guest's results cannot be read: {error}") from None
        if len(traced) != len(wrong):
            raise machine.failure(f"a trace of {len(traced)} windows, expected {len(wrong)}")
        return [
            (WindowRecord(job, window.findings, window.ignored, text), window)
            for job, window, text in zip(batch.jobs, traced, wrong, strict=True)
        ]

    def _wait(self, machine: TracedMachine, batch: _Batch) -> Sequence[TracedWindow]:
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

    def _recover(self, error: RunError, waiting: deque[Sequence[Job] | WindowRecord]) -> None:
        """Starts a new machine and queues again what was lost, with the record of the window that did it in its
        place."""
        assert self._machine is not None
        window = self._machine.region.window or 0
        first, *others = [batch.jobs for batch in self._pending]
        window = min(window, len(first) - 1)
        self._restart()
        crashed = WindowRecord(first[window], crashed=str(error))
        waiting.extendleft(reversed([first[:window], crashed, first[window + 1 :], *others]))
