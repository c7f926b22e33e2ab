"""Locks of files: who is kept out, who waits and is woken, and what is refused."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time

import pytest

from scalefs import FileSystem
from scalefs.descriptors import Descriptors

NOW = fcntl.LOCK_NB


@pytest.fixture(name="files")
def made() -> Descriptors:
    files = FileSystem()
    files.write_bytes("f", b"0123456789")
    return files.descriptors


def refusal(call: object, *arguments: int) -> int | None:
    try:
        call(*arguments)  # type: ignore[operator]
    except OSError as error:
        return error.errno
    return None


def test_a_whole_file_is_locked_by_what_was_opened_apart(files: Descriptors) -> None:
    one, other = files.open("f", os.O_RDONLY), files.open("f", os.O_RDWR)
    files.flock(one, fcntl.LOCK_EX)
    assert refusal(files.flock, other, fcntl.LOCK_SH | NOW) == errno.EAGAIN
    same = files.dup(one)
    files.close(one)
    assert refusal(files.flock, other, fcntl.LOCK_SH | NOW) == errno.EAGAIN
    files.flock(same, fcntl.LOCK_SH | NOW)
    files.flock(other, fcntl.LOCK_SH | NOW)
    assert refusal(files.flock, same, fcntl.LOCK_EX | NOW) == errno.EAGAIN
    files.close(other)
    files.flock(same, fcntl.LOCK_EX | NOW)


def test_ranges_of_descriptions_keep_each_other_out_and_all_threads_are_one_process(files: Descriptors) -> None:
    one, other = files.open("f", os.O_RDWR), files.open("f", os.O_RDWR)
    files.lockf(one, fcntl.LOCK_EX, 4, 2)
    files.lockf(other, fcntl.LOCK_EX, 4, 2)
    assert refusal(files.ofd_lockf, other, fcntl.LOCK_SH | NOW, 1, 5) == errno.EAGAIN
    files.ofd_lockf(other, fcntl.LOCK_EX | NOW, 0, 6)
    files.close(files.open("f", os.O_RDONLY))
    files.ofd_lockf(one, fcntl.LOCK_EX | NOW, 6)
    assert refusal(files.ofd_lockf, one, fcntl.LOCK_EX | NOW, 1, -1, os.SEEK_END) == errno.EAGAIN
    files.ofd_lockf(other, fcntl.LOCK_UN)
    files.ofd_lockf(one, fcntl.LOCK_EX | NOW, 1, -1, os.SEEK_END)


def test_who_waits_is_woken_and_others_run_meanwhile(files: Descriptors) -> None:
    one, other = files.open("f", os.O_RDWR), files.open("f", os.O_RDWR)
    files.flock(one, fcntl.LOCK_EX)
    got: list[float] = []

    def wait() -> None:
        files.flock(other, fcntl.LOCK_EX)
        got.append(time.monotonic())

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.05)
    assert not got and waiter.is_alive()
    unlocked = time.monotonic()
    files.flock(one, fcntl.LOCK_UN)
    waiter.join(20)
    assert got and got[0] >= unlocked


def test_what_cannot_be_locked_is_refused(files: Descriptors) -> None:
    reading, writing = files.open("f", os.O_RDONLY), files.open("f", os.O_WRONLY)
    assert refusal(files.lockf, reading, fcntl.LOCK_EX | NOW) == errno.EBADF
    assert refusal(files.lockf, writing, fcntl.LOCK_SH | NOW) == errno.EBADF
    assert refusal(files.flock, 77, fcntl.LOCK_EX) == errno.EBADF
    assert refusal(files.lockf, reading, fcntl.LOCK_SH, 1, -1) == errno.EINVAL
    assert refusal(files.lockf, reading, fcntl.LOCK_SH, 2, 2**63 - 1) == errno.EOVERFLOW
    assert refusal(files.lockf, reading, fcntl.LOCK_SH, 1, 0, 9) == errno.EINVAL
    with pytest.raises(ValueError):
        files.lockf(reading, 64)
