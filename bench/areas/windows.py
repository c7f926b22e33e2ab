"""How many windows per second the target `linux` runs: set-up, call, observation, analysis and judgement included.

The corpus of `names` is cycled until there are enough windows. Boot, snapshot and self-test come before the clock
starts; one virtual machine per core, so that the figure is that of a campaign.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from bench.figure import Figure, Goal
from commutant.campaign.campaign import Campaign
from commutant.campaign.verdict import Outcome, Verdict
from commutant.corpus.testcase import TestCase
from commutant.guest.emulator import find_emulator
from commutant.guest.kernel import default_kernel
from commutant.guest.machine import Hardware
from commutant.guest.snapshot import Guest, take_snapshot
from commutant.lang import load_interface
from commutant.support import Progress, artifacts
from commutant.targets.base import Session
from commutant.targets.linux.session import LinuxSession
from commutant.targets.linux.tracing import TracedMachine, TracerFiles
from commutant.targets.registry import load_target
from commutant.testgen import generate

TITLE = "Windows on Linux"
LEAST_WINDOWS = 5000
REPEATS = 3
CORES = min(2, len(os.sched_getaffinity(0)))


def measure() -> list[Figure]:
    """Windows per second, of campaigns over at least `LEAST_WINDOWS` windows each."""
    tests = generate(load_interface("names"), None, 2, level="conflict", jobs=CORES).tests
    target = load_target("linux")
    try:
        started = time.monotonic()
        target.start(lambda _doing: None, 2)
        sessions = target.sessions(CORES)
        start_seconds = time.monotonic() - started
        samples = [_windows_per_second(tests, sessions, seed) for seed in range(REPEATS)]
    finally:
        target.close()
    unrecorded = _without_recording(tests)
    command = "make bench-windows"
    machines = f"{CORES} virtual machines on {CORES} cores"
    return [
        Figure(f"{machines}, recorded and judged", "windows/s", tuple(samples), command, Goal("at_least", 2500)),
        Figure(f"{machines}, without recording (the limit)", "windows/s", unrecorded, command),
        Figure(f"start of {machines}", "s", (start_seconds,), command),
    ]


def _windows_per_second(tests: Sequence[TestCase], sessions: Sequence[Session], seed: int) -> float:
    counter = WindowCounter()
    cycles = 1 + LEAST_WINDOWS // sum(len(test.orders) for test in tests)
    seconds = Campaign(list(tests) * cycles, counter.judged, seed=seed).run(sessions, counter.progress)
    assert counter.windows >= LEAST_WINDOWS, counter.windows
    return counter.windows / seconds


def _without_recording(tests: Sequence[TestCase]) -> tuple[float, ...]:
    """The same with a plugin that sees no accesses: every test looks conflict-free, so each order runs once."""
    emulator = find_emulator()
    guest = Guest(default_kernel(), artifacts.runner_path(), Hardware(2))
    snapshot = take_snapshot(emulator, guest, lambda _doing: None)
    files = TracerFiles.prepare(snapshot, recording=False)
    sessions: list[LinuxSession] = []
    try:
        for _ in range(CORES):
            sessions.append(LinuxSession(lambda: TracedMachine(snapshot, emulator, files)))  # noqa: PERF401 - for close
        return tuple(_windows_per_second(tests, sessions, seed) for seed in range(REPEATS))
    finally:
        for session in sessions:
            session.close()
        files.close()


class WindowCounter:
    """Counts windows, and refuses to count a campaign in which something went wrong."""

    def __init__(self) -> None:
        self.windows = 0

    def judged(self, test: TestCase, verdict: Verdict, seconds: float) -> None:
        """Takes a verdict; a wrong result or a crash makes the figure worthless."""
        if verdict.outcome in (Outcome.WRONG_RESULT, Outcome.CRASHED, Outcome.SKIPPED):
            raise RuntimeError(f"{test.id}: {verdict.outcome} {verdict.detail}")
        self.windows += verdict.windows

    def progress(self, progress: Progress) -> None:
        """Takes the campaign's progress; there is nothing to show."""
