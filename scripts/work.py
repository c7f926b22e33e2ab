"""Pieces of work that a few workers take from one list, the longest first: no core idles while another has more.

A piece is a command: a linter, a build, a program of tests, some files of Python tests. What a build has made may be
further pieces. Pieces of one suite are reported together, with one line at the suite's end; what a piece printed is
kept back, so that two do not mix, and shown at once if it fails.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steps import ROOT, ending, environment

SHOWN_LETTERS = 400
"""Of a command that failed: a shard of Python tests names dozens of files."""


@dataclass(frozen=True)
class Work:
    """One command, the suite that it belongs to, and how many seconds of processor time it is expected to take.

    `then` makes further pieces from what the command printed on its standard output. Builds keep all cores busy by
    themselves, so one of them runs at a time, before all else.
    """

    suite: str
    name: str
    command: Sequence[str]
    seconds: float = 0.0
    folder: Path = ROOT
    variables: Mapping[str, str] = field(default_factory=dict)
    then: Callable[[str], list[Work]] | None = None
    is_build: bool = False
    remedy: str = ""


@dataclass(frozen=True)
class Done:
    """A piece of work that has ended: what it printed, how it ended, and the processor time that it took."""

    work: Work
    output: str
    messages: str
    status: int
    processor_seconds: float


@dataclass(frozen=True)
class SuiteEnd:
    """All pieces of a suite have ended; `seconds` passed from the first one's start."""

    name: str
    pieces: list[Done]
    seconds: float

    @property
    def processor_seconds(self) -> float:
        """Processor time of all pieces, with their children's."""
        return sum(done.processor_seconds for done in self.pieces)

    @property
    def failed(self) -> bool:
        """Whether a piece of it failed."""
        return any(done.status != 0 for done in self.pieces)


class Workers:
    """Runs pieces of work, several at a time.

    `ended` is called after each piece, `suite_ended` after the last of a suite; both by one worker at a time.
    """

    def __init__(self, count: int, ended: Callable[[Done], None], suite_ended: Callable[[SuiteEnd], None]) -> None:
        self._count = count
        self._ended = ended
        self._suite_ended = suite_ended
        self._change = threading.Condition()
        self._waiting: list[Work] = []
        self._running: dict[int, Work] = {}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._started: dict[str, float] = {}
        self._done: dict[str, list[Done]] = {}
        self._fault: BaseException | None = None

    def run(self, pieces: Sequence[Work]) -> None:
        """Runs all pieces and those that come of them. Raises what a callback or a `then` raised; an interrupt ends all
        commands first."""
        self._waiting = list(pieces)
        threads = [threading.Thread(target=self._work, args=(number,), daemon=True) for number in range(self._count)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.5)
        except BaseException:
            self._stop(KeyboardInterrupt())
            for thread in threads:
                thread.join()
            raise
        if self._fault is not None:
            raise self._fault

    def _work(self, number: int) -> None:
        try:
            while (piece := self._take(number)) is not None:
                done = self._run(number, piece)
                with self._change:
                    self._finish(number, done)
        except BaseException as fault:  # noqa: BLE001 - whatever it is ends all, and `run` raises it
            self._stop(fault)

    def _take(self, number: int) -> Work | None:
        with self._change:
            while self._fault is None:
                building = any(work.is_build for work in self._running.values())
                if ready := [work for work in self._waiting if not (work.is_build and building)]:
                    piece = max(ready, key=lambda work: (work.is_build, work.seconds))
                    self._waiting.remove(piece)
                    self._running[number] = piece
                    self._started.setdefault(piece.suite, time.monotonic())
                    return piece
                if not self._running:
                    return None
                self._change.wait()  # for a build, or for what it makes
            return None

    def _run(self, number: int, piece: Work) -> Done:
        command = [str(part) for part in piece.command]
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
            try:
                process = subprocess.Popen(
                    command, cwd=piece.folder, env=environment(piece.variables), stdin=subprocess.DEVNULL,
                    stdout=output, stderr=messages,
                )  # fmt: skip
            except OSError as error:
                return Done(piece, "", f"cannot start `{' '.join(command)}`: {error.strerror}", 127, 0.0)
            with self._change:
                self._processes[number] = process
                if self._fault is not None:
                    process.terminate()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            texts = []
            for stream in (output, messages):
                stream.seek(0)
                texts.append(stream.read().decode(errors="replace"))
        return Done(piece, texts[0], texts[1], process.returncode, usage.ru_utime + usage.ru_stime)

    def _finish(self, number: int, done: Done) -> None:
        del self._running[number]
        self._processes.pop(number, None)
        if self._fault is not None:
            return
        if done.status == 0 and done.work.then is not None:
            self._waiting += done.work.then(done.output)
        self._done.setdefault(done.work.suite, []).append(done)
        self._ended(done)
        suite = done.work.suite
        if not any(work.suite == suite for work in (*self._waiting, *self._running.values())):
            started = self._started.pop(suite)
            self._suite_ended(SuiteEnd(suite, self._done.pop(suite), time.monotonic() - started))
        self._change.notify_all()

    def _stop(self, fault: BaseException) -> None:
        with self._change:
            self._fault = self._fault or fault
            self._waiting.clear()
            for process in self._processes.values():
                if process.returncode is None:
                    process.send_signal(signal.SIGTERM)
            self._change.notify_all()


def failure(done: Done) -> str:
    """What is shown of a piece that failed: all that it printed, its command, how it ended, and how to mend it."""
    command = " ".join(str(part) for part in done.work.command)
    if len(command) > SHOWN_LETTERS:
        command = f"{command[:SHOWN_LETTERS]} ..."
    lines = [f"{done.output}{done.messages}".rstrip("\n"), f"`{command}` {ending(done.status)}"]
    lines.append(f"{done.work.name} failed" + (f"; {done.work.remedy}" if done.work.remedy else ""))
    return "\n".join(line for line in lines if line)
