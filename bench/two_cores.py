"""Predictions of `commutant scale` for two cores, judged by the two that are there.

Each variant of `bench/programs/variants.c` is counted on one and on two virtual cores, and timed on one and on two
processors. The constants are fitted to a few variants; the others judge what is predicted with them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.commands import ROOT, commutant_run
from bench.figure import Figure, Goal

SOURCE = ROOT / "bench" / "programs" / "variants.c"
COMMAND = "make bench-scale"
KINDS = ("nothing", "counter", "seldom", "striped", "read", "locked", "falsely", "handed")
WORK = (20, 200, 1000)
COUNTED, WARM_UP = 200, 100
TIMED_OPERATIONS = 100_000
REPEATS = 9
MOVED = 1.1
"""What two threads make slower or faster than this many times has moved."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What is shared, and how much work a thread does by itself before."""

    kind: str
    work: int

    @property
    def name(self) -> str:
        """What figures call it."""
        return f"{self.kind}, {self.work} rounds of work"


FITTED = (
    Variant("nothing", 200),
    Variant("counter", 200),
    Variant("handed", 200),
    Variant("read", 20),
    Variant("falsely", 1000),
)
JUDGED = (*(Variant(kind, work) for kind in KINDS for work in WORK), Variant("handed", 50))
JUDGED = tuple(variant for variant in JUDGED if variant not in FITTED)


@dataclass(frozen=True, slots=True)
class Counts:
    """Of an operation on one and on two virtual cores: instructions, misses and upgrades."""

    instructions: tuple[float, float]
    misses: tuple[float, float]
    upgrades: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Constant:
    """Nanoseconds of an instruction, a miss and an upgrade."""

    instruction_ns: float
    miss_ns: float
    upgrade_ns: float

    def to_toml(self, machine: str) -> str:
        """As `--constants` takes them."""
        source = f"fitted to {len(FITTED)} variants of bench/programs/variants.c"
        return "".join(
            f'[{name}]\nvalue = {value!r}\nmachine = "{machine}"\nsource = "{source}"\n'
            for name, value in (
                ("instruction_ns", self.instruction_ns),
                ("miss_ns", self.miss_ns),
                ("upgrade_ns", self.upgrade_ns),
            )
        )


def measure() -> list[Figure]:
    """How well predictions and times agree; each that does not is a goal missed."""
    if len(os.sched_getaffinity(0)) < 2:
        print("  one processor: nothing judges the predictions for two")
        return []
    between = topology(Path("/sys/devices/system/cpu"))
    print(f"  processors 0 and 1: {between}", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-two-cores-") as name:
        folder = Path(name)
        program = folder / "variants"
        header = ROOT / "crates" / "scaling" / "scale-annotation" / "include"
        subprocess.run(["gcc", "-O2", "-pthread", f"-I{header}", str(SOURCE), "-o", str(program)], check=True)
        print(f"  timed: {len(FITTED) + len(JUDGED)} variants on one processor and on two", flush=True)
        times = {variant: timed(program, variant) for variant in (*FITTED, *JUDGED)}
        counts = {variant: counts_of(counted(program, variant)) for variant in FITTED}
        constant = fitted([(counts[variant], times[variant]) for variant in FITTED])
        print(f"  fitted: {constant}", flush=True)
        constants = folder / "constants.toml"
        constants.write_text(constant.to_toml(f"processors 0 and 1: {between}"))
        predicted = {variant: slower(counted(program, variant, constants)) for variant in JUDGED}
    return figures_of(predicted, {variant: two / one for variant, (one, two) in times.items()}, between)


def timed(program: Path, variant: Variant) -> tuple[float, float]:
    """Nanoseconds of an operation with one thread and with two, in turns: the medians."""
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS):
        for threads, taken in zip((1, 2), samples, strict=True):
            argv = [str(program), variant.kind, str(variant.work), str(threads), str(TIMED_OPERATIONS)]
            taken.append(float(subprocess.run(argv, capture_output=True, text=True, check=True).stdout))
    return statistics.median(samples[0]), statistics.median(samples[1])


def counted(program: Path, variant: Variant, constants: Path | None = None) -> Mapping[str, Any]:
    """The document of `commutant scale` for one and two cores."""
    how = ("--cores", "1,2", "--operations", str(COUNTED), "--warm-up", str(WARM_UP), "--format", "json")
    by = () if constants is None else ("--constants", str(constants))
    what = (str(program), variant.kind, str(variant.work), "{cores}", str(2 * (COUNTED + WARM_UP)))
    document: Mapping[str, Any] = commutant_run("scale", *how, *by, "--", *what).document()
    return document


def counts_of(document: Mapping[str, Any]) -> Counts:
    """What a document says of one core and of two."""
    one, two = document["steps"]
    return Counts(*((one[name], two[name]) for name in ("instructions", "misses", "upgrades")))


def slower(document: Mapping[str, Any]) -> float:
    """How many times as long an operation is predicted to take on two cores as on one."""
    one, two = (step["predicted"]["operation_ns"] for step in document["steps"])
    return float(two / one)


def fitted(seen: Sequence[tuple[Counts, tuple[float, float]]]) -> Constant:
    """The constants of some variants, of which counts and times are known: of instructions by times on one processor,
    of misses and upgrades by least squares of what times on two processors have besides."""
    instruction_ns = statistics.median(one / counts.instructions[0] for counts, (one, _) in seen)
    rows = [
        (counts.misses[1], counts.upgrades[1], two - instruction_ns * counts.instructions[1])
        for counts, (_, two) in seen
    ]
    aa, ab, bb = (sum(x * y for x, y in pairs) for pairs in _products(rows))
    ar, br = (sum(row[place] * row[2] for row in rows) for place in (0, 1))
    least = 1e-3
    determinant = aa * bb - ab * ab
    miss, upgrade = (
        ((ar * bb - br * ab) / determinant, (br * aa - ar * ab) / determinant) if determinant else (0.0, 0.0)
    )
    if upgrade < least:
        miss, upgrade = (ar / aa if aa else least), least
    elif miss < least:
        miss, upgrade = least, (br / bb if bb else least)
    return Constant(instruction_ns, max(miss, least), max(upgrade, least))


def _products(rows: Sequence[tuple[float, float, float]]) -> Sequence[Sequence[tuple[float, float]]]:
    return [[(row[first], row[second]) for row in rows] for first, second in ((0, 0), (0, 1), (1, 1))]


def figures_of(predicted: Mapping[Variant, float], measured: Mapping[Variant, float], between: str) -> list[Figure]:
    """Signs that are wrong, rank correlation and median error of what an operation takes on two cores to one."""
    pairs = [(predicted[variant], measured[variant]) for variant in predicted]
    where = f"two real cores ({between}), {len(pairs)} variants"
    wrong = [pair for pair in pairs if not 1 / MOVED <= pair[1] <= MOVED and (pair[0] > 1) != (pair[1] > 1)]
    errors = [abs(one / other - 1) for one, other in pairs]
    rows = [
        Figure(f"{variant.name}: {what}", "times", (value,), COMMAND)
        for variant in predicted
        for what, value in (
            ("predicted time on two cores to one", predicted[variant]),
            ("measured time on two cores to one", measured[variant]),
        )
    ]
    return [
        *rows,
        Figure(f"{where}: wrong signs", "", (len(wrong),), COMMAND, Goal("at_most", 0)),
        Figure(f"{where}: rank correlation", "", (rank_correlation(pairs),), COMMAND, Goal("at_least", 0.9)),
        Figure(f"{where}: median error", "", (statistics.median(errors),), COMMAND, Goal("at_most", 0.15)),
    ]


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's, 0 where one side is all the same."""
    ranks = [_ranks([pair[place] for pair in pairs]) for place in (0, 1)]
    if any(len(set(side)) < 2 for side in ranks):
        return 0.0
    return statistics.correlation(*ranks)


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def topology(folder: Path) -> str:
    """How far processors 0 and 1 are from each other, as the system says it."""

    def said(processor: int, name: str) -> str | None:
        try:
            return (folder / f"cpu{processor}" / "topology" / name).read_text().strip()
        except OSError:
            return None

    packages = [said(processor, "physical_package_id") for processor in (0, 1)]
    cores = [said(processor, "core_id") for processor in (0, 1)]
    if None in packages or None in cores:
        return "unknown"
    if packages[0] != packages[1]:
        return "far, of two sockets"
    return "siblings of one core" if cores[0] == cores[1] else "near, of one socket"
