"""What keys share is reported once, with its rate, of all tests that do not share it anyway."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commutant.campaign import KeyAnswer, KeyRate, Outcome, Verdict, ask_other_keys
from commutant.campaign.keys import WINDOWS_PER_TEST
from commutant.runs import Check
from commutant.targets import Job, WindowRecord
from tests.campaign.fakes import (
    FakeSession,
    FakeTarget,
    Script,
    clean,
    conflicting,
    make_corpus,
    make_finding,
    make_test,
)


def meets(every: int) -> Script:
    """A script in which one window in `every` of a test shares a line."""

    def script(job: Job, before: int) -> WindowRecord:
        window = before * len(job.test.orders) + job.order_index
        return WindowRecord(job, (make_finding(),) if window % every == 0 else ())

    return script


def answer(every: int, *outcomes: Outcome, windows: int = 10_000, collision: bool = False) -> KeyAnswer:
    tests = [make_test(number) for number in range(len(outcomes))]
    verdicts = [Verdict(test.id, outcome) for test, outcome in zip(tests, outcomes, strict=True)]
    judged = [(test, replace(one, collision=collision)) for test, one in zip(tests, verdicts, strict=True)]
    return ask_other_keys(FakeSession(meets(every)), judged, windows)  # type: ignore[arg-type]  # it runs no sequences


def asked(every: int, *outcomes: Outcome, windows: int = 10_000, collision: bool = False) -> tuple[KeyRate, ...]:
    return answer(every, *outcomes, windows=windows, collision=collision).rates


def test_a_rate_is_over_the_windows_of_the_tests_that_ever_share() -> None:
    (rate,) = asked(16, Outcome.CONFLICT_FREE, Outcome.UNSTABLE)
    finding = make_finding()
    windows = 2 * WINDOWS_PER_TEST
    assert rate == KeyRate(finding.name, finding.sharing, 2, windows, windows // 16)


def test_windows_of_tests_that_never_share_do_not_count() -> None:
    first, second = make_test(0), make_test(1)

    def script(job: Job, before: int) -> WindowRecord:
        return meets(16)(job, before) if job.test.id == first.id else WindowRecord(job)

    judged = [(test, Verdict(test.id, Outcome.CONFLICT_FREE)) for test in (first, second)]
    (rate,) = ask_other_keys(FakeSession(script), judged, 10_000).rates  # type: ignore[arg-type]  # as above
    assert (rate.tests, rate.windows) == (1, WINDOWS_PER_TEST)


@pytest.mark.parametrize(("collision", "count"), [(False, 0), (True, 1)])
def test_what_conflicts_whatever_the_keys_are_is_left_out(collision: bool, count: int) -> None:
    assert len(asked(16, Outcome.CONFLICTING, collision=collision)) == count


def test_a_test_in_doubt_is_free_if_few_keys_share() -> None:
    """How many tests conflict was another number with each seed: two of six windows had keys that fell to one line."""
    test, finding = make_test(0), make_finding()
    unstable = Verdict(test.id, Outcome.UNSTABLE, (finding,))
    gone = Verdict(test.id, Outcome.CONFLICTING, (finding,), collision=True)
    conflicting = Verdict(test.id, Outcome.CONFLICTING, (finding,))
    for verdict in (unstable, gone):
        settled = answer(16, verdict.outcome, collision=verdict.collision).settled(verdict)
        assert (settled.outcome, settled.findings, settled.collision) == (Outcome.CONFLICT_FREE, (), False)
        assert answer(3, verdict.outcome, collision=verdict.collision).settled(verdict) == verdict
    assert answer(16, Outcome.UNSTABLE).settled(conflicting) == conflicting


def test_a_check_writes_what_more_keys_have_decided(tmp_path: Path) -> None:
    corpus = make_corpus(4)
    always, by_seed, unstable, _ = (test.id for test in corpus.tests)

    def script(job: Job, before: int) -> WindowRecord:
        windows = {always: 10_000, by_seed: 3, unstable: 1}.get(job.test.id, 0)
        now_and_then = windows > 0 and before % 16 == 0
        return (conflicting if before < windows or now_and_then else clean)(job, before)

    target = FakeTarget(script)
    target.others = [FakeTarget(lambda job, before: (conflicting if job.test.id == always else clean)(job, before))]
    target.key_windows = 4096
    with Check.new(corpus, target, jobs=1, directory=tmp_path / "run") as check:
        check.start(lambda _: None)
        run = check.run()
    assert {one.test_id for one in run.verdicts() if one.outcome is not Outcome.CONFLICT_FREE} == {always}
    assert (run.summary.conflicting, run.summary.unstable, run.summary.collisions) == (1, 0, 0)
    assert len(list(run.verdicts())) == 4


def test_what_no_other_keys_show_stays_in_doubt() -> None:
    """A first use, or a table that grew, is no matter of keys: it has no rate, and would be gone without a word."""
    test = make_test(0)
    verdict = Verdict(test.id, Outcome.UNSTABLE, (make_finding(),))
    assert answer(10_000, Outcome.UNSTABLE).settled(verdict) == verdict


@pytest.mark.parametrize(
    "record", [{"wrong": "it returned 2"}, {"crashed": "SIGSEGV"}, {"unsupported": "no such call"}]
)
def test_what_was_wrong_for_other_keys_settles_nothing(record: dict[str, str]) -> None:
    def script(job: Job, before: int) -> WindowRecord:
        return WindowRecord(job, **record) if before % 2 else meets(16)(job, before)  # type: ignore[arg-type]

    verdict = Verdict(make_test(0).id, Outcome.UNSTABLE, (make_finding(),))
    judged = [(make_test(0), verdict)]
    settled = ask_other_keys(FakeSession(script), judged, 10_000)  # type: ignore[arg-type]  # as above
    assert settled.settled(verdict) == verdict


def test_one_order_that_always_shares_stays_in_doubt() -> None:
    test = make_test(0)

    def script(job: Job, before: int) -> WindowRecord:
        return WindowRecord(job, (make_finding(),) if job.order_index == 0 and before % 4 == 0 else ())

    verdict = Verdict(test.id, Outcome.UNSTABLE, (make_finding(),))
    assert ask_other_keys(FakeSession(script), [(test, verdict)], 10_000).settled(verdict) == verdict  # type: ignore[arg-type]


def test_what_is_in_doubt_is_asked_first() -> None:
    verdicts = [Outcome.CONFLICT_FREE] * 20 + [Outcome.UNSTABLE]
    assert make_test(20).id in answer(16, *verdicts, windows=WINDOWS_PER_TEST).seldom


def test_what_one_window_alone_shared_is_noise() -> None:
    assert asked(10_000, Outcome.CONFLICT_FREE) == ()


def test_no_more_windows_are_run_than_were_asked_for() -> None:
    (rate,) = asked(16, *[Outcome.CONFLICT_FREE] * 5, windows=3 * WINDOWS_PER_TEST + 5)
    assert (rate.tests, rate.windows) == (3, 3 * WINDOWS_PER_TEST)


def test_more_windows_that_share_than_there_are_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2 windows"):
        KeyRate("counter", "false", 1, 2, 3)
