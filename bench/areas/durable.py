"""What a commit costs that lasts: on a durable instance of ScaleFS, in redb, in SQLite, and as little as a disk has to
do; and a directory service on flat files, against the same in SQLite.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.commands import ROOT, text_of
from bench.figure import Figure, Goal, number

TITLE = "Durable instances of ScaleFS"

SMALL = "3 files of 1.4 kB"
LARGE = "2,000 files of 4 KiB"
GOALS = {
    f"durable transaction, {SMALL}, of append and fdatasync": Goal("at_most", 1.3),
    f"durable transaction, {LARGE}, of append and fdatasync": Goal("at_most", 3),
    "durable commits of 16 threads, of one": Goal("at_least", 10),
    "directory service, of SQLite": Goal("at_least", 3),
}

_BENCH = ("cargo", "bench", "--quiet", "-p", "durable", "--bench", "commits")
_SERVICE = ("cargo", "run", "--release", "--quiet", "-p", "durable", "--example", "lasting_directory", "--")
_REQUESTS = re.compile(r"requests a second: (\d+)")
_COMMAND = "make bench-durable"
_CLIENTS = 16
_ROUNDS = 3


def measure() -> list[Figure]:
    """Times of commits, and requests a second of the service; rounds of both services take turns."""
    figures = [_timed(line) for line in text_of(*_BENCH).splitlines()]
    ours, theirs = [], []
    for _ in range(_ROUNDS):
        ours.append(_served(requests=200))
        theirs.append(sqlite_served(clients=_CLIENTS, requests=20))
    return [
        *figures,
        *sqlite_commits(),
        Figure("directory service", "requests/s", tuple(ours), " ".join(_SERVICE)),
        Figure("directory service in SQLite", "requests/s", tuple(theirs), _COMMAND),
        _goal("directory service, of SQLite", tuple(own / other for own, other in zip(ours, theirs, strict=True))),
    ]


def TABLE(figures: Mapping[str, Figure]) -> list[str]:
    """The commits of all kinds, side by side."""
    rows = [f"| what | {SMALL} | {LARGE} |", "| --- | --- | --- |"]
    for what in ("append and fdatasync", "durable transaction", "redb", "SQLite, WAL, full"):
        cells = [f"{number(figures[f'{what}, {size}'].median)} ms" for size in (SMALL, LARGE)]
        rows.append(f"| {what} | {' | '.join(cells)} |")
    return rows


def _goal(name: str, samples: tuple[float, ...]) -> Figure:
    return Figure(name, "", samples, _COMMAND, GOALS[name])


def _timed(line: str) -> Figure:
    name, unit, samples = line.split("\t")
    return Figure(name, unit, tuple(map(float, samples.split())), " ".join(_BENCH), GOALS.get(name))


def _served(requests: int) -> float:
    found = _REQUESTS.search(text_of(*_SERVICE, str(_CLIENTS), str(requests)))
    if found is None:
        raise RuntimeError(f"`{' '.join(_SERVICE)}` says nothing of requests a second")
    return float(found[1])


def _connection(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None, timeout=60, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def sqlite_commits() -> Iterator[Figure]:
    """The same commits as rows of SQLite."""
    (ROOT / "target").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
        connection = _connection(Path(folder) / "files")
        connection.execute("CREATE TABLE files (name TEXT PRIMARY KEY, content BLOB)")
        for size, rounds, files, length in ((SMALL, 30, 3, 1400), (LARGE, 5, 2000, 4096)):
            samples = []
            for turn in range(rounds):
                rows = [(f"{files}-{turn}-{file}", bytes([turn + 1]) * length) for file in range(files)]
                began = time.monotonic()
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT INTO files VALUES (?, ?)", rows)
                connection.execute("COMMIT")
                samples.append((time.monotonic() - began) * 1000)
            yield Figure(f"SQLite, WAL, full, {size}", "ms", tuple(samples), _COMMAND)
        connection.close()


def sqlite_served(clients: int, requests: int) -> float:
    """Requests a second of the directory service's clients, where entries are rows."""
    (ROOT / "target").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
        file = Path(folder) / "entries"
        first = _connection(file)
        first.execute("CREATE TABLE entries (name TEXT PRIMARY KEY, attributes TEXT)")
        first.executemany("INSERT INTO entries VALUES (?, '')", [(f"ou={group}",) for group in range(4)])

        def client(number_of_client: int) -> None:
            connection = _connection(file)
            for request in range(requests):
                group = f"ou={(number_of_client + request // 2) % 4}"
                name = f"uid={number_of_client}-{request // 2},{group}"
                connection.execute("BEGIN IMMEDIATE")
                if request % 4 == 1:
                    connection.execute("DELETE FROM entries WHERE name = ?", (name,))
                elif request % 4 == 3:
                    connection.execute("UPDATE entries SET attributes = attributes || 'mail' WHERE name = ?", (name,))
                elif connection.execute("SELECT 1 FROM entries WHERE name = ?", (group,)).fetchone():
                    connection.execute("INSERT INTO entries VALUES (?, 'cn')", (name,))
                connection.execute("COMMIT")
            connection.close()

        threads = [threading.Thread(target=client, args=(number_of_client,)) for number_of_client in range(clients)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        first.close()
    return clients * requests / took
