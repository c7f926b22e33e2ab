"""Draws, runs and judges sequences in numbers: processes draw and judge, sessions run, and the first faults are shrunk.

Sequence number *n* is the same whatever range it is drawn in, so `seed` and `sequences` name a range, and a range that
was interrupted can be gone on with. Worker processes draw chunks ahead; a thread per session hands them to its target;
what did not come as the script says goes back to a worker, which looks for another resolution of the model's choices.
However a search ends, sessions run nothing and no worker is left when `run` returns.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field

from commutant.conformance.draw import Drawer
from commutant.conformance.judge import Undecided
from commutant.conformance.trial import Fault, NotOffered, Refused, find_fault
from commutant.guard import begin_path, time_limit
from commutant.support import CommutantError, RunError, die_with
from commutant.targets import SequenceRecord, Session

CHUNK_SEQUENCES = 256
"""Sequences that a session gets at once: long enough to keep it busy, short enough to end soon."""

_AHEAD = 2
_TICK_SECONDS = 0.1
_MOST_CRASHES = 25
_CLOSING_SECONDS = 10.0
_ENDED = (
    "a process that draws and judges sequences ended: the model ended it, or the system for want of memory, of which "
    "fewer --jobs take less"
)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A sequence that no resolution of the choices explains."""

    number: int
    fault: Fault
    signature: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A chunk of sequences as sessions take them, and how many calls they make."""

    texts: tuple[str, ...]
    calls: int


@dataclass(frozen=True, slots=True)
class _Judged:
    """What came of those of a chunk that were not as their scripts say."""

    suspects: tuple[Suspect, ...]
    undecided: int
    not_offered: Counter[str]


@dataclass(slots=True)
class SequenceTally:
    """How far a search is: sequences judged, and calls made in them; `undecided` ones had too many resolutions, and of
    those that ask for what the target does not offer, `not_offered` has how many ask for what."""

    sequences: int = 0
    calls: int = 0
    undecided: int = 0
    not_offered: Counter[str] = field(default_factory=Counter)


class Search:
    """One search over the sequences `seed` to `seed + sequences - 1`, for at most `most` distinct faults."""

    def __init__(self, drawer: Drawer, *, seed: int, sequences: int, max_differences: int, jobs: int) -> None:
        """Starts the worker processes, so do it before any other thread is started."""
        self.tally = SequenceTally()
        self.suspects: list[Suspect] = []
        self._max_differences = max_differences
        self._chunks = [
            range(start, min(start + CHUNK_SEQUENCES, seed + sequences))
            for start in range(seed, seed + sequences, CHUNK_SEQUENCES)
        ]
        self._next = 0
        self._drawn: dict[int, Future[_Drawn]] = {}
        self._judged: list[tuple[range, int, Future[_Judged]]] = []
        self._lock = threading.Lock()  # guards everything above but the pool
        self._error: BaseException | None = None
        self._stopping = False
        self._open = {chunk.start for chunk in self._chunks}
        self._behind = seed + sequences
        self._others = set(multiprocessing.active_children())
        self._pool = ProcessPoolExecutor(
            jobs, multiprocessing.get_context("fork"), initializer=_begin_worker, initargs=(os.getpid(), drawer)
        )
        try:
            self._pool.submit(int).result()  # forks all workers
        except BrokenExecutor as error:
            raise RunError(_ENDED) from error
        self._width = jobs

    @property
    def chunk_count(self) -> int:
        """In how many chunks the sequences are run."""
        return len(self._chunks)

    @property
    def first_open(self) -> int:
        """The first sequence that has not been judged, or may not have been; the one after the last if all have."""
        return min(self._open, default=self._behind)

    def run(self, sessions: Sequence[Session], show: Callable[[SequenceTally], None]) -> None:
        """Runs until all is judged or enough distinct faults are found; both are in `tally` and `suspects`.

        Raises RunError if a session cannot go on or a worker has ended, ModelFault if the model fails,
        KeyboardInterrupt as it comes; what was found until then stays.
        """
        threads = [
            threading.Thread(target=self._work, args=(session,), name=f"conform-{number}", daemon=True)
            for number, session in enumerate(sessions)
        ]
        try:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                threads[0].join(_TICK_SECONDS) if threads[0].is_alive() else time.sleep(_TICK_SECONDS)
                self._collect()
                show(self.tally)
            futures.wait([future for _, _, future in self._judged])
            self._collect()
            show(self.tally)
            if self._error is not None:
                raise self._error
        except BaseException as error:
            self._stopping = True
            for session in sessions:
                session.close()
            self._collect_last()
            if isinstance(error, BrokenExecutor):
                raise RunError(_ENDED) from error
            raise
        finally:
            for thread in threads:
                if thread.ident is not None:
                    thread.join(_CLOSING_SECONDS)
            self.close()
            self.suspects.sort(key=lambda suspect: suspect.number)

    def _collect_last(self) -> None:
        """After an interrupt or error: takes what is about to be judged, so that it is not lost."""
        for drawing in self._drawn.values():
            drawing.cancel()
        futures.wait([future for _, _, future in self._judged], _CLOSING_SECONDS)
        with contextlib.suppress(CommutantError, BrokenExecutor):
            self._collect()

    def close(self) -> None:
        """Ends the workers; may be called twice."""
        for worker in set(multiprocessing.active_children()) - self._others:
            worker.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _work(self, session: Session) -> None:
        try:
            while (chunk := self._take()) is not None:
                numbers, drawn = chunk
                records = list(session.run_sequences(drawn.texts))
                if len(records) != len(drawn.texts):
                    raise RunError("the target ran fewer sequences than were requested")
                odd = [
                    (number, record)
                    for number, record in zip(numbers, records, strict=True)
                    if record.actual is not None or record.crashed is not None
                ]
                with self._lock:
                    if odd:
                        self._judged.append((numbers, drawn.calls, self._pool.submit(_judge, odd)))
                    else:
                        self._count_judged(numbers, drawn.calls)
        except BaseException as error:  # noqa: BLE001 - handed to the caller of run, whatever it is
            with self._lock:
                if not self._stopping:
                    self._error = error
                self._stopping = True

    def _take(self) -> tuple[range, _Drawn] | None:
        """The next chunk, drawn; keeps the workers busy with those after it."""
        with self._lock:
            if self._stopping or self._next == len(self._chunks):
                return None
            index = self._next
            self._next += 1
            for ahead in range(index, min(index + 1 + _AHEAD * self._width, len(self._chunks))):
                if ahead not in self._drawn:
                    self._drawn[ahead] = self._pool.submit(_draw, self._chunks[ahead])
            future = self._drawn.pop(index)
        return self._chunks[index], future.result()

    def _count_judged(self, numbers: range, calls: int) -> None:
        """Counts a chunk as judged; the lock is held."""
        self.tally.sequences += len(numbers)
        self.tally.calls += calls
        self._open.discard(numbers.start)

    def _collect(self) -> None:
        """Takes what the workers have judged; stops if it is enough."""
        with self._lock:
            ready = [one for one in self._judged if one[2].done()]
            self._judged = [one for one in self._judged if not one[2].done()]
            for numbers, calls, future in ready:
                judged = future.result()
                self.tally.undecided += judged.undecided
                self.tally.not_offered += judged.not_offered
                self.suspects += judged.suspects
                self._count_judged(numbers, calls)
        crashes = sum(suspect.fault.crashed is not None for suspect in self.suspects)
        if crashes >= _MOST_CRASHES or len({suspect.signature for suspect in self.suspects}) >= self._max_differences:
            self._stopping = True


_drawer: Drawer | None = None
"""In a worker process: what draws."""


def _begin_worker(parent: int, drawer: Drawer) -> None:
    global _drawer
    die_with(parent)
    _drawer = drawer
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _draw(numbers: range) -> _Drawn:
    assert _drawer is not None
    texts, calls = [], 0
    with time_limit(_drawer.interface, tuple(signature.name for signature in _drawer.signatures)):
        for number in numbers:
            begin_path()
            sequence, script = _drawer.draw(number)
            texts.append(script.text())
            calls += len(sequence.calls)
    return _Drawn(tuple(texts), calls)


def _judge(odd: Sequence[tuple[int, SequenceRecord]]) -> _Judged:
    assert _drawer is not None
    suspects, undecided, not_offered = [], 0, Counter[str]()
    for number, record in odd:
        _, script = _drawer.draw(number)
        try:
            fault = find_fault(_drawer.interface, script, record)
        except Undecided:
            undecided += 1
            continue
        except NotOffered as why:
            not_offered[str(why)] += 1
            continue
        except Refused as error:
            raise RunError(f"the runner refuses sequence {number}: {error}") from None
        if fault is not None:
            suspects.append(Suspect(number, fault, fault.signature(script)))
    return _Judged(tuple(suspects), undecided, not_offered)
