"""The file system over domains without coherence: Hare's 13 benchmarks as calls, measured and simulated.

The program `domains-bench` prints times and counts, one line of JSON for each. What is held against each other is of
one round. Figures of Hare are those of its paper's text (`bench.hare` has the page's tables).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.commands import ROOT, text_of
from bench.figure import Figure, Goal

TITLE = "The file system over domains without coherence"
COMMAND = ("cargo", "run", "--quiet", "--release", "-p", "domains-bench", "--")
PARTS = ("trips", "measured", "hare", "cxl")
"""What the program measures, one after the other."""
_TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = _TARGET / "release" / "domains-bench"
KEPT = _TARGET / "bench-domains"
"""Output of parts that are done, until all are."""

SPLIT, SERVER, SHARED, ONE, SCALEFS, TMPFS = (
    *("server and client", "all at the server", "time-shared"),
    *("one domain", "ScaleFS", "tmpfs"),
)
"""What the benchmarks run on."""
SYSTEMS = (SPLIT, SERVER, SHARED, ONE, SCALEFS)
GOALS_OF_MEDIAN = {SPLIT: 1.0, SHARED: 0.6}
LEAST = 0.4
"""Of tmpfs's throughput: the median over all benchmarks, and each."""
GAINS = {"distribution": 1.93, "broadcast": 1.43, "direct access": 1.18, "caches": 1.44, "affinity": 1.02}
"""Hare's averages (figure 9)."""
MOST_AWAY = 1.3
"""How many times as large, or as small, ours may be."""
SPEED_UP, CREATES_LEAST, CREATES_MOST = 20, 3, 5
RENAME_TRIPS = 1.5
EFFICIENCY = {
    "creates, own directories": 0.6,
    "creates, working directory": 0.4,
    "creates, one directory": 0.4,
    "creates, one directory, new names": 0.4,
}
"""Speed-up by core over one core with the same work; what is warm stands in the rows."""
SECONDS_OF_MILLION = 120
PER_CALL = ("messages", "bytes", "lines", "waits")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """What a run printed, by the kind of row."""

    of: Mapping[str, Sequence[Row]]

    @classmethod
    def read(cls, output: str) -> Rows:
        """The rows of a program's output."""
        rows: dict[str, list[Row]] = {}
        for line in output.splitlines():
            row = json.loads(line)
            rows.setdefault(row["part"], []).append(row)
        return cls(rows)

    def all(self, part: str, **wanted: Any) -> list[Row]:
        """Those of a kind with these values."""
        found = self.of.get(part, ())
        return [row for row in found if all(row[name] == value for name, value in wanted.items())]

    def names(self, part: str, field: str) -> list[str]:
        """The values of a field, each once, in their order."""
        return list(dict.fromkeys(row[field] for row in self.of.get(part, ())))


def measure() -> list[Figure]:
    """All figures of one run, part by part: of a run that is interrupted, the next one takes the parts that were done.

    Only of the same program: each has a folder of its own.
    """
    text_of("cargo", "build", "--quiet", "--release", "-p", "domains-bench", shows_progress=True)
    folder = KEPT / hashlib.sha256(PROGRAM.read_bytes()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    output = "".join(part_of(folder / f"{part}.jsonl", *COMMAND, part) for part in PARTS)
    figures = figures_of(Rows.read(output))
    shutil.rmtree(KEPT)
    return figures


def part_of(kept: Path, *command: str) -> str:
    """What a command prints, or has printed before: once it has ended, its output is kept in a file."""
    if kept.exists():
        print(f"  {' '.join(command)}: taken from {kept}", flush=True)
        return kept.read_text(encoding="utf-8")
    output = text_of(*command, shows_progress=True)
    whole = kept.with_suffix(".part")
    whole.write_text(output, encoding="utf-8")
    whole.rename(kept)
    return output


def figures_of(rows: Rows) -> list[Figure]:
    """The figures of what a run printed."""
    return [*_trips(rows), *_measured(rows), *_calls(rows), *_scale(rows), *_techniques(rows), *_cxl(rows)]


def _figure(name: str, unit: str, samples: Iterable[float], part: str, goal: Goal | None = None) -> Figure:
    return Figure(name, unit, tuple(samples), f"{' '.join(COMMAND)} {part}", goal)


def _trips(rows: Rows) -> Iterator[Figure]:
    for system in rows.names("round trip", "configuration"):
        times = {
            what: [row["ns"] for row in rows.all("round trip", configuration=system, what=what)]
            for what in rows.names("round trip", "what")
        }
        for what, samples in times.items():
            yield _figure(f"{system}: {what}", "ns", samples, "trips")
        ratios = [rename / bare for rename, bare in zip(times["rename"], times["bare"], strict=True)]
        name = f"{system}: rename, of a bare round trip"
        yield _figure(name, "times", ratios, "trips", Goal("at_most", RENAME_TRIPS))


def _measured(rows: Rows) -> Iterator[Figure]:
    of_tmpfs: dict[str, list[float]] = {system: [] for system in SYSTEMS}
    for benchmark in rows.names("measured", "benchmark"):
        times = {
            system: [row["ns"] for row in rows.all("measured", benchmark=benchmark, configuration=system)]
            for system in (*SYSTEMS, TMPFS)
        }
        yield _figure(f"{benchmark}, {TMPFS}: a call", "ns", times[TMPFS], "measured")
        for system in SYSTEMS:
            ratios = [theirs / ours for theirs, ours in zip(times[TMPFS], times[system], strict=True)]
            of_tmpfs[system].append(statistics.median(ratios))
            goal = Goal("at_least", LEAST) if system in GOALS_OF_MEDIAN else None
            yield _figure(f"{benchmark}, {system}: throughput, of tmpfs's", "times", ratios, "measured", goal)
            if system in (SPLIT, SERVER):
                for count in PER_CALL:
                    found = rows.all("measured", benchmark=benchmark, configuration=system)
                    yield _figure(
                        f"{benchmark}, {system}: {count}, per call", "", [row[count] for row in found], "measured"
                    )
    for system, medians in of_tmpfs.items():
        if medians:
            bound = GOALS_OF_MEDIAN.get(system)
            goal = None if bound is None else Goal("at_least", bound)
            yield _figure(
                f"median of all, {system}: throughput, of tmpfs's",
                "times",
                [statistics.median(medians)],
                "measured",
                goal,
            )


def _calls(rows: Rows) -> Iterator[Figure]:
    for row in rows.all("calls"):
        yield _figure(f"{row['benchmark']}: calls of {row['call']}", "of all", [row["share"]], "measured")


def _scale(rows: Rows) -> Iterator[Figure]:
    found = rows.all("scale")
    for row in found:
        cores = f"{row['domains']:.0f} simulated cores"
        yield _figure(f"{row['benchmark']}, {cores}: speed-up", "times", [row["speed_up"]], "hare")
        for count in ("messages", "waits"):
            yield _figure(f"{row['benchmark']}, {cores}: {count}, per call", "", [row[count]], "hare")
    if found:
        average = statistics.mean(row["speed_up"] for row in found)
        yield _figure("average speed-up on simulated cores", "times", [average], "hare", Goal("at_least", SPEED_UP))


def _techniques(rows: Rows) -> Iterator[Figure]:
    for technique in rows.names("technique", "technique"):
        gains = {row["benchmark"]: row["gain"] for row in rows.all("technique", technique=technique)}
        for benchmark, gain in gains.items():
            yield _figure(f"{benchmark}: gain of {technique}", "times", [gain], "hare")
        average = statistics.mean(gains.values())
        yield _figure(f"average gain of {technique}", "times", [average], "hare")
        if technique in GAINS:
            away = max(average / GAINS[technique], GAINS[technique] / average)
            name = f"average gain of {technique}: how far from Hare's"
            yield _figure(name, "times", [away], "hare", Goal("at_most", MOST_AWAY))
        if technique == "distribution":
            for kind, bound in (("at_least", CREATES_LEAST), ("at_most", CREATES_MOST)):
                name = f"creates: gain of distribution, {kind.replace('_', ' ')}"
                yield _figure(name, "times", [gains["creates"]], "hare", Goal(kind, bound))


def _cxl(rows: Rows) -> Iterator[Figure]:
    for row in rows.all("cxl"):
        what = f"{row['workload']}, {row['domains']:.0f} simulated hosts on CXL"
        goal = Goal("at_least", EFFICIENCY[row["workload"]])
        yield _figure(f"{what}: efficiency", "", [row["efficiency"]], "cxl", goal)
        yield _figure(f"{what}: waits, per call", "", [row["waits"]], "cxl")
    if found := rows.all("cxl"):
        slowest = max(row["seconds_of_million"] for row in found)
        goal = Goal("at_most", SECONDS_OF_MILLION)
        yield _figure("simulation of a million calls of 256 hosts", "s", [slowest], "cxl", goal)
