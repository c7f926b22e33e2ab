"""Predicted gains of changed locks against measured ones, at two threads.

Each program of `bench/programs/locks.c` is recorded once as it is, which gives the prediction, and then timed natively
as it is and with its lock really changed, in turns. A gain is the time of the first divided by that of the second.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.commands import ROOT
from bench.figure import Figure, Goal
from commutant.lock_view import HAND_OVERS, predictions, record_program, study

TITLE = "Predicted and measured gains of changed locks"
COMMAND = "make bench-locks"
THREADS = 2
SPINNING = (HAND_OVERS[0], HAND_OVERS[0])
"""In these programs no thread sleeps."""
RECORDED_ROUNDS, TIMED_ROUNDS, REPEATS = 200, 5000, 9
TUNABLES = ("enable=1", "skip_lock_busy=0", "skip_trylock_internal_abort=0")
ELISION = {"GLIBC_TUNABLES": ":".join(f"glibc.elision.{tunable}" for tunable in TUNABLES)}


@dataclass(frozen=True, slots=True)
class Program:
    """A program of locks.c, the start of the name of the change that is made to its lock, and how."""

    name: str
    change: str
    how: str
    elided: bool = False


PROGRAMS = (
    Program("own_counters", "split by instance", "a lock per thread"),
    Program("one_counter", "optimistic", "compare and swap"),
    Program("half_common", "optimistic", "compare and swap"),
    Program("mostly_read", "reader-writer", "a reader-writer lock"),
    Program("list", "sequence lock", "a sequence lock"),
    Program("hash_table", "split by instance", "16 locks"),
    Program("counted_table", "optimistic", "elision", elided=True),
    Program("per_core_count", "per-core copies", "a count per core, 16 locks"),
    Program("two_ends", "split by field group", "a lock for each end"),
    Program("cache", "optimistic", "elision", elided=True),
    Program("search_tree", "optimistic", "elision", elided=True),
    Program("rarely", "split by instance", "a lock per thread"),
    Program("as_much_outside", "split by instance", "a lock per thread"),
)


def measure() -> list[Figure]:
    """A row for each program and kind of gain, and how well the two agree."""
    programs = [program for program in PROGRAMS if not program.elided or _has_transactions()]
    with tempfile.TemporaryDirectory() as folder:
        executable = Path(folder) / "locks"
        source = ROOT / "bench" / "programs" / "locks.c"
        subprocess.run(["cc", "-O2", "-g", "-pthread", "-o", executable, source], check=True)
        predicted = {program: _predicted(executable, program) for program in programs}
        measured = _measured(executable, programs)
    figures = []
    for program in programs:
        name = f"{program.name}, {program.how}"
        figures.append(Figure(f"{name}: predicted gain", "times", (predicted[program],), COMMAND))
        figures.append(Figure(f"{name}: measured gain", "times", tuple(measured[program]), COMMAND))
    return figures + _agreement(predicted, {program: statistics.median(measured[program]) for program in programs})


def _has_transactions() -> bool:
    """Whether the processor has restricted transactional memory."""
    return " rtm " in f" {Path('/proc/cpuinfo').read_text().partition('flags')[2].partition(chr(10))[0]} "


def _predicted(executable: Path, program: Program) -> float:
    command = [str(executable), program.name, "locked", str(THREADS), str(RECORDED_ROUNDS)]
    record = record_program(command, output=subprocess.DEVNULL).records[0]
    lock = next(one for one in study(record).classes if one.name == "lock")
    found = predictions(lock, record, (THREADS,), SPINNING)
    return next(one.gains[THREADS].least for one in found if one.change.startswith(program.change))


def _measured(executable: Path, programs: Sequence[Program]) -> dict[Program, list[float]]:
    gains: dict[Program, list[float]] = {program: [] for program in programs}
    for _ in range(REPEATS):
        for program in programs:
            locked = _nanoseconds(executable, program.name, "locked", {})
            changed = _nanoseconds(executable, program.name, "changed", ELISION if program.elided else {})
            gains[program].append(locked / changed)
    return gains


def _nanoseconds(executable: Path, name: str, how: str, variables: Mapping[str, str]) -> int:
    command = [str(executable), name, how, str(THREADS), str(TIMED_ROUNDS)]
    environment = {**os.environ, **variables}
    return int(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def _agreement(predicted: Mapping[Program, float], measured: Mapping[Program, float]) -> list[Figure]:
    errors = [abs(predicted[program] / measured[program] - 1) for program in measured]

    gains = list(measured.values())
    # The sum of relative errors of a constant is least at one of the measured values.
    constant = min(statistics.fmean(abs(guess / gain - 1) for gain in gains) for guess in gains)
    correlation = statistics.correlation(_ranks([predicted[program] for program in measured]), _ranks(gains))
    return [
        Figure("programs that gain less than 1.1", "programs", (_count(measured, lambda gain: gain < 1.1),), COMMAND),
        Figure("programs that gain more than 1.7", "programs", (_count(measured, lambda gain: gain > 1.7),), COMMAND),
        Figure("largest error of a prediction", "%", (100 * max(errors),), COMMAND, Goal("at_most", 25)),
        Figure("rank correlation", "", (correlation,), COMMAND, Goal("at_least", 0.8)),
        Figure("mean error of the predictions", "%", (100 * statistics.fmean(errors),), COMMAND),
        Figure("mean error of the best constant prediction", "%", (100 * constant,), COMMAND),
        Figure(
            "mean error by that of the best constant",
            "ratio",
            (statistics.fmean(errors) / constant,),
            COMMAND,
            Goal("at_most", 0.5),
        ),
    ]


def _ranks(values: Sequence[float]) -> list[float]:
    """The place of each value in order; equal ones share the middle of their places."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def _count(measured: Mapping[Program, float], fits: Callable[[float], bool]) -> float:
    return float(sum(fits(gain) for gain in measured.values()))
