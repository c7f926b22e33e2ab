"""What calls on ScaleFS cost, in process and on one core, as a part of what they cost on tmpfs in the same run;
creation, renaming and removal in a shared directory by one and two threads; and a directory of a million files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.commands import text_of
from bench.figure import Figure, Goal

TITLE = "ScaleFS against tmpfs"
GOALS = {
    "stat": 0.2,
    "open+close": 0.15,
    "create+unlink": 0.1,
    "rename": 0.15,
    "pread 4 KiB": 0.35,
    "pwrite 4 KiB": 0.45,
    **{f"{mark}, {threads} threads": 1.0 for mark in ("MWCM", "MWRM", "MWUM") for threads in (1, 2)},
}
"""The part of tmpfs's time that a call may take."""

_ROW = re.compile(
    r"^(?P<title>\S.*?) +(?P<ours>\d+)(?: \[\d+, \d+\])? +(?P<theirs>\d+)(?: \[\d+, \d+\])? +(?P<ratio>\d+\.\d+)$"
)
_BYTES = re.compile(r"^(?P<files>\d+) files in one directory: (?P<bytes>\d+) bytes each")
_GROWTH = re.compile(r"last over first (?P<ratio>\d+\.\d+)$")


def measure() -> list[Figure]:
    """Ratios to tmpfs by call, and bytes and slow-down of the large directory."""
    figures: list[Figure] = []
    for bench in ("calls", "data"):
        command = ("cargo", "bench", "--quiet", "-p", "scalefs", "--bench", bench)
        figures += figures_of(text_of(*command), " ".join(command))
    return figures


def figures_of(output: str, command: str) -> Iterator[Figure]:
    """The figures in what a benchmark prints."""
    for line in output.splitlines():
        if row := _ROW.match(line):
            title = row["title"]
            goal = Goal("at_most", GOALS[title]) if title in GOALS else None
            yield Figure(f"{title}, of tmpfs's time", "", (float(row["ratio"]),), command, goal)
            yield Figure(title, "ns", (float(row["ours"]),), command)
        elif found := _BYTES.match(line):
            yield Figure(
                "a directory of a million files, each",
                "bytes",
                (float(found["bytes"]),),
                command,
                Goal("at_most", 1024),
            )
        elif found := _GROWTH.search(line):
            name = "the last thousand creations in it, of the first thousand's time"
            yield Figure(name, "", (float(found["ratio"]),), command, Goal("at_most", 2))
