"""What goes to a runner: each part that tests share is read once, and every batch is what it is without sharing."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable

import pytest
from msgspec import structs

from commutant import _native
from commutant.corpus.file import Corpus, read_corpus, write_corpus
from commutant.corpus.testcase import TestCase
from commutant.lang import load_interface
from commutant.support.errors import UsageError
from commutant.targets.base import Job
from commutant.targets.batches import CaseRegistry, WindowBatch
from commutant.targets.linux.target import parse_options
from commutant.testgen import generate
from tests.campaign.fakes import make_test


class _Counting:
    """A native book that counts what is added to it."""

    def __init__(self) -> None:
        self._registry = _native.TestBook()
        self.added: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Callable[..., object]:
        self.added[name] += 1
        method: Callable[..., object] = getattr(self._registry, name)
        return method


@pytest.fixture(scope="module")
def tests(tmp_path_factory: pytest.TempPathFactory) -> list[TestCase]:
    """Tests as a reader gives them: equal parts are one object."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl.gz"
    made = generate(load_interface("posix18"), ["link", "rename"], level="path").tests
    write_corpus(Corpus("posix18", "path", "0123abcd", made), path)
    return list(read_corpus(path).tests)


def _jobs(tests: list[TestCase]) -> list[Job]:
    return [Job(test, order) for test in tests for order in range(len(test.orders))]


def test_what_tests_share_is_read_once(tests: list[TestCase], monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading every test as a whole took 0.15 ms of each while its machine waited, and 14 KiB of memory."""
    registry, counting = CaseRegistry(), _Counting()
    monkeypatch.setattr(registry, "native", counting)
    for _ in range(2):
        WindowBatch(registry, _jobs(tests)).encode()
    for added, part in (("add_calls", "calls"), ("add_orders", "orders")):
        assert counting.added[added] == len({id(getattr(test, part)) for test in tests}) < len(tests)
    assert counting.added["add_steps"] == sum(
        len({id(getattr(test, part)) for test in tests}) for part in ("setup", "observe")
    )
    assert counting.added["add_case"] == len(tests)


def test_a_batch_is_the_same_where_nothing_is_shared(tests: list[TestCase]) -> None:
    apart = [copy.deepcopy(test) for test in tests]
    assert WindowBatch(CaseRegistry(), _jobs(tests)).encode() == WindowBatch(CaseRegistry(), _jobs(apart)).encode()


def test_parts_that_do_not_go_together_are_refused_with_the_test() -> None:
    one, other = make_test(calls=("link", "rename")), make_test(calls=("link", "rename", "open"))
    mixed = structs.replace(one, orders=other.orders)
    with pytest.raises(UsageError, match=rf'{one.id} cannot be run: orders\[0\]: "order" is not a permutation'):
        CaseRegistry().number(mixed)
    odd = structs.replace(one, calls=(structs.replace(one.calls[0], process=1000), one.calls[1]))
    with pytest.raises(UsageError, match=r'cannot be run: calls\[0\]: no small number "process"'):
        CaseRegistry().number(odd)


def test_names_of_another_length_are_so_in_every_part_of_a_test(tests: list[TestCase]) -> None:
    plain, long = CaseRegistry(), CaseRegistry(30)
    batch, longer = (WindowBatch(registry, _jobs(tests)).encode() for registry in (plain, long))
    assert b"n0-and-on-with-letters-and-on-" in longer
    assert b"n0-and" not in batch
    # One length for all, and different names stay different.
    names = set(re.findall(rb"n[0-9]-and[a-z-]*", longer))
    assert {len(name) for name in names} == {30}
    assert len(names) == len({name[:2] for name in names}) > 1


@pytest.mark.parametrize("text", ["3", "256", "short", "-5", ""])
def test_a_length_of_names_that_no_file_system_takes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"names=.*: expected `long` \(255 letters\), or a number from 4 to 255"):
        parse_options(f"linux:names={text}", {"names": text})
    assert parse_options("linux:names=long", {"names": "long"}).names == 255
