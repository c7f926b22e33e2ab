"""Transactions from Python: all or nothing, one attempt or several, and what is refused."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from commutant.scalefs import FileSystem, Stale, Transaction


def test_the_program_in_the_guide_runs() -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "transactions.md"
    program = guide.read_text().split("```python\n")[1].split("```")[0]
    exec(compile(program, str(guide), "exec"), {})


def test_all_of_a_block_happens_or_nothing() -> None:
    files = FileSystem()
    with files.transaction() as t:
        t.make_directory("etc")
        for name in ("passwd", "shadow", "group"):
            t.create(f"etc/{name}")
        assert t.list("etc") == ["group", "passwd", "shadow"] and files.list() == []
        t.rename("etc/group", "etc/groups")
        t.link("etc/passwd", "etc/passwd-")
        assert t.stat("etc/passwd").link_count == 2
    assert files.list("etc") == ["groups", "passwd", "passwd-", "shadow"]
    with pytest.raises(KeyError), files.transaction() as t:
        t.remove("etc/shadow")
        t.create("etc/new")
        raise KeyError("a mistake of the program's")
    assert files.list("etc") == ["groups", "passwd", "passwd-", "shadow"]


def test_what_was_seen_is_so_at_the_end_or_the_block_raises() -> None:
    """Figure 4.1 of the thesis on TxOS: no lock file is there, and none is made."""
    files = FileSystem()
    ends: list[str] = []
    with pytest.raises(Stale) as stale, files.transaction() as t:
        t.on_commit(lambda: ends.append("commit"))
        t.on_abort(lambda: ends.append("outer"))
        t.on_abort(lambda: ends.append("inner"))
        assert not t.exists("lock")
        t.create("work")
        files.write("lock", b"")
    assert stale.value.errno == errno.ECANCELED and stale.value.transaction is t
    assert (files.list(), ends) == (["lock"], ["inner", "outer"])


def test_an_error_is_not_told_from_what_is_not_so_any_more() -> None:
    files = FileSystem()
    with pytest.raises(Stale) as stale, files.transaction() as t:
        assert not t.exists("lock")
        files.write("lock", b"")
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
            files.write(name, b"somebody else's")
        t.create(name)
        return True

    assert take("lock") is False and runs == ["lock", "lock"]
    assert take.__doc__ == "Takes a lock."

    def never(t: Transaction) -> None:
        t.exists(f"{len(runs)}")
        files.write(f"{len(runs)}", b"")
        runs.append("never")

    with pytest.raises(Stale):
        files.transactional(never, attempts=3)()
    assert runs.count("never") == 3
    with pytest.raises(ValueError, match="at least one attempt, got 0"):
        files.transactional(never, attempts=0)


def test_a_transaction_in_another_s_function_is_its_own() -> None:
    files = FileSystem()

    def outer(t: Transaction) -> None:
        t.create("outer")
        with files.transaction() as inner:
            assert not inner.exists("outer")
            files.write("outer", b"")

    with pytest.raises(Stale):
        files.transactional(outer)()
    assert files.list() == ["outer"]


def test_calls_outside_the_block_are_refused() -> None:
    files = FileSystem()
    t = files.transaction()
    with pytest.raises(ValueError, match="its calls are made in its `with` block"):
        t.create("f")
    with t:
        t.create("f")
    with pytest.raises(ValueError, match="its calls are made in its `with` block"):
        t.remove("f")
    with pytest.raises(ValueError, match="begins once"), t:
        pass
    with files.transaction() as other, pytest.raises(FileNotFoundError, match="none"):
        other.remove("none")
    files.close()
    with pytest.raises(ValueError, match="closed"):
        files.transaction()


def test_threads_lose_nothing() -> None:
    """Each moves numbers between directories: none is lost, and none is there twice."""
    files = FileSystem()
    for name in ("a", "b"):
        files.make_directory(name)
    for number in range(20):
        files.write(f"a/{number}", b"")

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
    assert sorted(map(int, files.list("a") + files.list("b"))) == list(range(20))
