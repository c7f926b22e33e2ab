"""A campaign: all tests of a corpus, run on the sessions of a target and judged.

One host thread per session takes batches of windows from a common queue, so a slow session does not hold up the others.
A test stays with one session for a round (one window per order, or the repeats), its judge asks for another round by
going to the queue's end, and its verdict is handed to `sink` at once. Sessions spend their time in native code or in
waiting, so threads do; what is done per window in Python is kept to a few microseconds.

However a campaign ends (error, Ctrl-C), `run` closes the sessions and waits for the threads: no window is running when
it returns.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from commutant.campaign.verdict import DEFAULT_REPEATS, Judge, Verdict
from commutant.corpus import TestCase
from commutant.support import OnProgress, Progress, RunError, no_progress
from commutant.targets import Job, Session

MAX_BATCH_WINDOWS = 1024
"""Windows that a session gets at once: between two such batches its pipeline runs empty, so there should be few."""

MIN_BATCH_WINDOWS = 16
"""Towards the end batches get smaller, so that all sessions end at about the same time, but not smaller than this."""

MAX_CRASHES_IN_A_ROW = 25
"""This many windows one after the other, over all sessions, in which the implementation died end the campaign."""

_PROGRESS_INTERVAL_SECONDS = 0.1
_CLOSING_SECONDS = 10.0  # a closed session lets go of its thread long before; a defect there must not hang the program


class Campaign:
    """Runs and judges tests on sessions.

    `sink` gets every verdict together with the seconds since the start of `run`; it is called from the sessions'
    threads, one call at a time. `seed` gives the order of the tests within each placement in processes.
    """

    def __init__(
        self,
        tests: Iterable[TestCase],
        sink: Callable[[TestCase, Verdict, float], None],
        *,
        repeats: int = DEFAULT_REPEATS,
        seed: int = 0,
    ) -> None:
        judges = [Judge(test, repeats) for test in tests]
        random.Random(seed).shuffle(judges)
        # Tests of one placement stand together: a session need not change the threads that run them.
        judges.sort(key=lambda judge: [call.process for call in judge.test.calls])
        self._sink = sink
        self._lock = threading.Lock()  # guards everything below
        self._work_left = threading.Condition(self._lock)  # sessions' threads wait here while the queue is empty
        self._changed = threading.Condition(self._lock)  # the caller of run waits here
        self._queue: deque[Judge] = deque(judges)
        self._queued_windows = sum(judge.due_count for judge in judges)
        self._tests = len(judges)
        self._judged = 0
        self._windows = 0
        self._out = 0  # judges taken from the queue whose round has not ended
        self._crashes_in_a_row = 0
        self._stopping = False
        self._error: BaseException | None = None
        self._started = 0.0
        self._session_count = 1

    def run(self, sessions: Sequence[Session], on_progress: OnProgress = no_progress) -> float:
        """Runs all tests and returns the seconds that it took; `on_progress` is called now and then with how far it is.

        Raises RunError if a session cannot go on or the verdicts cannot be written. After an error or an interrupt the
        sessions are closed; after a good end they are the caller's to close.
        """
        self._session_count = len(sessions)
        self._started = time.monotonic()
        threads = [
            threading.Thread(target=self._work, args=(session,), name=f"session-{number}", daemon=True)
            for number, session in enumerate(sessions)
        ]
        try:
            for thread in threads:
                thread.start()
            while self._is_going():
                with self._lock:
                    self._changed.wait_for(self._has_ended, _PROGRESS_INTERVAL_SECONDS)
                    rate = self._windows / max(time.monotonic() - self._started, 1e-3)
                    state = Progress(self._judged, self._tests, f"{rate:,.0f} windows/s")
                on_progress(state)  # outside the lock: it may draw
        except BaseException:
            self._stop(sessions)
            raise
        finally:
            for thread in threads:
                if thread.ident is not None:
                    thread.join(_CLOSING_SECONDS)
        return time.monotonic() - self._started

    def _is_going(self) -> bool:
        """Whether tests are left to judge; raises the error of a session."""
        with self._lock:
            if self._error is not None:
                raise self._error
            return not self._has_ended()

    def _has_ended(self) -> bool:
        return self._error is not None or self._judged == self._tests

    def _stop(self, sessions: Sequence[Session]) -> None:
        with self._lock:
            self._stopping = True
            self._work_left.notify_all()
        for session in sessions:
            session.close()

    def _work(self, session: Session) -> None:
        try:
            while batch := self._take():
                self._run_batch(session, batch)
        except BaseException as error:  # noqa: BLE001 - handed to the caller of run, whatever it is
            with self._lock:
                if self._error is None and not self._stopping:
                    self._error = error
                self._stopping = True
                self._work_left.notify_all()
                self._changed.notify_all()

    def _take(self) -> list[Judge]:
        """Judges whose windows make the next batch; empty when there is nothing left to do."""
        with self._lock:
            while True:
                if self._stopping or (not self._queue and not self._out):
                    return []
                if self._queue:
                    break
                self._work_left.wait()
            fair_share = self._queued_windows // (2 * self._session_count)
            wanted = min(MAX_BATCH_WINDOWS, max(MIN_BATCH_WINDOWS, fair_share))
            batch: list[Judge] = []
            windows = 0
            while self._queue and (not batch or windows + self._queue[0].due_count <= wanted):
                judge = self._queue.popleft()
                windows += judge.due_count
                batch.append(judge)
            self._queued_windows -= windows
            self._out += len(batch)
            return batch

    def _run_batch(self, session: Session, batch: list[Judge]) -> None:
        jobs = [Job(judge.test, order_index) for judge in batch for order_index in judge.due]
        records = iter(session.run(jobs))
        for judge in batch:
            crashes = 0
            windows = judge.due_count
            for _ in range(windows):
                if self._stopping:
                    return
                record = next(records, None)
                if record is None:
                    raise RunError("the target ran fewer windows than were requested; the trace is incomplete")
                if record.job.test is not judge.test and record.job.test.id != judge.test.id:
                    raise RunError(f"the target gave a window of {record.job.test.id} where {judge.test.id} was due")
                judge.add(record)
                if record.crashed is not None:
                    crashes += 1
            self._end_round(judge, windows, crashes)

    def _end_round(self, judge: Judge, windows: int, crashes: int) -> None:
        """Books the windows of a judge's round and hands on its verdict, or queues it for the next round."""
        verdict = judge.verdict
        with self._lock:
            self._windows += windows
            self._out -= 1
            self._crashes_in_a_row = self._crashes_in_a_row + crashes if crashes == windows else 0
            if verdict is None:
                self._queue.append(judge)
                self._queued_windows += judge.due_count
                self._work_left.notify()
            else:
                self._sink(judge.test, verdict, time.monotonic() - self._started)
                self._judged += 1
                if self._judged == self._tests:
                    self._work_left.notify_all()
                    self._changed.notify_all()
            if self._crashes_in_a_row >= MAX_CRASHES_IN_A_ROW:
                raise RunError(
                    f"the target died in {self._crashes_in_a_row} windows in a row, last in {judge.test.id} "
                    f"({verdict.detail if verdict else 'no reason given'}); the campaign ends here"
                )
