"""Files of 1,000 bytes from Python: stored two at a time in a transaction, and read, on ScaleFS, SQLite and the host.

    python -m bench.python_files

The host's file system in memory has no transactions: there each file is written and renamed by itself.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from scalefs import FileSystem

FILES = 3_000
ROUNDS = 5
CONTENT = b"x" * 1_000
SECOND_CONTENT = b"1000"

Times = tuple[float, float]
"""Microseconds to store a file with its second one, and to read one."""


def _timed(store: Callable[[int], object], read: Callable[[int], object]) -> Times:
    return _mean(store), _mean(read)


def _mean(step: Callable[[int], object]) -> float:
    """Of the steps but the slowest of a hundred, in which something else had the processor."""
    times = []
    for number in range(FILES):
        started = time.perf_counter()
        step(number)
        times.append(time.perf_counter() - started)
    kept = sorted(times)[: FILES * 99 // 100]
    return sum(kept) / len(kept) * 1e6


def on_scalefs() -> Times:
    """Both files are written elsewhere, and get their names in one transaction."""
    files = FileSystem(size_bytes=64 << 20)
    for name in ("/one", "/two", "/new"):
        files.mkdir(name)

    def store(number: int) -> None:
        files.write_bytes("/new/one", CONTENT)
        files.write_bytes("/new/two", SECOND_CONTENT)
        with files.transaction() as t:
            t.rename("/new/one", f"/one/{number}")
            t.rename("/new/two", f"/two/{number}")

    return _timed(store, lambda number: files.read_bytes(f"/one/{number}"))


def on_sqlite() -> Times:
    """Two rows in one transaction, in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for name in ("one", "two"):
        connection.execute(f"create table {name}(name text primary key, content blob)")

    def store(number: int) -> None:
        connection.execute("begin")
        connection.execute("insert into one values(?, ?)", (str(number), CONTENT))
        connection.execute("insert into two values(?, ?)", (str(number), SECOND_CONTENT))
        connection.execute("commit")

    def read(number: int) -> None:
        connection.execute("select content from one where name = ?", (str(number),)).fetchone()

    return _timed(store, read)


def on_host() -> Times:
    """Files of the host's memory, by `open` and `os.rename`."""
    folder = tempfile.mkdtemp(dir="/dev/shm")
    for name in ("one", "two", "new"):
        (Path(folder) / name).mkdir()

    def store(number: int) -> None:
        for name, content in (("one", CONTENT), ("two", SECOND_CONTENT)):
            with open(f"{folder}/new/{name}", "wb") as file:  # noqa: PTH123 - as programs do that want to be fast
                file.write(content)
        for name in ("one", "two"):
            os.rename(f"{folder}/new/{name}", f"{folder}/{name}/{number}")  # noqa: PTH104

    def read(number: int) -> None:
        with open(f"{folder}/one/{number}", "rb") as file:  # noqa: PTH123
            file.read()

    try:
        return _timed(store, read)
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Prints the best of each by turns, and how many times the others' ours take."""
    measured: dict[str, list[Times]] = {}
    for _ in range(ROUNDS):
        for measure in (on_scalefs, on_sqlite, on_host):
            measured.setdefault(measure.__name__, []).append(measure())
    best = {name: tuple(min(times) for times in zip(*rounds, strict=True)) for name, rounds in measured.items()}
    ours = best["on_scalefs"]
    print("| | store | read | ScaleFS, of it: store | read |\n| --- | --- | --- | --- | --- |")
    for words, name in (("ScaleFS", "on_scalefs"), ("SQLite in memory", "on_sqlite"), ("host's memory", "on_host")):
        store, read = best[name]
        print(f"| {words} | {store:.1f} | {read:.1f} | {ours[0] / store:.2f} | {ours[1] / read:.2f} |")


if __name__ == "__main__":
    main()
