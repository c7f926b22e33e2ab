"""What calls take in a mounted ScaleFS (`scalefs mount`), as a part of what they take on tmpfs, by turns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.commands import text_of
from bench.figure import Figure, Goal

TITLE = "A mounted ScaleFS against tmpfs"
METADATA, OPEN, DATA = 4.0, 9.0, 1.6
"""How often tmpfs's time a call may take: of names and attributes, to open and close, of 4 KiB of data."""
CALLS = (
    *("stat", "stat of what is not there", "fstat", "create+unlink", "mkdir+rmdir", "rename"),
    *("link+unlink", "symlink+readlink+unlink", "chmod", "readdir of 100 names"),
)
GOALS = {**dict.fromkeys(CALLS, METADATA), "open+close": OPEN, "pread 4 KiB": DATA, "pwrite 4 KiB": DATA}
_SPREAD = r" \[(?P<ratio_low>[\d.]+), (?P<ratio_high>[\d.]+)\]$"
_ROW = re.compile(r"^(?P<title>\S.*?)   (?P<ours>\d+) \[\d+, \d+\]   \d+ \[\d+, \d+\]   (?P<ratio>[\d.]+)" + _SPREAD)


def measure() -> list[Figure]:
    """Ratios to tmpfs by call, with the kernel's caches and without."""
    command = ("cargo", "bench", "--quiet", "-p", "scalefs-program", "--bench", "mounted")
    return list(figures_of(text_of(*command), " ".join(command)))


def figures_of(output: str, command: str) -> Iterator[Figure]:
    """The figures in what the benchmark prints; none where nothing can be mounted."""
    for line in output.splitlines():
        if row := _ROW.match(line):
            title = row["title"]
            goal = Goal("at_most", GOALS[title]) if title in GOALS else None
            samples = float(row["ratio_low"]), float(row["ratio"]), float(row["ratio_high"])
            yield Figure(f"mounted: {title}, of tmpfs's time", "", samples, command, goal)
            yield Figure(f"mounted: {title}", "ns", (float(row["ours"]),), command)
