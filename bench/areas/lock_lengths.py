"""What is advised of a lock against what it does, over lengths of sections, shares of readers, spinning and sleeping.

The grid is another one than that which the advice was fitted to. Each row of it is a run of
`bench/programs/lengths.c`: recorded once as it is, which gives the predictions, and then timed natively as it is and
with the lock really changed, by turns; the least of several times is taken of each. A prediction is an interval, and
its error the distance of what was measured from it. Threads run with real-time priority where that is allowed: on a
busy machine two of them would seldom run at once else.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from bench.commands import ROOT
from bench.figure import Figure, Goal
from commutant.lock_view import Prediction, predictions, record_program, study

TITLE = "Advice about locks, held against programs whose lock was really changed"
COMMAND = "make bench-lock_lengths"
THREADS = 2
FITTED = (10, 0), (10, 100), (100, 0), (100, 100), (100, 1000), (1000, 100), (1000, 1000), (1000, 10000), (10000, 1000)
"""Lengths inside and outside at which the default of `--hand-over` and the rules of the advice were found; readers were
0, 50, 80, 95 and 100 %. They are no test of it and are not measured here."""
LENGTHS = (25, 0), (25, 250), (50, 50), (300, 30), (300, 3000), (600, 600), (2500, 250), (3000, 9000), (7000, 700)
"""Lengths at which it is tested: none of those of the fit, from as short to as long."""
READERS_PERCENT = 0, 30, 70, 90, 99, 100
assert not set(LENGTHS) & set(FITTED)
RECORDED_ROUNDS, REPEATS, TIMED_INSTRUCTIONS = 300, 7, 12_000_000
CHANGES = {"split": "split by instance", "rwlock": "reader-writer lock"}
REAL_TIME = ("chrt", "-f", "50")
LOSES = 0.97
"""Less than that is slower, and not the clock's scatter."""


@dataclass(frozen=True, slots=True)
class Row:
    """A lock of one kind over sections of one length, and what one change of it gains by both."""

    lock: str
    change: str
    inside: int
    outside: int
    readers_percent: int
    predicted: Prediction
    measured: float

    @property
    def error(self) -> float:
        """How far what was measured lies outside of the interval, by its nearer end."""
        gain = self.predicted.gains[THREADS]
        nearest = min(max(self.measured, gain.least), gain.most)
        return abs(nearest / self.measured - 1)


def measure() -> list[Figure]:
    """A figure for each row of which a change is advised, and how well advice and truth agree."""
    with tempfile.TemporaryDirectory() as folder:
        executable = Path(folder) / "lengths"
        source = ROOT / "bench" / "programs" / "lengths.c"
        subprocess.run(["cc", "-O2", "-g", "-pthread", "-o", executable, source], check=True)
        rows = list(_rows(executable))
    advised = [row for row in rows if row.predicted.is_advised]
    splits = [row.error for row in rows if row.change == "split"]
    figures = [
        Figure(
            f"{row.lock}, {row.inside} inside, {row.outside} outside, {row.readers_percent} % readers: {row.change} "
            f"(predicted {row.predicted.gains[THREADS]})",
            "times",
            (row.measured,),
            COMMAND,
        )
        for row in advised
    ]
    wrong = sum(row.measured < LOSES for row in advised)
    return [
        *figures,
        Figure("changes looked at", "changes", (float(len(rows)),), COMMAND),
        Figure("changes advised", "changes", (float(len(advised)),), COMMAND),
        Figure("changes advised that lose", "changes", (float(wrong),), COMMAND, Goal("at_most", 0)),
        Figure(
            "median error of advised gains",
            "%",
            (100 * statistics.median(row.error for row in advised),),
            COMMAND,
            Goal("at_most", 15),
        ),
        Figure("largest error of a split lock's gain", "%", (100 * max(splits),), COMMAND, Goal("at_most", 30)),
    ]


def _rows(executable: Path) -> Iterator[Row]:
    for (inside, outside), readers in product(LENGTHS, READERS_PERCENT):
        lengths = [str(number) for number in (inside, outside, readers, THREADS)]
        command = [str(executable), "spin", "locked", *lengths, str(RECORDED_ROUNDS)]
        record = record_program(command, output=subprocess.DEVNULL).records[0]
        lock = next(one for one in study(record).classes if one.name.startswith("spins"))
        found = predictions(lock, record, (THREADS,))
        rounds = str(max(300, min(20_000, TIMED_INSTRUCTIONS // (inside + outside + 50))))
        for kind, (how, name) in product(("spin", "mutex"), CHANGES.items()):
            predicted = next((one for one in found if one.change.startswith(name)), None)
            if predicted is not None:
                times = [
                    [_nanoseconds(executable, kind, one, *lengths, rounds) for one in ("locked", how)]
                    for _ in range(REPEATS)
                ]
                before, after = (min(column) for column in zip(*times, strict=True))
                yield Row(kind, how, inside, outside, readers, predicted, before / after)


def _nanoseconds(executable: Path, *arguments: str) -> int:
    command = [*_real_time(), str(executable), *arguments]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@cache
def _real_time() -> tuple[str, ...]:
    allowed = subprocess.run([*REAL_TIME, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0
    return REAL_TIME if allowed else ()
