"""The target `scalefs:domains=N`: results are judged as elsewhere, and what is not done across domains is not known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from commutant.cli.main import run
from commutant.conformance import Conform, Conformance
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


@pytest.mark.parametrize("calls", ["rename,unlink", "open,pwrite", pytest.param("", marks=pytest.mark.long)])
def test_no_test_of_posix18_has_a_wrong_result_over_two_domains(calls: str, tmp_path: Path) -> None:
    """All calls in `make test-long`. Skipped is what maps a file elsewhere, and nothing else."""
    folder = tmp_path / "run"
    words = ["check", "posix18", "--target", "scalefs:domains=2", "--jobs", "1", "-o", str(folder)]
    assert run([*words, *(["--calls", calls] if calls else [])]) == 0
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["tests"] > (0 if calls else 30_000)
    assert (summary["wrong_result"], summary["crashed"], summary["unstable"]) == (0, 0, 0)
    verdicts = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    skipped = {verdict["detail"] for verdict in verdicts if verdict["outcome"] == "skipped"}
    assert skipped == (set() if calls else {NOT_OFFERED})


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
    assert target.describe()["domains"] == 3 and target.describe()["level"] == "posix"


@pytest.mark.parametrize(
    ("interface", "argument"),
    [
        ("posix18", "scalefs:domains=3"),
        ("posix-close-to-open", "scalefs:domains=3"),
        ("posix-close-to-open", "scalefs:domains=3,level=close-to-open"),
    ],
)
def test_no_difference(interface: str, argument: str) -> None:
    found = conformance(interface, argument, sequences=400)
    assert found.differences == (), found.text()
    assert found.tally.undecided == 0


CALLS_ON_DATA = ("open", "read", "write", "pread", "close")


def test_close_to_open_is_less_than_posix18_and_no_less_than_it_says() -> None:
    """Old data is read, which posix18 forbids; what it allows for data alone is drawn from few calls."""
    argument = "scalefs:domains=3,level=close-to-open"
    weaker = conformance("posix18", argument, sequences=2_000, calls=CALLS_ON_DATA)
    assert weaker.differences != ()
    found = conformance("posix-close-to-open", argument, sequences=400, calls=CALLS_ON_DATA)
    assert found.differences == (), found.text()
    assert found.tally.undecided == 0


def conformance(interface: str, argument: str, *, sequences: int, calls: Sequence[str] | None = None) -> Conformance:
    """What came of sequences of an interface, or of some of its calls, on a target."""
    with Conform(load_interface(interface), load_target(argument), calls=calls, sequences=sequences) as conform:
        conform.start()
        return conform.run()


PARTS_OF_LEVEL = 10
CALLS_PER_PART = 100_000
"""Of each interface, level and number of domains: a million calls in parts, so that a run shows how far it is."""
SEQUENCES_AT_ONCE = 5_000
SEEDS_PER_PART = 1_000_000


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS_OF_LEVEL))
@pytest.mark.parametrize("domain_count", [2, 3, 5])
@pytest.mark.parametrize(
    ("interface", "level"),
    [("posix18", "posix"), ("posix-close-to-open", "posix"), ("posix-close-to-open", "close-to-open")],
)
def test_a_million_calls_make_no_difference(interface: str, level: str, domain_count: int, part: int) -> None:
    calls, seed = 0, part * SEEDS_PER_PART
    while calls < CALLS_PER_PART:
        argument = f"scalefs:domains={domain_count},level={level}"
        with Conform(
            load_interface(interface), load_target(argument), sequences=SEQUENCES_AT_ONCE, seed=seed, jobs=2
        ) as conform:
            conform.start()
            found = conform.run()
        assert found.differences == () and found.ended is None, found.text()
        calls += found.tally.calls
        seed += SEQUENCES_AT_ONCE


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("scalefs:domains=0", "from 1 to 16"),
        ("scalefs:domains=17", "from 1 to 16"),
        ("scalefs:domains=2,cores=4", "cores"),
        ("scalefs:domains=2,level=nfs", "one of posix, close-to-open"),
    ],
)
def test_options_are_refused(argument: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        load_target(argument)
