"""Runs windows in one traced program: batches in, judged results and named findings out.

Jobs go in batches, of which one is prepared while another is run. A program that ends or hangs ends the session.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from commutant import _native
from commutant.errors import RunError, UsageError
from commutant.mtrace.finding import Finding
from commutant.mtrace.trace import TracedWindow
from commutant.targets.base import Job, WindowRecord
from commutant.targets.process.program import Program
from commutant.targets.process.traced import TracedProgram
from commutant.testgen.testcase import TestCase

BATCH_WINDOWS = 256
"""Windows per batch: enough to hide the hand-over."""

_QUEUED_BATCHES = 2
_SILENCE_SECONDS = 60.0
"""So long a program may take for one batch before it counts as hung; a batch takes some tens of milliseconds."""


class ProcessSession:
    """One program that runs windows, one after the other."""

    def __init__(self, emulator: str, plugin: Path, program: Program) -> None:
        """Starts the program; raises RunError if it does not start."""
        self._program = program
        self._traced = TracedProgram(emulator, plugin, program)
        self._book = _native.TestBook()
        self._numbers: dict[str, int] = {}
        self._named: dict[int, tuple[Finding, Finding]] = {}
        self._pending: deque[tuple[Sequence[Job], list[tuple[int, int]]]] = deque()
        self._closed = False
        self._waiting = threading.Lock()  # held while a thread waits for the program: it must not be freed meanwhile

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        """Runs the jobs in the order given and yields their records in that order.

        Raises RunError if the program ends, hangs, or the session is closed meanwhile; UsageError if a test cannot be
        run at all.
        """
        return (record for record, _ in self.run_traced(jobs))

    def run_traced(self, jobs: Sequence[Job]) -> Iterator[tuple[WindowRecord, TracedWindow]]:
        """As `run`, with what the tracer saw in each window."""
        while self._pending:  # an earlier run was not read to its end
            self._complete()
        waiting = deque(jobs[start : start + BATCH_WINDOWS] for start in range(0, len(jobs), BATCH_WINDOWS))
        while waiting or self._pending:
            while waiting and len(self._pending) < _QUEUED_BATCHES:
                self._submit(waiting.popleft())
            yield from self._complete()

    @property
    def process_id(self) -> int:
        """The id of the emulator's process."""
        return self._traced.process_id

    def close(self) -> None:
        """Ends the program; may be called twice and from another thread, whose `run` then raises RunError."""
        self._closed = True
        self._traced.kill()
        with self._waiting:
            self._traced.close()

    def _require_open(self) -> None:
        if self._closed:
            raise RunError("the session was closed while it ran")

    def _submit(self, jobs: Sequence[Job]) -> None:
        windows = [(self._number(job.test), job.order_index) for job in jobs]
        try:
            batch = self._book.encode(windows)
        except (ValueError, IndexError) as error:
            raise UsageError(f"{jobs[0].test.id} and others cannot be sent to the program: {error}") from None
        with self._waiting:
            self._require_open()
            self._traced.send(batch)
        self._pending.append((jobs, windows))

    def _number(self, test: TestCase) -> int:
        number = self._numbers.get(test.id)
        if number is None:
            try:
                number = self._book.add(json.dumps(test.to_json()))
            except ValueError as error:
                raise UsageError(f"{test.id} cannot be run: {error}") from None
            self._numbers[test.id] = number
        return number

    def _complete(self) -> list[tuple[WindowRecord, TracedWindow]]:
        """Waits for the oldest batch and judges it."""
        jobs, numbers = self._pending.popleft()
        with self._waiting:
            try:
                self._require_open()
                results = self._traced.results(_SILENCE_SECONDS)
                traced = self._traced.windows(_SILENCE_SECONDS)
            except RunError:
                self._require_open()
                raise
        try:
            wrong = self._book.judge(numbers, results)
        except ValueError as error:
            raise self._traced.failure(f"its results cannot be read: {error}") from None
        if len(traced) != len(wrong):
            raise self._traced.failure(f"a trace of {len(traced)} windows, expected {len(wrong)}")
        return [
            (WindowRecord(job, self._name(window), window.ignored, text), window)
            for job, window, text in zip(jobs, traced, wrong, strict=True)
        ]

    def _name(self, window: TracedWindow) -> tuple[Finding, ...]:
        """The window's findings, those in regions named after them, one per identity."""
        if not window.findings:
            return ()
        unique: dict[tuple[str, str, str], Finding] = {}
        for finding in window.findings:
            # Findings of a trace are kept by the reader, so that an identity number stays one finding's.
            known = self._named.get(id(finding))
            if known is None:
                known = self._named[id(finding)] = (finding, self._program.named(finding))
            unique.setdefault(known[1].identity, known[1])
        return tuple(unique.values())
