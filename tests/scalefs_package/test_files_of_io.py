"""Files as `io` has them: what the built-in `open` returns and refuses, and when they are closed."""

from __future__ import annotations

import array
import copy
import errno
import gc
import io
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from scalefs import FileSystem, RawFile
from tests.scalefs_package.random_calls import on_host

CONTENT = "first\r\nsecond\nthird ä\n"


@pytest.fixture
def files() -> FileSystem:
    """With one file, and a directory."""
    made = FileSystem(size_bytes=1 << 20)
    made.write_bytes("/text", CONTENT.encode())
    made.mkdir("/below")
    return made


@pytest.mark.parametrize(
    ("mode", "buffering", "kind"),
    [
        ("r", -1, io.TextIOWrapper),
        ("rt", 1, io.TextIOWrapper),
        ("rb", -1, io.BufferedReader),
        ("wb", 100, io.BufferedWriter),
        ("r+b", -1, io.BufferedRandom),
        ("a+b", 10, io.BufferedRandom),
        ("rb", 0, RawFile),
    ],
)
def test_open_returns_what_the_built_in_one_does(files: FileSystem, mode: str, buffering: int, kind: type) -> None:
    with files.open("/text", mode, buffering) as file, on_host():
        assert type(file) is kind
        assert isinstance(file.fileno, Callable) and file.name == "/text"  # type: ignore[arg-type]
        with open("text", "w" if "w" in mode or "a" in mode else "w+") as made:
            made.write(CONTENT)
        with open("text", mode, buffering) as other:
            assert file.mode == other.mode
            assert (file.readable(), file.writable(), file.seekable()) == (
                other.readable(),
                other.writable(),
                other.seekable(),
            )


@pytest.mark.parametrize("newline", [None, "", "\n", "\r\n"])
def test_text_is_read_line_by_line_as_by_the_built_in_open(files: FileSystem, newline: str | None) -> None:
    expected = io.TextIOWrapper(io.BytesIO(CONTENT.encode()), "utf-8", newline=newline).readlines()
    with files.open("/text", encoding="utf-8", newline=newline) as file:
        assert list(file) == expected
    with files.open("/text", "r", encoding="latin-1") as file:
        assert "Ã¤" in file.read()


def _what_is_wrong(open_it: Callable[..., Any], *args: Any, **options: Any) -> tuple[str, object, str]:
    try:
        open_it(*args, **options).close()
    except (OSError, ValueError, TypeError) as error:
        return type(error).__name__, getattr(error, "errno", None), str(error)
    raise AssertionError("expected an error")


@pytest.mark.parametrize(
    ("path", "mode", "options"),
    [
        ("text", "q", {}),
        ("text", "", {}),
        ("text", "rw", {}),
        ("text", "rr", {}),
        ("text", "tb", {}),
        ("text", "r", {"buffering": 0}),
        ("text", "rb", {"encoding": "utf-8"}),
        ("text", "rb", {"errors": "strict"}),
        ("text", "rb", {"newline": ""}),
        ("text", "r", {"newline": "x"}),
        ("text", "x", {}),
        ("none", "r", {}),
        ("below", "r", {}),
        ("below", "w", {}),
        ("text/below", "r", {}),
        ("x" * 256, "w", {}),
        ("a\0b", "w", {}),
        ("text", 5, {}),
        ("text", "r", {"buffering": "1"}),
    ],
)
def test_what_cannot_be_opened_is_refused_in_the_same_words(
    files: FileSystem, path: Any, mode: Any, options: dict[str, Any]
) -> None:
    with on_host():
        os.mkdir("below")
        open("text", "w").close()
        expected = _what_is_wrong(open, path, mode, **options)
    assert _what_is_wrong(files.open, path, mode, **options) == expected
    assert files.listdir("/below") == [] and files.read_bytes("/text") == CONTENT.encode()


def test_a_path_of_a_wrong_type_is_refused(files: FileSystem) -> None:
    for wrong in (5, None, 1.5, ["text"], files):
        for call in (files.open, files.stat, files.listdir, files.read_bytes, files.unlink):
            with pytest.raises(TypeError, match=r"expected str, bytes or os\.PathLike object") as raised:
                call(wrong)  # type: ignore[operator]
            assert "\n" not in str(raised.value)


def test_bytes_of_a_wrong_type_are_refused(files: FileSystem) -> None:
    with files.open("/text", "r+b", 0) as raw, files.open("/text", "a") as text:
        for wrong in ("text", 5, None):
            for call in (raw.write, lambda data: files.write_bytes("/text", data)):
                with pytest.raises(TypeError):
                    call(wrong)
        with pytest.raises(TypeError):
            text.write(b"bytes")
        with pytest.raises((TypeError, BufferError)):
            raw.readinto(b"cannot be written")
        numbers = array.array("i", [0, 0])
        assert raw.readinto(numbers) == 8 and numbers.tobytes() == CONTENT.encode()[:8]
    assert files.read_bytes("/text") == CONTENT.encode()


def test_a_file_after_its_end_is_a_value_error(files: FileSystem) -> None:
    for mode, buffering in (("r", -1), ("rb", -1), ("r+b", -1), ("rb", 0)):
        file = files.open("/text", mode, buffering)
        file.close()
        file.close()
        assert file.closed
        for call in (file.read, file.tell, file.flush, file.__enter__):
            with pytest.raises(ValueError):
                call()


def test_files_are_closed_with_their_file_system() -> None:
    with FileSystem() as files:
        files.write_bytes("/a", b"12345")
        opened = [files.open("/a", mode, buffering) for mode, buffering in (("r", -1), ("r+b", -1), ("rb", 0))]
        opened[1].write(b"in the buffer")
    for file in opened:
        assert file.closed
        with pytest.raises(ValueError):
            file.read(1)
        file.close()


def test_an_unclosed_file_is_warned_of_and_closed(files: FileSystem) -> None:
    file = files.open("/text", "rb", 0)
    number = file.descriptor  # type: ignore[attr-defined]
    with pytest.warns(ResourceWarning, match="unclosed file"):
        del file
        gc.collect()
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        files.descriptors.fstat(number)


def test_an_open_file_does_not_travel(files: FileSystem) -> None:
    with files.open("/text", "rb", 0) as raw, files.open("/text", "rb") as buffered, files.open("/text") as text:
        for file in (raw, buffered, text):
            for make in (pickle.dumps, copy.copy):
                with pytest.raises(TypeError, match="cannot"):
                    make(file)  # type: ignore[operator]
        with pytest.raises(io.UnsupportedOperation, match="no descriptor of the system"):
            raw.fileno()


def test_what_was_opened_in_a_transaction_ends_with_it(files: FileSystem) -> None:
    with files.transaction() as t:
        late = t.open("/late", "w")
        late.write("in the buffer")
        raw = t.open("/text", "rb", 0)
    assert late.closed and raw.closed and files.read_bytes("/late") == b"in the buffer"
    with pytest.raises(KeyError), files.transaction() as t:
        never = t.open("/never", "w")
        never.write("in the buffer")
        raise KeyError
    assert never.closed and not files.exists("/never")
    with pytest.raises(ValueError):
        never.write("more")
    before = files.descriptors.open("/text", os.O_RDONLY)
    assert before == 0, "no descriptor is left open"


def test_descriptors_take_the_lowest_number_and_share_an_offset(files: FileSystem) -> None:
    numbers = files.descriptors
    first, second = (numbers.open("/text", os.O_RDWR | os.O_CLOEXEC) for _ in range(2))
    assert (first, second) == (0, 1)
    numbers.close(first)
    assert numbers.dup(second) == 0
    assert numbers.read(0, 5) == b"first" and numbers.lseek(second, 0, os.SEEK_CUR) == 5
    assert numbers.dup2(second, 9) == 9 and numbers.read(9, 2) == b"\r\n"
    numbers.futime(9, ns=(5, 7))
    assert numbers.fstat(second).st_mtime_ns == 7
    for wrong in (os.O_DIRECT, os.O_TMPFILE | os.O_RDWR, 3):
        with pytest.raises(ValueError, match=r"flags of os\.open"):
            numbers.open("/text", wrong)
    for call in (lambda: numbers.read(50, 1), lambda: numbers.close(50), lambda: numbers.dup(50)):
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
            call()
    with pytest.raises(OverflowError):
        numbers.read(-1, 1)


def test_a_file_of_a_parent_is_closed_in_its_child(files: FileSystem) -> None:
    file = files.open("/text", "r+b")
    file.write(b"in the buffer")
    child = os.fork()
    if child == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            told = 0
            for call in (file.tell, lambda: file.write(b"x"), lambda: files.descriptors.fstat(0)):
                try:
                    call()
                except ValueError as error:
                    told += "closed" in str(error)
                except RuntimeError as error:
                    told += "fork" in str(error)
            file.close()
        os._exit(0 if told == 3 and file.closed else 1)
    assert os.waitpid(child, 0)[1] == 0
    file.close()
    assert files.read_bytes("/text").startswith(b"in the buffer")


def test_no_space_is_told_by_the_write_or_by_the_flush(files: FileSystem) -> None:
    files.open("/full", "wb", 0).close()
    with files.open("/full", "wb", 0) as raw:
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            while True:
                raw.write(bytes(4096))
        assert files.free_bytes == 0
    buffered = files.open("/text", "ab")
    buffered.write(bytes(8000))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        buffered.flush()
    files.unlink("/full")
    buffered.close()
    assert files.stat("/text").st_size == len(CONTENT.encode()) + 8000


def test_more_than_memory_holds_is_a_memory_error(files: FileSystem) -> None:
    """A file with holes may be that large; the interpreter goes on."""
    files.truncate("/text", 1 << 62)
    numbers = files.descriptors
    fd = numbers.open("/text", os.O_RDONLY)
    with files.open("/text", "rb", 0) as raw:
        for call in (
            lambda: numbers.read(fd, 1 << 62),
            lambda: numbers.pread(fd, 1 << 62, 0),
            lambda: raw.read(1 << 62),
            lambda: files.read_bytes("/text"),
        ):
            with pytest.raises(MemoryError):
                call()
    assert numbers.read(fd, 5) == b"first"


def test_a_child_of_fork_does_not_wait_for_a_transaction(files: FileSystem) -> None:
    """Another thread is in the middle of a call of it when the process forks."""
    with FileSystem(size_bytes=256 << 20) as large, large.transaction() as t:
        thread = threading.Thread(target=lambda: t.write_bytes("x", bytes(128 << 20)))
        thread.start()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                t.exists("x")
            except RuntimeError as error:
                os._exit(0 if "fork" in str(error) else 2)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        thread.join()
