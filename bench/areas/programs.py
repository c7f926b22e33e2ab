"""What calls take in a mounted ScaleFS (`scalefs mount`) and in a tree of `scalefs run`, as a part of what they take
on tmpfs, by turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.commands import text_with_progress
from bench.figure import Figure, Goal

TITLE = "Programs on ScaleFS against tmpfs"
METADATA, OPEN, DATA = 4.0, 9.0, 1.6
"""How often tmpfs's time a call may take: of names and attributes, to open and close, of 4 KiB of data."""
CALLS = (
    *("stat", "stat of what is not there", "fstat", "create+unlink", "mkdir+rmdir", "rename"),
    *("link+unlink", "symlink+readlink+unlink", "chmod", "readdir of 100 names"),
)
GOALS = {**dict.fromkeys(CALLS, METADATA), "open+close": OPEN, "pread 4 KiB": DATA, "pwrite 4 KiB": DATA}
IN_TREE = {
    "stat": 0.2,
    "fstat": 0.2,
    "open+close": 0.15,
    "create+unlink": 0.1,
    "rename": 0.1,
    "read 4 KiB": 0.3,
    "pread 4 KiB": 0.3,
    "pwrite 4 KiB": 0.4,
    "make of a small program": 1.3,
    **{f"{program} of 20000 files": 0.8 for program in ("tar", "git", "rsync")},
}
"""The part of tmpfs's time that a call may take in a tree: of programs of any kind, and after many."""
EXEC = "fork, exec of true, wait"
EXEC_NS = 600_000.0
"""So much longer it may take than on tmpfs."""
IN_TRANSACTION = 2.5
"""The part of the same call's time without one that a call may take in `scalefs run --transaction`."""
OF_TMPFS, OF_MOUNT = ", of tmpfs's time", ", of the time in a mount"
_AGAINST_MOUNT = ", against a mount"
_AGAINST_NONE = ", against the same without"
_SPREAD = r" \[(?P<ratio_low>[\d.]+), (?P<ratio_high>[\d.]+)\]$"
_ROW = re.compile(
    r"^(?P<title>\S.*?)   (?P<ours>\d+) \[\d+, \d+\]   (?P<theirs>\d+) \[\d+, \d+\]   (?P<ratio>[\d.]+)" + _SPREAD
)


def measure() -> list[Figure]:
    """Ratios to tmpfs by call: of a tree, also next to a mount, and of a mount with the kernel's caches and without."""
    figures: list[Figure] = []
    for bench, place in (("programs", "tree"), ("mounted", "mounted")):
        command = ("cargo", "bench", "--quiet", "-p", "scalefs-program", "--bench", bench)
        figures += figures_of(text_with_progress(*command), " ".join(command), place)
    return figures


def figures_of(output: str, command: str, place: str) -> Iterator[Figure]:
    """The figures in what a benchmark prints; none where nothing can be mounted."""
    for line in output.splitlines():
        row = _ROW.match(line)
        if row is None:
            continue
        title = row["title"]
        samples = float(row["ratio_low"]), float(row["ratio"]), float(row["ratio_high"])
        if title.endswith(_AGAINST_MOUNT):
            title = title.removesuffix(_AGAINST_MOUNT)
            yield Figure(f"{place}: {title}{OF_MOUNT}", "", samples, command)
            continue
        if title.endswith(_AGAINST_NONE):
            title = title.removesuffix(_AGAINST_NONE)
            in_time = Goal("at_most", IN_TRANSACTION)
            yield Figure(f"{place}: {title}, of the time without", "", samples, command, in_time)
            continue
        limit = GOALS.get(title) if place == "mounted" else IN_TREE.get(title.partition(", ")[0])
        goal = None if limit is None or title.endswith("passed on") else Goal("at_most", limit)
        yield Figure(f"{place}: {title}{OF_TMPFS}", "", samples, command, goal)
        yield Figure(f"{place}: {title}", "ns", (float(row["ours"]),), command)
        if title == EXEC:
            more = float(row["ours"]) - float(row["theirs"])
            yield Figure(f"{place}: {title}, longer than on tmpfs", "ns", (more,), command, Goal("at_most", EXEC_NS))
