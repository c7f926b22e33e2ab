"""What calls on ScaleFS cost, in process and on one core, as a part of what they cost on tmpfs in the same run; calls
on memory, faults and datagrams, as a part of the host's; creation, renaming and removal in a shared directory by one
and two threads; and a directory of a million files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.commands import text_of
from bench.figure import Figure, Goal

TITLE = "ScaleFS against tmpfs"
GOALS = {
    "stat": 0.15,
    "open+close": 0.12,
    "create+unlink": 0.08,
    "rename": 0.08,
    **{f"pread 4 KiB{place}": 0.35 for place in ("", " in cache")},
    **{f"pwrite 4 KiB{place}": 0.45 for place in ("", " in cache")},
    "map+touch+unmap": 0.25,
    **{f"send+receive, {order}": 0.3 for order in ("ordered", "unordered")},
    **{f"fault, {access} a file": 0.25 for access in ("load of", "store to")},
    **{f"{mark}, {threads} threads": 1.0 for mark in ("MWCM", "MWRM", "MWUM") for threads in (1, 2)},
}
"""The part of tmpfs's time that a call may take, or of the host's for memory and sockets."""

_SPREAD = r"\[(?P<{0}_low>[\d.]+), (?P<{0}_high>[\d.]+)\]"
_ROW = re.compile(
    r"^(?P<title>\S.*?) +(?P<ours>\d+) \[\d+, \d+\] +\d+ \[\d+, \d+\] +(?P<ratio>[\d.]+) "
    + _SPREAD.format("ratio")
    + "$"
)
_BYTES = re.compile(r"^\d+ files in one directory, (?P<names>names .*): (?P<bytes>\d+) bytes each")
_GROWTH = re.compile(r"^(?P<names>names .*): last over first (?P<ratio>[\d.]+) " + _SPREAD.format("ratio") + "$")
_THREADS = re.compile(r"^(?P<mark>MW\w\w), (?P<threads>\d) threads$")


def measure() -> list[Figure]:
    """Ratios to tmpfs by call, and bytes and slow-down of the large directory."""
    figures: list[Figure] = []
    for bench in ("calls", "data", "memory", "sockets"):
        command = ("cargo", "bench", "--quiet", "-p", "scalefs", "--bench", bench)
        figures += figures_of(text_of(*command), " ".join(command))
    return figures


def _with_spread(found: re.Match[str]) -> tuple[float, ...]:
    """First quartile, median, third quartile of a ratio."""
    return float(found["ratio_low"]), float(found["ratio"]), float(found["ratio_high"])


def figures_of(output: str, command: str) -> Iterator[Figure]:
    """The figures in what a benchmark prints."""
    by_threads: dict[tuple[str, str], float] = {}
    for line in output.splitlines():
        if row := _ROW.match(line):
            title = row["title"]
            goal = Goal("at_most", GOALS[title]) if title in GOALS else None
            yield Figure(f"{title}, of tmpfs's time", "", _with_spread(row), command, goal)
            yield Figure(title, "ns", (float(row["ours"]),), command)
            if marked := _THREADS.match(title):
                by_threads[marked["mark"], marked["threads"]] = float(row["ratio"])
        elif found := _BYTES.match(line):
            name = f"a directory of a million files, {found['names']}, each"
            yield Figure(name, "bytes", (float(found["bytes"]),), command, Goal("at_most", 1024))
        elif found := _GROWTH.match(line):
            name = f"the last thousand creations in it, {found['names']}, of the first thousand's time"
            yield Figure(name, "", _with_spread(found), command, Goal("at_most", 1.5))
    for (mark, threads), ratio in by_threads.items():
        if threads == "2" and (mark, "1") in by_threads:
            name = f"{mark}, part of tmpfs's time with 2 threads, of that with 1"
            yield Figure(name, "", (ratio / by_threads[mark, "1"],), command, Goal("at_most", 1))
