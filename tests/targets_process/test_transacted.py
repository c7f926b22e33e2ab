"""Tests and sequences in transactions: who commutes commits at once, who does not is aborted and says so."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from commutant.campaign import Campaign, Outcome, Verdict
from commutant.lang import load_interface
from commutant.support import UsageError
from commutant.targets import Job, Session, Target, load_target
from commutant.targets.process.transacted import ABORTED, TransactedSession, _cut, _without
from commutant.testgen import TestCase, generate
from tests.targets.handwritten import ENOENT, create, make_test, same

COMMUTE = make_test([("open", create("a"), 0), ("open", create("b"), 1)], same([0, 0]))
CLASH = make_test(
    [("open", create("a"), 0), ("access", {"name": "a"}, 1)],
    {(0, 1): ([0, 0], []), (1, 0): ([0, ENOENT], [])},
)
"""What comes is as if the aborted call were made last, so in one of the orders it is another result than expected."""
NOT_OFFERED = make_test([("munmap", {"address": 0}, 0), ("access", {"name": "a"}, 1)], same([0, ENOENT]))


@pytest.fixture(scope="module", params=["scalefs:tx=both", "scalefs:tx=one", "plain:tx=both"])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    target = load_target(request.param)
    target.start(lambda _: None, 2)
    yield target
    target.close()


@pytest.fixture
def session(target: Target) -> Iterator[Session]:
    session = target.sessions(1)[0]
    yield session
    session.close()


def verdicts(session: Session, tests: list[TestCase]) -> dict[str, Verdict]:
    kept: dict[str, Verdict] = {}

    def keep(test: TestCase, verdict: Verdict, seconds: float) -> None:
        kept[test.id] = verdict

    Campaign(tests, keep, repeats=3, seed=1).run([session], lambda _: None)
    return kept


def test_who_commutes_commits_at_once(session: Session) -> None:
    for order in (0, 1):
        (record,) = session.run([Job(COMMUTE, order)])
        assert (record.wrong, record.aborted, record.unsupported) == (None, (), None)


def test_who_does_not_commute_is_aborted_and_that_is_a_finding(session: Session) -> None:
    (record,) = session.run([Job(CLASH, 1)])
    assert record.aborted == (1,)
    (abort,) = [finding for finding in record.findings if finding.object == ABORTED]
    assert (abort.first.function, abort.second.function) == ("access", "open")


def test_what_is_not_offered_is_skipped_with_its_reason(session: Session) -> None:
    (verdict,) = verdicts(session, [NOT_OFFERED]).values()
    assert (verdict.outcome, verdict.detail) == (Outcome.SKIPPED, "munmap is not offered in a transaction")


def test_all_tests_of_names_have_right_results_and_commit_at_once(target: Target, session: Session) -> None:
    """All but those in which both calls make one name, which no implementation lets share nothing."""
    judged = verdicts(session, list(generate(load_interface("names")).tests))
    wrong = {verdict.test_id: verdict.detail for verdict in judged.values() if verdict.outcome is Outcome.WRONG_RESULT}
    assert wrong == {}
    aborted = Counter(
        verdict.test_id.rsplit("-", 1)[0]
        for verdict in judged.values()
        if any(finding.object == ABORTED for finding in verdict.findings)
    )
    assert set(aborted) <= {"open-open", "open-rename"}, aborted
    counted = Counter(verdict.outcome for verdict in judged.values())
    assert counted[Outcome.CONFLICT_FREE] > len(judged) // 4, counted


def test_a_sequence_is_cut_the_same_way_each_time() -> None:
    steps = [{"call": "access", "args": {"name": "a"}, "process": process, "result": 0} for process in (0, 0, 1, 1)]
    text = json.dumps({"calls": [], "orders": [], "setup": steps, "observe": []})
    cut, added = _cut(text)
    assert (cut, added) == _cut(text)
    calls = json.loads(cut)["setup"]
    assert [calls[place]["call"] for place in added] == ["begin_transaction", "end_transaction"] * (len(added) // 2)
    assert [call for place, call in enumerate(calls) if place not in added] == steps
    came = json.dumps({"results": list(range(len(calls))), "observation": []})
    kept = json.loads(_without(came, added) or "")["results"]
    assert kept == [place for place in range(len(calls)) if place not in added]


def test_a_wrong_result_in_a_transaction_is_told_at_its_place(session: Session) -> None:
    assert isinstance(session, TransactedSession)
    wrong = {"call": "access", "args": {"name": "a"}, "process": 0, "result": 0}
    steps = [{"call": "open", "args": create("a"), "process": 0, "result": 0}] + [wrong] * 7
    text = json.dumps({"calls": [], "orders": [], "setup": [*steps, wrong | {"args": {"name": "b"}}], "observe": []})
    (record,) = session.run_sequences([text])
    assert record.actual is not None
    assert json.loads(record.actual)["results"] == [0] * 8 + [ENOENT]


def test_another_way_is_refused() -> None:
    with pytest.raises(UsageError, match="tx=all: expected one of both, one"):
        load_target("scalefs:tx=all")
