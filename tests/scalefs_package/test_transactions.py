"""Transactions from Python: all or nothing, one attempt or several, and what is refused."""

from __future__ import annotations

import errno
import fcntl
import gc
import threading
from pathlib import Path

import pytest

from scalefs import FileSystem, Stale, Transaction


def test_the_program_in_the_guide_runs() -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "transactions.md"
    program = guide.read_text().split("```python\n")[1].split("```")[0]
    exec(compile(program, str(guide), "exec"), {})


def test_all_of_a_block_happens_or_nothing() -> None:
    files = FileSystem()
    with files.transaction() as t:
        t.mkdir("etc")
        for name in ("passwd", "shadow", "group"):
            t.open(f"etc/{name}", "x").close()
        assert sorted(t.listdir("etc")) == ["group", "passwd", "shadow"] and files.listdir() == []
        t.rename("etc/group", "etc/groups")
        t.link("etc/passwd", "etc/passwd-")
        assert t.stat("etc/passwd").st_nlink == 2
    assert sorted(files.listdir("etc")) == ["groups", "passwd", "passwd-", "shadow"]
    with pytest.raises(KeyError), files.transaction() as t:
        t.unlink("etc/shadow")
        t.open("etc/new", "x").close()
        raise KeyError("a mistake of the program's")
    assert sorted(files.listdir("etc")) == ["groups", "passwd", "passwd-", "shadow"]


def test_what_was_seen_is_so_at_the_end_or_the_block_raises() -> None:
    """Figure 4.1 of the thesis on TxOS: no lock file is there, and none is made."""
    files = FileSystem()
    ends: list[str] = []
    with pytest.raises(Stale) as stale, files.transaction() as t:
        t.on_commit(lambda: ends.append("commit"))
        t.on_abort(lambda: ends.append("outer"))
        t.on_abort(lambda: ends.append("inner"))
        assert not t.exists("lock")
        t.open("work", "x").close()
        files.write_bytes("lock", b"")
    assert stale.value.errno == errno.ECANCELED and stale.value.transaction is t
    assert (files.listdir(), ends) == (["lock"], ["inner", "outer"])


def test_an_error_is_not_told_from_what_is_not_so_any_more() -> None:
    files = FileSystem()
    with pytest.raises(Stale) as stale, files.transaction() as t:
        assert not t.exists("lock")
        files.write_bytes("lock", b"")
        raise KeyError("concluded from what was so")
    assert isinstance(stale.value.__cause__, KeyError)


def test_a_decorated_function_runs_again() -> None:
    files = FileSystem()
    runs = []

    @files.transactional
    def take(t: Transaction, name: str) -> bool:
        """Takes a lock."""
        runs.append(name)
        if t.exists(name):
            return False
        if len(runs) == 1:
            files.write_bytes(name, b"somebody else's")
        t.open(name, "x").close()
        return True

    assert take("lock") is False and runs == ["lock", "lock"]
    assert take.__doc__ == "Takes a lock."

    def never(t: Transaction) -> None:
        t.exists(f"{len(runs)}")
        files.write_bytes(f"{len(runs)}", b"")
        runs.append("never")

    with pytest.raises(Stale):
        files.transactional(never, attempts=3)()
    assert runs.count("never") == 3
    with pytest.raises(ValueError, match="at least one attempt, got 0"):
        files.transactional(never, attempts=0)


def test_a_transaction_in_another_s_function_is_its_own() -> None:
    files = FileSystem()

    def outer(t: Transaction) -> None:
        t.open("outer", "x").close()
        with files.transaction() as inner:
            assert not inner.exists("outer")
            files.write_bytes("outer", b"")

    with pytest.raises(Stale):
        files.transactional(outer)()
    assert files.listdir() == ["outer"]


def test_calls_outside_the_block_are_refused() -> None:
    files = FileSystem()
    t = files.transaction()
    with pytest.raises(ValueError, match="its calls are made in its `with` block"):
        t.open("f", "x").close()
    with t:
        t.open("f", "x").close()
    with pytest.raises(ValueError, match="its calls are made in its `with` block"):
        t.unlink("f")
    with pytest.raises(ValueError, match="begins once"), t:
        pass
    with files.transaction() as other, pytest.raises(FileNotFoundError, match="none"):
        other.remove("none")
    files.close()
    with pytest.raises(ValueError, match="closed"), files.transaction():
        pass


def test_threads_lose_nothing() -> None:
    """Each moves numbers between directories: none is lost, and none is there twice."""
    files = FileSystem()
    for name in ("a", "b"):
        files.mkdir(name)
    for number in range(20):
        files.write_bytes(f"a/{number}", b"")

    @files.transactional
    def move(t: Transaction, number: int) -> None:
        source, target = ("a", "b") if t.exists(f"a/{number}") else ("b", "a")
        assert not t.exists(f"{target}/{number}")
        t.rename(f"{source}/{number}", f"{target}/{number}")

    def work(seed: int) -> None:
        for step in range(100):
            move((seed * 7 + step * 3) % 20)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, files.listdir("a") + files.listdir("b"))) == list(range(20))


def test_a_transaction_that_is_never_ended_keeps_nothing() -> None:
    files = FileSystem(size_bytes=1 << 20)
    empty = files.free_bytes
    for _ in range(40):
        lost = files.transaction()
        lost.__enter__()
        lost.write_bytes("big", b"x" * (256 << 10))
        del lost
        gc.collect()
    assert files.listdir() == [] and files.free_bytes == empty


def test_a_transaction_has_no_locks() -> None:
    files = FileSystem()
    with files.transaction() as t:
        t.write_bytes("f", b"")
        fd = t.descriptors.open("f", 2)
        for lock in (t.descriptors.flock, t.descriptors.lockf, t.descriptors.ofd_lockf):
            with pytest.raises(OSError) as refused:
                lock(fd, fcntl.LOCK_EX)
            assert refused.value.errno == errno.EOPNOTSUPP
