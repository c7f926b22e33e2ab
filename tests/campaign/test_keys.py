"""What keys share is told once, with its rate, of all tests that do not share it anyway."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commutant.campaign import KeyRate, Outcome, Verdict, ask_other_keys
from commutant.campaign.keys import WINDOWS_PER_TEST
from commutant.targets import Job, WindowRecord
from tests.campaign.fakes import FakeSession, Script, make_finding, make_test


def meets(every: int) -> Script:
    """A script in which each so many-th window of a test shares a line."""

    def script(job: Job, before: int) -> WindowRecord:
        window = before * len(job.test.orders) + job.order_index
        return WindowRecord(job, (make_finding(),) if window % every == 0 else ())

    return script


def asked(every: int, *outcomes: Outcome, windows: int = 10_000, collision: bool = False) -> tuple[KeyRate, ...]:
    tests = [make_test(number) for number in range(len(outcomes))]
    verdicts = [Verdict(test.id, outcome) for test, outcome in zip(tests, outcomes, strict=True)]
    judged = [(test, replace(one, collision=collision)) for test, one in zip(tests, verdicts, strict=True)]
    return ask_other_keys(FakeSession(meets(every)), judged, windows)  # type: ignore[arg-type]  # it runs no sequences


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
    (rate,) = ask_other_keys(FakeSession(script), judged, 10_000)  # type: ignore[arg-type]  # as above
    assert (rate.tests, rate.windows) == (1, WINDOWS_PER_TEST)


@pytest.mark.parametrize(("collision", "count"), [(False, 0), (True, 1)])
def test_what_conflicts_whatever_the_keys_are_is_left_out(collision: bool, count: int) -> None:
    assert len(asked(16, Outcome.CONFLICTING, collision=collision)) == count


def test_what_one_window_alone_shared_is_noise() -> None:
    assert asked(10_000, Outcome.CONFLICT_FREE) == ()


def test_no_more_windows_are_run_than_were_asked_for() -> None:
    (rate,) = asked(16, *[Outcome.CONFLICT_FREE] * 5, windows=3 * WINDOWS_PER_TEST + 5)
    assert (rate.tests, rate.windows) == (3, 3 * WINDOWS_PER_TEST)


def test_more_windows_that_share_than_there_are_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2 windows"):
        KeyRate("counter", "false", 1, 2, 3)
