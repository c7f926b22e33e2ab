"""Runs windows in one program: batches in, judged results and named findings out.

Jobs go in batches, of which one is prepared while another is run. A program that dies costs the window in which it does
and a new program; one that is killed or hangs ends the session.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from commutant.mtrace import Finding, TracedWindow
from commutant.support import IdentityCache, RunError
from commutant.targets.base import Job, SequenceRecord, WindowRecord
from commutant.targets.batches import Batch, CaseRegistry, Record, SequenceBatch, WindowBatch
from commutant.targets.process.running import ProgramDied, RunningProgram

BATCH_WINDOWS = 256
"""Windows per batch: enough to hide the hand-over."""

_QUEUED_BATCHES = 2
_SILENCE_SECONDS = 60.0
"""So long a program may take for one batch before it counts as hung; a batch takes some tens of milliseconds."""


class ProcessSession:
    """One program that runs windows, one after the other."""

    def __init__(self, start: Callable[[], RunningProgram]) -> None:
        """Starts the program, which `start` does whenever that is to be done; raises RunError if it does not start."""
        self._start = start
        self._program = self._start()
        self._registry = CaseRegistry()
        self._named = IdentityCache(self._with_names)
        self._pending: deque[Batch[Any]] = deque()
        self._closed = False
        self._waiting = threading.Lock()  # held while a thread waits for the program, so that it is not freed before

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        """Runs the jobs in the order given and yields their records in that order.

        Raises RunError if the program is killed or hangs, or the session is closed in the meantime; UsageError if a
        test cannot be run at all.
        """
        return (record for record, _ in self.run_traced(jobs))

    def run_traced(self, jobs: Sequence[Job]) -> Iterator[tuple[WindowRecord, TracedWindow | None]]:
        """As `run`, with what the tracer saw in each window; None where the program died."""
        return self._run(WindowBatch(self._registry, jobs))

    def run_sequences(self, texts: Sequence[str]) -> Iterator[SequenceRecord]:
        """As `commutant.targets.base.Session.run_sequences`; raises as `run` does."""
        return (record for record, _ in self._run(SequenceBatch(texts)))

    def _run(self, work: Batch[Record]) -> Iterator[tuple[Record, TracedWindow | None]]:
        """Runs a batch of any size in parts, and yields the records with what the tracer saw.

        A part that the program dies in is run again window by window, so that the one that kills it shows.
        """
        while self._pending:  # an earlier run was not read to its end
            self._complete()
        waiting = deque(work.part(start, start + BATCH_WINDOWS) for start in range(0, len(work), BATCH_WINDOWS))
        while waiting or self._pending:
            while waiting and len(self._pending) < (1 if len(waiting[0]) == 1 else _QUEUED_BATCHES):
                self._submit(waiting.popleft())
            first = self._pending[0]
            try:
                records: list[tuple[Record, TracedWindow | None]] = [*self._complete()]
            except ProgramDied as error:
                waiting.extendleft(reversed(self._pending))
                self._restart()
                if len(first) == 1:
                    records = [(first.crashed(0, str(error)), None)]
                else:
                    waiting.extendleft(first.part(index, index + 1) for index in reversed(range(len(first))))
                    continue
            yield from records

    @property
    def process_id(self) -> int:
        """The id of the process that runs the program."""
        return self._program.process_id

    def close(self) -> None:
        """Ends the program; may be called twice and from another thread, whose `run` then raises RunError."""
        self._closed = True
        self._program.kill()
        with self._waiting:
            self._program.close()

    def _restart(self) -> None:
        with self._waiting:
            self._require_open()
            self._program.close()
            self._pending.clear()
            self._named = IdentityCache(self._with_names)
            self._program = self._start()
        if self._closed:  # closed while the program came up
            self.close()
        self._require_open()

    def _require_open(self) -> None:
        if self._closed:
            raise RunError("the session was closed while it ran")

    def _submit(self, work: Batch[Any]) -> None:
        batch = work.encode()
        with self._waiting:
            self._require_open()
            self._program.send(batch)
        self._pending.append(work)

    def _complete(self) -> list[tuple[Any, TracedWindow]]:
        """Waits for the oldest batch and reads its results."""
        work = self._pending.popleft()
        with self._waiting:
            try:
                self._require_open()
                results = self._program.results(_SILENCE_SECONDS)
                traced = self._program.windows(len(work), _SILENCE_SECONDS)
            except RunError:
                self._require_open()
                raise
        named = [self._name(window) for window in traced]
        try:
            return list(zip(work.records(results, named), traced, strict=True))
        except ValueError as error:
            raise self._program.failure(f"its results cannot be read: {error}") from None

    def _with_names(self, finding: Finding) -> Finding:
        naming = self._program.naming
        assert naming is not None, "who finds something has names for it"
        return naming.named(finding)

    def _name(self, window: TracedWindow) -> TracedWindow:
        """The window with findings and pictures with all that is known of them, one finding per identity."""
        if not window.findings:
            return window
        naming = self._program.naming
        assert naming is not None, "who finds something has names for it"
        named = [self._named(finding) for finding in window.findings]
        pictures, course = naming.drawn(window)
        unique: dict[tuple[str, str, str], Finding] = {}
        shown = dict.fromkeys(
            (unique.setdefault(finding.identity, finding).identity, picture)
            for finding, picture in zip(named, pictures, strict=True)
        )
        return dataclasses.replace(
            window,
            findings=tuple([unique[identity] for identity, _ in shown]),
            pictures=tuple([picture for _, picture in shown]),
            course=course,
        )
