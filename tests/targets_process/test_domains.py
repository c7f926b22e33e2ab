"""The target `scalefs:domains=N`: results are judged as elsewhere, and what is not done across domains is not known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commutant.conformance import Conform
from commutant.corpus import TestCase
from commutant.lang.load import load_interface
from commutant.support.errors import UsageError
from commutant.targets.base import Job
from commutant.targets.domains import DomainsTarget
from commutant.targets.registry import load_target
from commutant.testgen import generate
from tests.targets.handwritten import CREATE_CREATE, RIGHT, WRONG_COUNT

NOT_OFFERED = "a file is mapped by a process of another domain than its own"


@pytest.fixture(scope="module")
def target() -> Iterator[DomainsTarget]:
    """The target, started: the self-test has passed."""
    target = load_target("scalefs:domains=3")
    assert isinstance(target, DomainsTarget)
    target.start(lambda _: None, 2)
    yield target
    target.close()


def test_results_on_names_are_right_and_wrong_ones_are_seen(target: DomainsTarget) -> None:
    session = target.sessions(1)[0]
    tests = generate(load_interface("names"), calls=["rename", "link", "stat"]).tests
    records = list(session.run([Job(test, order) for test in (*RIGHT, *tests) for order in range(len(test.orders))]))
    assert [record.wrong for record in records if record.wrong] == []
    assert len(records) > 100 and not any(record.findings or record.crashed for record in records)
    assert [bool(record.wrong) for record in session.run([Job(WRONG_COUNT, 0), Job(CREATE_CREATE, 0)])] == [True, False]
    session.close()


def test_pipes_and_memory_are_right_and_what_is_not_offered_is_skipped(target: DomainsTarget) -> None:
    session = target.sessions(1)[0]
    tests = generate(load_interface("posix18"), calls=["pipe", "close", "mmap"]).tests
    records = list(session.run([Job(test, 0) for test in tests]))
    assert [record.wrong for record in records if record.wrong] == []
    skipped = [record for record in records if record.unsupported]
    assert 0 < len(skipped) < len(records) // 2
    assert {record.unsupported for record in skipped} == {NOT_OFFERED}
    assert all(_maps(record.job.test) for record in skipped)
    session.close()


def _maps(test: TestCase) -> bool:
    made = {step.call for step in test.setup} | {call.call for call in test.calls}
    return not made.isdisjoint({"mmap", "map_file"})


def test_sequences_that_ask_for_what_is_not_offered_say_nothing() -> None:
    target = load_target("scalefs:domains=3")
    with Conform(load_interface("posix18"), target, calls=["open", "mmap", "write"], sequences=300) as conform:
        conform.start()
        found = conform.run()
    assert found.differences == () and 0 < found.tally.not_offered[NOT_OFFERED] < 100
    assert f"say nothing: {NOT_OFFERED}" in found.text()
    assert found.document().not_offered == found.tally.not_offered.total()


def test_calls_that_are_not_done_across_domains_are_not_known(target: DomainsTarget) -> None:
    assert target.implements("rename", ["src", "dst"])
    assert target.implements("memwrite", ["data", "address"]) and target.implements("pipe", [])
    assert not target.implements("close", ["pair"]) and not target.implements("sendto", ["name", "message"])
    assert target.describe()["domains"] == 3


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("scalefs:domains=0", "from 1 to 16"),
        ("scalefs:domains=17", "from 1 to 16"),
        ("scalefs:domains=2,cores=4", "cores"),
    ],
)
def test_options_are_refused(argument: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        load_target(argument)
