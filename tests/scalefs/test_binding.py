"""The Python binding: files of an instance can be listed, read and written, and errors are those of `os`."""

from __future__ import annotations

import copy
import doctest
import errno
import os
import pickle
import random
import threading
from pathlib import Path

import pytest

import commutant.scalefs
from commutant.scalefs import PAGE_BYTES, FileSystem, Kind


def test_the_example_in_the_documentation_runs() -> None:
    outcome = doctest.testmod(commutant.scalefs)
    assert outcome.attempted >= 4
    assert outcome.failed == 0


def test_the_program_in_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "files.md"
    program = guide.read_text().split("```python\n")[1].split("```")[0]
    exec(compile(program, str(guide), "exec"), {})
    assert capsys.readouterr().out == "Dear Bob\n"


def test_files_are_listed_read_and_written() -> None:
    files = FileSystem()
    assert files.list() == []
    files.make_directory("a", 0o751)
    files.write("a/empty", b"")
    files.write(b"a/one", b"12345")
    files.write(Path("a/one"), b"67", append=True)
    files.rename("/a/one", "/two")
    assert files.list("/") == ["a", "two"]
    assert files.list("a") == ["empty"]
    assert files.read("two") == b"1234567"
    assert files.read("a/empty") == b""
    status = files.stat("two")
    assert (status.kind, status.mode, status.link_count, status.size_bytes) == (Kind.FILE, 0o644, 1, 7)
    assert files.stat("a").kind is Kind.DIRECTORY
    assert files.stat("a").mode == 0o751
    assert status.modified_ns > status.accessed_ns > 1_700_000_000 * 10**9
    files.write("two", b"x")
    assert files.read("two") == b"x"
    files.remove("a/empty")
    files.remove("a")
    assert files.list() == ["two"]


def test_any_bytes_come_back() -> None:
    files, generator = FileSystem(), random.Random(5)
    kept = {}
    for length in (1, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, 100_000, 3 << 20):
        name = os.fsdecode(bytes([0xFF, 0x80])) + str(length)
        kept[name] = generator.randbytes(length)
        files.write(name, kept[name])
    assert files.list() == sorted(kept)
    assert {name: files.read(name) for name in files.list()} == kept


def test_all_that_holds_bytes_can_be_written() -> None:
    files = FileSystem()
    for data in (bytearray(b"one"), memoryview(b"xtwox")[1:4], memoryview(b"t.h.r")[::2]):
        files.write("file", data, append=True)
    assert files.read("file") == b"onetwothr"
    for wrong in ("text", 5, [1, 2]):
        with pytest.raises(TypeError):
            files.write("file", wrong)  # type: ignore[arg-type]
    assert files.read("file") == b"onetwothr"


@pytest.mark.parametrize("data_bytes", [0, 1, 64 << 20, 1 << 30, 3 << 30])
def test_space_for_all_else_follows_the_space_for_data(data_bytes: int) -> None:
    """A gigabyte of pages once took all of the metadata that there was, for the first file to find none."""
    files = FileSystem(data_bytes=data_bytes)
    assert files.free_bytes == -(-data_bytes // PAGE_BYTES) * PAGE_BYTES
    for number in range(1_000):
        files.write(f"file{number}", b"")


@pytest.mark.parametrize(
    "sizes",
    [
        {"data_bytes": -1},
        {"metadata_bytes": -1},
        {"data_bytes": 1 << 44},
        {"data_bytes": 1 << 80},
        {"metadata_bytes": 1 << 64},
        {"metadata_bytes": 100},
        {"data_bytes": 1 << 30, "metadata_bytes": 1 << 20},
    ],
)
def test_sizes_that_make_no_file_system_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="bytes"):
        FileSystem(**sizes)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda files: files.read("missing"), errno.ENOENT),
        (lambda files: files.read(""), errno.ENOENT),
        (lambda files: files.read("directory"), errno.EISDIR),
        (lambda files: files.list("file"), errno.ENOTDIR),
        (lambda files: files.write("missing/file", b""), errno.ENOENT),
        (lambda files: files.write("x" * 256, b""), errno.ENAMETOOLONG),
        (lambda files: files.make_directory("file"), errno.EEXIST),
        (lambda files: files.remove("."), errno.EINVAL),
        (lambda files: files.rename("directory", "directory/below"), errno.EINVAL),
    ],
)
def test_errors_are_those_of_os(call, error: int) -> None:  # type: ignore[no-untyped-def]
    files = FileSystem()
    files.make_directory("directory")
    files.write("file", b"")
    files.write("x" * 255, b"")
    with pytest.raises(OSError, match=os.strerror(error)) as raised:
        call(files)
    assert raised.value.errno == error
    assert sorted(files.list()) == sorted(["directory", "file", "x" * 255])


def test_an_error_names_the_paths() -> None:
    files = FileSystem()
    with pytest.raises(FileNotFoundError) as raised:
        files.rename("old", "new")
    assert (raised.value.filename, raised.value.filename2) == ("old", "new")


def test_a_path_with_nul_is_refused_as_by_os() -> None:
    with pytest.raises(ValueError, match="embedded null byte"):
        FileSystem().write("a\0b", b"")


def test_a_full_file_system_says_so_and_loses_nothing() -> None:
    files = FileSystem(data_bytes=10 * PAGE_BYTES)
    files.write("kept", b"k" * PAGE_BYTES)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        files.write("large", b"l" * (20 * PAGE_BYTES))
    assert files.read("large") == b"l" * (9 * PAGE_BYTES)
    assert files.free_bytes == 0
    files.remove("large")
    for _ in range(10):
        files.list()
    assert files.free_bytes == 9 * PAGE_BYTES
    assert files.read("kept") == b"k" * PAGE_BYTES


@pytest.mark.parametrize(("sizes", "what"), [({"metadata_bytes": 1000}, "more"), ({"data_bytes": -1}, "not negative")])
def test_sizes_that_make_no_file_system_are_refused_in_one_line(sizes: dict[str, int], what: str) -> None:
    with pytest.raises(ValueError, match=what) as raised:
        FileSystem(**sizes)
    assert "\n" not in str(raised.value)


def test_a_closed_file_system_refuses_every_call() -> None:
    with FileSystem() as files:
        files.write("a", b"kept")
    calls = [
        lambda: files.list(),
        lambda: files.read("a"),
        lambda: files.write("a", b""),
        lambda: files.make_directory("b"),
        lambda: files.remove("a"),
        lambda: files.rename("a", "b"),
        lambda: files.stat("a"),
        lambda: files.free_bytes,
        lambda: files.__enter__(),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="the file system is closed"):
            call()
    files.close()


def test_a_file_system_is_closed_while_another_thread_calls() -> None:
    """The call comes to its end, and the next is refused."""
    files, outcomes = FileSystem(), []

    def work() -> None:
        try:
            while True:
                files.write("a", b"x" * 100_000)
                outcomes.append(files.read("a") == b"x" * 100_000)
        except ValueError as error:
            outcomes.append("closed" in str(error))

    thread = threading.Thread(target=work)
    thread.start()
    while len(outcomes) < 3:
        pass
    files.close()
    thread.join()
    assert all(outcomes)


def test_file_systems_are_neither_mixed_nor_copied() -> None:
    """Nothing of one instance can be handed to another but bytes: what is tried instead is refused by its type."""
    one, other = FileSystem(), FileSystem()
    one.write("a", b"one")
    for wrong in (lambda: other.read(one), lambda: other.rename("a", one), lambda: other.write("a", one)):
        with pytest.raises(TypeError, match="FileSystem"):
            wrong()  # type: ignore[no-untyped-call]
    with pytest.raises(FileNotFoundError):
        other.read("a")
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            make(one)  # type: ignore[operator]


def test_a_child_of_fork_in_the_middle_of_a_call_is_refused_and_does_not_wait() -> None:
    files, is_over = FileSystem(), threading.Event()

    def work(name: str) -> None:
        while not is_over.is_set():
            files.write(name, b"x" * 50_000)
            files.rename(name, "b")

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "c")]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                refused = 0
                for call in (lambda: files.list(), lambda: files.write("d", b""), lambda: files.free_bytes):
                    try:
                        call()
                    except RuntimeError as error:
                        refused += "fork" in str(error)
                os._exit(0 if refused == 3 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert files.list() == ["b"]


def test_a_child_of_fork_is_refused() -> None:
    files = FileSystem()
    child = os.fork()
    if child == 0:
        try:
            files.list()
        except RuntimeError as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert files.list() == []


def test_threads_may_share_an_instance() -> None:
    files = FileSystem()

    def work(number: int) -> None:
        for index in range(50):
            files.write(f"{number}-{index}", str(index).encode())
            assert files.read(f"{number}-{index}") == str(index).encode()
            files.write("log", b"x", append=True)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(files.list()) == 4 * 50 + 1
    assert files.read("log") == b"x" * 200
