"""Files of an instance can be listed, read and written as by `os`, and what cannot be is refused."""

from __future__ import annotations

import copy
import doctest
import errno
import inspect
import os
import pickle
import pydoc
import random
import stat
import threading
from pathlib import Path

import pytest

import scalefs
import scalefs.file_system
from scalefs import PAGE_BYTES, FileSystem


def test_the_example_in_the_documentation_runs() -> None:
    for module in (scalefs, scalefs.file_system):
        outcome = doctest.testmod(module)
        assert outcome.attempted >= 4
        assert outcome.failed == 0


def test_help_of_the_package_shows_what_it_has() -> None:
    """It showed an exception alone: `help` takes what a package imports for others', unless `__all__` names it."""
    shown = pydoc.plain(pydoc.render_doc(scalefs))
    for name in ("class FileSystem", "class Transaction", "class Stale", "named("):
        assert name in shown, name
    own = {name for name, value in vars(scalefs).items() if not (name.startswith("_") or inspect.ismodule(value))}
    assert set(scalefs.__all__) == own


def test_the_program_in_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "files.md"
    program = guide.read_text().split("```python\n")[1].split("```")[0]
    exec(compile(program, str(guide), "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        "Dear Bob",
        "['letter']",
        f"[Errno 2] {os.strerror(errno.ENOENT)}: '/one'",
    ]


def test_the_programs_of_the_reference_run() -> None:
    """One after the other: later ones use what earlier ones have made."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "python-files.md"
    names: dict[str, object] = {}
    programs = [part.split("```")[0] for part in page.read_text().split("```python\n")[1:]]
    assert len(programs) == 3
    for program in programs:
        exec(compile(program, str(page), "exec"), names)
    scalefs.forget("trees")


def test_files_are_listed_read_and_written() -> None:
    files = FileSystem()
    assert files.listdir() == []
    files.mkdir("a", 0o751)
    files.write_bytes("a/empty", b"")
    files.write_bytes(b"a/one", b"12345")
    files.append_bytes(Path("a/one"), b"67")
    files.rename("/a/one", "/two")
    assert sorted(files.listdir("/")) == ["a", "two"]
    assert files.listdir("a") == ["empty"] and files.listdir(b"a") == [b"empty"]
    assert files.read_bytes("two") == b"1234567"
    assert files.read_bytes("a/empty") == b""
    status = files.stat("two")
    assert (status.st_mode, status.st_nlink, status.st_size) == (0o100644, 1, 7)
    assert files.isdir("a") and not files.isfile("a")
    assert stat.S_IMODE(files.stat("a").st_mode) == 0o751
    assert status.st_mtime_ns > status.st_atime_ns > 1_700_000_000 * 10**9
    files.write_bytes("two", b"x")
    assert files.read_bytes("two") == b"x"
    files.unlink("a/empty")
    files.rmdir("a")
    assert files.listdir() == ["two"]


def test_any_bytes_come_back() -> None:
    files, generator = FileSystem(), random.Random(5)
    kept = {}
    for length in (1, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, 100_000, 3 << 20):
        name = os.fsdecode(bytes([0xFF, 0x80])) + str(length)
        kept[name] = generator.randbytes(length)
        files.write_bytes(name, kept[name])
    assert sorted(files.listdir()) == sorted(kept)
    assert {name: files.read_bytes(name) for name in files.listdir()} == kept


def test_all_that_holds_bytes_can_be_written() -> None:
    files = FileSystem()
    for data in (bytearray(b"one"), memoryview(b"xtwox")[1:4], memoryview(b"t.h.r")[::2]):
        files.append_bytes("file", data)
    assert files.read_bytes("file") == b"onetwothr"
    for wrong in ("text", 5, [1, 2]):
        with pytest.raises(TypeError):
            files.write_bytes("file", wrong)  # type: ignore[arg-type]
    assert files.read_bytes("file") == b"onetwothr"


@pytest.mark.parametrize("size_bytes", [0, 1, 64 << 20, 1 << 30, 3 << 30])
def test_space_for_all_else_follows_the_space_for_data(size_bytes: int) -> None:
    """A gigabyte of pages once took all of the metadata that there was, for the first file to find none."""
    files = FileSystem(size_bytes=size_bytes)
    assert files.free_bytes == -(-size_bytes // PAGE_BYTES) * PAGE_BYTES
    for number in range(1_000):
        files.write_bytes(f"file{number}", b"")


@pytest.mark.parametrize(
    "sizes",
    [
        {"size_bytes": -1},
        {"metadata_bytes": -1},
        {"size_bytes": 1 << 44},
        {"size_bytes": 1 << 80},
        {"metadata_bytes": 1 << 64},
        {"metadata_bytes": 100},
        {"size_bytes": 1 << 30, "metadata_bytes": 1 << 20},
    ],
)
def test_sizes_that_make_no_file_system_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="bytes"):
        FileSystem(**sizes)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda files: files.read_bytes("missing"), errno.ENOENT),
        (lambda files: files.read_bytes(""), errno.ENOENT),
        (lambda files: files.read_bytes("directory"), errno.EISDIR),
        (lambda files: files.listdir("file"), errno.ENOTDIR),
        (lambda files: files.write_bytes("missing/file", b""), errno.ENOENT),
        (lambda files: files.write_bytes("x" * 256, b""), errno.ENAMETOOLONG),
        (lambda files: files.mkdir("file"), errno.EEXIST),
        (lambda files: files.rmdir("."), errno.EINVAL),
        (lambda files: files.rename("directory", "directory/below"), errno.EINVAL),
    ],
)
def test_errors_are_those_of_os(call, error: int) -> None:  # type: ignore[no-untyped-def]
    files = FileSystem()
    files.mkdir("directory")
    files.write_bytes("file", b"")
    files.write_bytes("x" * 255, b"")
    with pytest.raises(OSError, match=os.strerror(error)) as raised:
        call(files)
    assert raised.value.errno == error
    assert sorted(files.listdir()) == sorted(["directory", "file", "x" * 255])


def test_an_error_names_the_paths() -> None:
    files = FileSystem()
    with pytest.raises(FileNotFoundError) as raised:
        files.rename("old", "new")
    assert (raised.value.filename, raised.value.filename2) == ("old", "new")


def test_a_path_with_nul_is_refused_as_by_os() -> None:
    with pytest.raises(ValueError, match="embedded null byte"):
        FileSystem().write_bytes("a\0b", b"")


def test_a_full_file_system_says_so_and_loses_nothing() -> None:
    files = FileSystem(size_bytes=10 * PAGE_BYTES)
    files.write_bytes("kept", b"k" * PAGE_BYTES)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        files.write_bytes("large", b"l" * (20 * PAGE_BYTES))
    assert files.read_bytes("large") == b"l" * (9 * PAGE_BYTES)
    assert files.free_bytes == 0
    files.remove("large")
    assert files.free_bytes == 9 * PAGE_BYTES
    assert files.read_bytes("kept") == b"k" * PAGE_BYTES


@pytest.mark.parametrize(("sizes", "what"), [({"metadata_bytes": 1000}, "more"), ({"size_bytes": -1}, "not negative")])
def test_sizes_that_make_no_file_system_are_refused_in_one_line(sizes: dict[str, int], what: str) -> None:
    with pytest.raises(ValueError, match=what) as raised:
        FileSystem(**sizes)
    assert "\n" not in str(raised.value)


def test_a_closed_file_system_refuses_every_call() -> None:
    with FileSystem() as files:
        files.write_bytes("a", b"kept")
    calls = [
        lambda: files.listdir(),
        lambda: files.read_bytes("a"),
        lambda: files.write_bytes("a", b""),
        lambda: files.mkdir("b"),
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
                files.write_bytes("a", b"x" * 100_000)
                outcomes.append(files.read_bytes("a") == b"x" * 100_000)
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
    one.write_bytes("a", b"one")
    for wrong in (lambda: other.read_bytes(one), lambda: other.rename("a", one), lambda: other.write_bytes("a", one)):
        with pytest.raises(TypeError, match="FileSystem"):
            wrong()  # type: ignore[no-untyped-call]
    with pytest.raises(FileNotFoundError):
        other.read_bytes("a")
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            make(one)  # type: ignore[operator]


def test_a_child_of_fork_in_the_middle_of_a_call_is_refused_and_does_not_wait() -> None:
    files, is_over = FileSystem(), threading.Event()

    def work(name: str) -> None:
        while not is_over.is_set():
            files.write_bytes(name, b"x" * 50_000)
            files.rename(name, "b")

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "c")]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                refused = 0
                for call in (lambda: files.listdir(), lambda: files.write_bytes("d", b""), lambda: files.free_bytes):
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
    assert files.listdir() == ["b"]


def test_a_child_of_fork_is_refused() -> None:
    files = FileSystem()
    child = os.fork()
    if child == 0:
        try:
            files.listdir()
        except RuntimeError as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert files.listdir() == []


def test_threads_may_share_an_instance() -> None:
    files = FileSystem()

    def work(number: int) -> None:
        for index in range(50):
            files.write_bytes(f"{number}-{index}", str(index).encode())
            assert files.read_bytes(f"{number}-{index}") == str(index).encode()
            files.append_bytes("log", b"x")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(files.listdir()) == 4 * 50 + 1
    assert files.read_bytes("log") == b"x" * 200


def test_attributes_and_room_are_as_os_has_them() -> None:
    files = FileSystem(size_bytes=1 << 20)
    files.write_bytes("/f", b"abc")
    files.setxattr("/f", "user.about", b"a tree", os.XATTR_CREATE)
    files.setxattr(b"/f", b"user.long", b"x" * 5000)
    assert files.getxattr("/f", "user.about") == b"a tree"
    assert len(files.getxattr("/f", "user.long")) == 5000
    assert files.listxattr("/f") == ["user.about", "user.long"]
    for call, number in (
        (lambda: files.setxattr("/f", "user.about", b"", os.XATTR_CREATE), errno.EEXIST),
        (lambda: files.getxattr("/f", "user.none"), errno.ENODATA),
        (lambda: files.setxattr("/f", "user.big", bytes(65_000)), errno.ENOSPC),
        (lambda: files.setxattr("/f", "user.big", bytes(65_537)), errno.E2BIG),
    ):
        with pytest.raises(OSError) as raised:
            call()
        assert raised.value.errno == number
    fd = files.descriptors.open("/f", os.O_RDWR)
    files.descriptors.removexattr(fd, "user.about")
    assert files.descriptors.listxattr(fd) == ["user.long"]
    files.descriptors.posix_fallocate(fd, 0, 9000)
    assert files.read_bytes("/f") == b"abc" + bytes(8997)
    files.descriptors.fallocate(fd, 3, 1, 1)
    assert files.read_bytes("/f")[:4] == b"a\0c\0"
    with pytest.raises(OSError) as raised:
        files.descriptors.posix_fallocate(fd, 0, 1 << 30)
    assert raised.value.errno == errno.ENOSPC
    with files.transaction() as t, pytest.raises(OSError) as raised:
        t.getxattr("/f", "user.long")
    assert raised.value.errno == errno.EOPNOTSUPP


def test_blocks_follow_from_the_size() -> None:
    """Holes included: no `stat` goes through the pages of a file."""
    files = FileSystem(size_bytes=1 << 20)
    fd = files.descriptors.open("/f", os.O_RDWR | os.O_CREAT)
    for size, blocks in ((100_000, 200), (4097, 16), (1, 8), (0, 0)):
        files.descriptors.ftruncate(fd, size)
        with files.transaction() as t:
            told = (files.stat("/f"), files.descriptors.fstat(fd), t.stat("/f"))
        assert [status.st_blocks for status in told] == [blocks] * 3
