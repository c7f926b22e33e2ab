"""Calls drawn from a seed have the same results as on the host's memory; nothing of pages or inodes is lost."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import random
import threading
from collections.abc import Callable, Iterator

import pytest

from scalefs import FileSystem, Stale
from tests.scalefs_package.random_calls import compare, compare_in_transactions, on_host

SIZE_BYTES = 16 << 20
QUICK_CALLS = 20_000
LONG_CALLS = 1_000_000
LONG_SEEDS = 10


@contextlib.contextmanager
def nothing_lost(files: FileSystem) -> Iterator[None]:
    """After what is done here, and the removal of all, space and inodes are those of before."""
    before = files.statvfs()
    yield
    for name in files.listdir():
        if files.isdir(name) and not files.islink(name):
            files.rmtree(name)
        else:
            files.unlink(name)
    after = files.statvfs()
    assert (after.f_bfree, after.f_ffree) == (before.f_bfree, before.f_ffree)


@pytest.mark.parametrize("of", [compare, compare_in_transactions])
def test_calls_have_the_results_of_the_host(of: Callable[[FileSystem, int, int], str | None]) -> None:
    files = FileSystem(size_bytes=SIZE_BYTES)
    with nothing_lost(files), on_host():
        assert of(files, 1, QUICK_CALLS // 2) is None
    print(f"{QUICK_CALLS // 2} calls")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(LONG_SEEDS))
@pytest.mark.parametrize("of", [compare, compare_in_transactions])
def test_many_calls_have_the_results_of_the_host(of: Callable[[FileSystem, int, int], str | None], seed: int) -> None:
    files = FileSystem(size_bytes=SIZE_BYTES)
    with nothing_lost(files), on_host():
        assert of(files, 1000 + seed, LONG_CALLS // LONG_SEEDS) is None


def _in_threads(*works: Callable[[], None]) -> None:
    """Runs all at once; the first error of one is the test's."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _at_once(files: FileSystem, round_count: int) -> None:
    """Four threads append, move and count; what is there at the end follows from what each of them has done."""
    for name in ("one", "two"):
        files.mkdir(name)
    for number in range(8):
        files.write_bytes(f"one/{number}", bytes([number]) * 5000)
    files.write_bytes("count", b"0")
    moved = itertools.count()

    def work(seed: int) -> None:
        chosen = random.Random(seed)
        for step in range(round_count):
            kind = chosen.randrange(4)
            if kind == 0:
                files.append_bytes("log", bytes([seed]) * 3000)
            elif kind == 1:
                number = chosen.randrange(8)
                source, target = chosen.sample(("one", "two"), 2)
                with contextlib.suppress(FileNotFoundError):
                    files.rename(f"{source}/{number}", f"{target}/{number}")
                    next(moved)
            elif kind == 2:
                _count(files)
            else:
                with files.open(f"of-{seed}-{step}", "w+b") as file:
                    file.write(bytes([seed]) * 200_000)
                    file.seek(0)
                    assert file.read() == bytes([seed]) * 200_000
                files.unlink(f"of-{seed}-{step}")
            kinds[seed][kind] += 1

    kinds = [[0] * 4 for _ in range(4)]
    _in_threads(*(lambda seed=seed: work(seed) for seed in range(4)))
    log = files.read_bytes("log")
    parts = [log[start : start + 3000] for start in range(0, len(log), 3000)]
    assert all(part == part[:1] * 3000 for part in parts), "two appends are mixed"
    assert [sum(part[0] == seed for part in parts) for seed in range(4)] == [kind[0] for kind in kinds]
    assert int(files.read_bytes("count")) == sum(kind[2] for kind in kinds)
    assert sorted(files.listdir("one") + files.listdir("two")) == [str(number) for number in range(8)]
    for name in ("one", "two"):
        for number in files.listdir(name):
            assert files.read_bytes(f"{name}/{number}") == bytes([int(number)]) * 5000
    assert sorted(files.listdir()) == ["count", "log", "one", "two"]
    print(f"{4 * round_count} calls at once, {next(moved)} moves")


def _count(files: FileSystem) -> None:
    while True:
        with contextlib.suppress(Stale), files.transaction() as t:
            t.write_bytes("count", str(int(t.read_bytes("count")) + 1).encode())
            return


def test_threads_at_once_leave_what_each_of_them_has_done() -> None:
    files = FileSystem(size_bytes=SIZE_BYTES, cores=4)
    with nothing_lost(files):
        _at_once(files, 40)


@pytest.mark.long
def test_many_calls_at_once_leave_what_each_has_done() -> None:
    files = FileSystem(size_bytes=64 << 20, cores=4)
    for _ in range(20):
        with nothing_lost(files):
            _at_once(files, 1_000)


def test_a_file_system_that_is_full_again_and_again_loses_nothing() -> None:
    files = FileSystem(size_bytes=1 << 20)
    chosen, refused = random.Random(3), 0
    with nothing_lost(files):
        for step in range(600):
            name = f"{chosen.randrange(12)}"
            try:
                match chosen.randrange(4):
                    case 0:
                        files.write_bytes(name, bytes(chosen.randrange(300_000)))
                    case 1:
                        files.append_bytes(name, bytes(chosen.randrange(100_000)))
                    case 2:
                        with files.transaction() as t:
                            t.write_bytes(name, bytes(chosen.randrange(300_000)))
                            t.write_bytes(f"{step}", b"")
                            t.unlink(f"{step}")
                    case _:
                        files.unlink(name)
            except FileNotFoundError:
                pass
            except OSError as error:
                assert error.errno == errno.ENOSPC
                refused += 1
                files.truncate(name, 0) if files.exists(name) else None
    assert refused > 20
    files.write_bytes("all", bytes(1 << 20))
    assert files.free_bytes == 0
    print(f"{refused} calls found no space")


def test_a_difference_is_found() -> None:
    """Planted: a file system that forgets a byte of what is written."""

    class Forgetful(FileSystem):
        """What is written as a whole lacks its last byte."""

        def write_bytes(self, path: object, data: bytes) -> None:  # type: ignore[override]
            super().write_bytes(path, data[:-1])  # type: ignore[arg-type]

    with on_host():
        assert "the host says" in (compare(Forgetful(), 1, QUICK_CALLS) or "")
    assert os.getcwd()
