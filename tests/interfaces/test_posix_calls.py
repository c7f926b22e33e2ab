"""posix has at least the 45 calls that its page lists, and what pairs of each area decide stays what it was. What
distinguishes the calls from each other is said call by call."""

from __future__ import annotations

from typing import Any

import pytest

from commutant.analyzer.analysis import explore_leaves
from commutant.interfaces.posix.trees import Caller
from commutant.lang import Errno, Seq, load_interface
from commutant.pool.reference import ModelReference
from commutant.testgen import generation

POSIX = load_interface("posix")


def test_the_calls_are_those_of_the_areas() -> None:
    calls = POSIX.call_names()
    assert len(calls) >= 55
    assert {"futex_wait", "epoll_wait", "fork", "exit", "wait"} <= {*calls}
    assert {"readv", "dup2", "chmod", "madvise", "sigpending", "statx", "poll", "truncate"} <= {*calls}


@pytest.mark.parametrize(
    "calls, counts",
    [
        ("ftruncate dup", (143, 135)),
        ("write setfl", (95, 91)),
        ("mkdir utimensat", (268, 264)),
        ("kill sigtimedwait", (6, 4)),
        ("memread madvise", (240, 237)),
        ("unlink statx", (576, 483)),
        ("futex_wake munmap", (6, 6)),
        ("close epoll_add", (34, 31)),
        ("fork exit", (15, 14)),
        ("exit wait", (21, 20)),
    ],
)
def test_counts_of_paths(calls: str, counts: tuple[int, int]) -> None:
    """Paths, and those on which the calls commute."""
    first, second = calls.split()
    leaves = [leaf for leaf in explore_leaves(POSIX, (first, second)) if leaf.feasible]
    assert (len(leaves), sum(leaf.commutes for leaf in leaves)) == counts


@pytest.mark.parametrize("calls", [("rmdir", "fsync"), ("read", "dup2")], ids="-".join)
def test_each_class_has_a_test(calls: tuple[str, ...]) -> None:
    """Also of a directory with a file of which no call speaks, and of dup2 over the last end of a pipe that is read."""
    one = generation._generate_set((ModelReference(POSIX), calls, "cover"))
    assert one.tests > 30
    assert not one.untested


def a_process() -> Any:
    state: Any = POSIX()
    state.callers[0] = Caller(is_superuser=True, user=0)
    state.callers[1] = Caller(is_superuser=False, user=1)
    return state


def opened(state: Any, process: int = 0, *, at_offset: bool = True, creat: bool = True) -> Any:
    return state.open(process, False, "n0", "n0", creat, False, False, at_offset, True)


def test_copies_of_a_descriptor_have_one_offset_and_flags_of_their_own() -> None:
    state = a_process()
    assert (opened(state), state.dup(0, 0), state.dup2(0, 0, 5)) == (0, 1, 5)
    assert state.writev(0, 1, 7, 8) == 2
    assert state.lseek(0, 5, 0, 1) == 2
    assert state.setfl(0, 0, False) == 0 and state.setfd(0, 0, False) == 0
    assert not state.getfl(0, 5).at_offset and state.getfd(0, 5) and not state.getfd(0, 0)
    assert state.dup2(0, 0, 6) == 6 and state.getfd(0, 6)
    assert state.close(0, 0) == 0 and state.lseek(0, 5, 0, 1) == 2
    assert state.dup(0, 0) == Errno.EBADF


def test_what_was_cut_away_does_not_come_back() -> None:
    state = a_process()
    opened(state)
    for page in (0, 1, 3):
        assert state.pwrite(0, 0, page, 9) == 1
    for length in (1, 3):
        assert state.ftruncate(0, 0, length) == 0
    assert state.pwrite(0, 0, 2, 8) == 1
    assert [state.pread(0, 0, page).data for page in (0, 1, 2)] == [9, 0, 8]
    assert state.ftruncate(0, 0, 2) == 0 and state.ftruncate(0, 0, 4) == 0
    assert [state.pread(0, 0, page).data for page in (0, 1, 2, 3)] == [9, 0, 0, 0]


def test_truncate_marks_times_where_the_size_changes_and_ftruncate_always() -> None:
    state = a_process()
    opened(state)
    made = state.stat(False, "n0", "n0").mtime
    assert state.truncate(0, False, "n0", "n0", 0) == 0
    assert state.stat(False, "n0", "n0").mtime == made
    assert state.ftruncate(0, 0, 0) == 0
    assert state.stat(False, "n0", "n0").mtime > made


def test_madvise_loses_what_a_page_holds_by_itself() -> None:
    state = a_process()
    opened(state)
    state.pwrite(0, 0, 0, 9)
    assert state.mmap(0, True, 1, False, False, True, 0, 0) == 1
    assert state.memwrite(0, 1, 8) == 0 and state.memread(0, 1) == 8
    assert state.madvise(0, 1) == 0 and state.memread(0, 1) == 9
    assert state.madvise(0, 2) == Errno.ENOMEM


def test_rights_to_write() -> None:
    state = a_process()
    opened(state)
    path = {"deep": False, "parent": "n0", "name": "n0"}
    assert state.chmod(1, **path, owner_writes=True, others_write=False) == Errno.EPERM
    assert state.chmod(0, **path, owner_writes=False, others_write=False) == 0
    assert state.access(1, **path, write=True) == opened(state, 1, creat=False) == Errno.EACCES
    assert state.access(1, **path, write=False) == state.access(0, **path, write=True) == 0
    assert state.utimensat(1, **path) == state.truncate(1, **path, length=1) == Errno.EACCES
    assert state.chown(1, **path, owner=1) == Errno.EPERM
    assert state.chown(0, **path, owner=1) == state.utimensat(1, **path) == 0
    assert state.access(1, **path, write=True) == Errno.EACCES
    assert state.chown(1, **path, owner=1) == 0 and state.chown(1, **path, owner=2) == Errno.EPERM
    assert state.chmod(1, **path, owner_writes=True, others_write=False) == state.access(1, **path, write=True) == 0


def test_pwrite_with_o_append_writes_at_the_end() -> None:
    state = a_process()
    opened(state, at_offset=False)
    assert state.pwrite(0, 0, 5, 7) == state.pwrite(0, 0, 0, 8) == 1
    assert state.fstat(0, 0).size == 2 and state.lseek(0, 0, 0, 1) == 0


def test_a_signal_that_is_pending_is_not_counted() -> None:
    state = a_process()
    assert state.kill(0, 1) == state.kill(0, 1) == 0
    assert state.sigpending(0, 1) and not state.sigpending(0, 2) and not state.sigpending(1, 1)
    assert state.sigtimedwait(0, 1) == 0 and state.sigtimedwait(0, 1) == Errno.EAGAIN


def test_poll_tells_ends_of_pipes() -> None:
    state = a_process()
    state.pipe(0)
    read_end, write_end = state.poll(0, 0), state.poll(0, 1)
    assert (read_end.input, read_end.hangup, write_end.output, write_end.error) == (False, False, True, False)
    assert state.write(0, 1, 7) == 1 and state.close(0, 1) == 0
    read_end = state.poll(0, 0)
    assert (read_end.input, read_end.hangup) == (True, True)


def test_a_futex_is_looked_at_before_it_is_waited_on() -> None:
    state = a_process()
    assert state.mmap(0, True, 1, True, False, True, 0, 0) == 1
    assert state.futex_wait(0, 1, 0) == Errno.ETIMEDOUT and state.futex_requeue(0, 1, 0, 2) == 0
    assert state.memwrite(0, 1, 7) == 0
    assert state.futex_wait(0, 1, 0) == state.futex_requeue(0, 1, 0, 1) == Errno.EAGAIN
    assert state.futex_wait(0, 2, 0) == state.futex_requeue(0, 2, 0, 1) == Errno.EFAULT
    assert state.futex_wake(0, 2) == 0


def test_epoll_watches_a_descriptor_with_what_is_behind_it() -> None:
    state = a_process()
    state.pipe(0)
    assert state.epoll_add(0, 0, 0) == state.epoll_add(0, 0, 1) == state.epoll_add(0, 1, 1) == 0
    assert state.epoll_add(0, 0, 1) == Errno.EEXIST and state.epoll_del(0, 1, 0) == Errno.ENOENT
    assert state.write(0, 1, 7) == 1
    told = state.epoll_wait(0, 0, 0)
    assert (told.input, told.hangup) == (True, False)
    assert not state.epoll_wait(0, 1, 0).input and state.epoll_wait(0, 1, 1).output
    assert state.close(0, 1) == 0
    assert state.epoll_wait(0, 0, 0).hangup and not state.epoll_wait(0, 0, 1).output
    assert opened(state) == 1
    assert state.epoll_add(0, 0, 1) == state.epoll_del(0, 0, 1) == Errno.EPERM
    assert state.epoll_add(0, 0, 9) == Errno.EBADF
    assert state.close(0, 1) == 0 and state.dup(0, 0) == 1
    assert state.epoll_del(0, 0, 1) == Errno.ENOENT and state.epoll_add(0, 0, 1) == 0
    assert state.peek_watches(0, 0) == Seq([0, 1])


def test_a_child_is_there_until_it_is_waited_for() -> None:
    state = a_process()
    assert state.wait(0, 0) == Errno.ECHILD and state.exit(0, 0, 7) == Errno.ESRCH
    assert state.fork(0, 0) == 0 and state.fork(0, 0) == Errno.EBUSY
    assert state.wait(0, 0) == Errno.EAGAIN and state.wait(1, 0) == Errno.ECHILD
    assert state.exit(0, 0, 7) == 0 and state.exit(0, 0, 8) == Errno.ESRCH
    assert state.wait(0, 0) == 7 and state.wait(0, 0) == Errno.ECHILD
