"""Campaigns on sessions without a machine: every test judged once, whatever the sessions do."""

from __future__ import annotations

import collections
import itertools
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

import commutant.campaign.campaign as campaign_module
from commutant.campaign.campaign import MAX_BATCH_WINDOWS, MAX_CRASHES_IN_A_ROW, Campaign
from commutant.campaign.verdict import Outcome
from commutant.support import Progress
from commutant.support.errors import RunError
from commutant.targets.base import WindowRecord
from tests.campaign.fakes import FakeSession, clean, conflicting, make_corpus, make_finding, make_test


def run(tests, sessions, **options):
    """Runs a campaign and gives the verdicts by test id; a test judged twice fails."""
    verdicts = {}

    def keep(test, verdict, seconds):
        assert verdict.test_id == test.id and seconds >= 0
        assert test.id not in verdicts
        verdicts[test.id] = verdict

    campaign = Campaign(tests, keep, **options)
    return verdicts, campaign.run(sessions)


@settings(deadline=None, max_examples=40)
@given(tests=st.integers(0, 120), sessions=st.integers(1, 4), shares=st.integers(1, 5), seed=st.integers(0, 3))
def test_every_test_is_judged_once(tests, sessions, shares, seed):
    corpus = make_corpus(tests)
    wild = {test.id for test in corpus.tests[::shares]}
    made = [
        FakeSession(lambda job, before: (conflicting if job.test.id in wild else clean)(job, before))
        for _ in range(sessions)
    ]
    verdicts, seconds = run(corpus.tests, made, seed=seed)
    assert verdicts.keys() == {test.id for test in corpus.tests}
    assert {test_id for test_id, verdict in verdicts.items() if verdict.outcome is Outcome.CONFLICTING} == wild
    assert {verdict.windows for verdict in verdicts.values()} <= {2, 6}
    assert seconds >= 0
    assert not any(session.closed for session in made)
    assert max((size for session in made for size in session.batches), default=0) <= MAX_BATCH_WINDOWS


def test_tests_of_one_placement_stand_together():
    """A session need not change what runs them; by chance 20 tests would change some ten times."""
    tests = []
    for number in range(20):
        first, second = (test := make_test(number)).calls
        moved = structs.replace(test, calls=(first, structs.replace(second, process=number % 2)))
        tests.append(structs.replace(moved, id=moved.content_id()))
    placements = []

    def script(job, before):
        placements.append([call.process for call in job.test.calls])
        return clean(job, before)

    run(tests, [FakeSession(script)], seed=3)
    assert [placement for placement, _ in itertools.groupby(placements)] == [[0, 0], [0, 1]]


def test_follow_up_windows_come_in_later_batches():
    session = FakeSession(conflicting)
    verdicts, _ = run([make_test()], [session])
    assert session.batches == [2, 4]
    (verdict,) = verdicts.values()
    assert verdict.ignored == {"timer": 6}


def test_one_repeat_needs_no_follow_up():
    session = FakeSession(conflicting)
    verdicts, _ = run([make_test()], [session], repeats=1)
    assert session.batches == [2]
    assert [verdict.outcome for verdict in verdicts.values()] == [Outcome.CONFLICTING]


def test_the_seed_gives_the_order():
    tests = make_corpus(50).tests
    orders = []
    for seed in (1, 1, 2):
        seen = []
        run(
            tests,
            [FakeSession(lambda job, before, seen=seen: seen.append(job.test.id) or clean(job, before))],
            seed=seed,
        )
        orders.append(seen)
    assert orders[0] == orders[1] != orders[2]
    assert collections.Counter(orders[0]) == collections.Counter(orders[2])


def test_a_slow_session_does_not_hold_up_the_others():
    """One session stops in its first window until the other one has judged all the rest."""
    tests = make_corpus(200).tests
    others_done = threading.Event()
    held: list[str] = []
    judged: list[str] = []

    def slow(job, before):
        if not held:
            held.append(job.test.id)
            assert others_done.wait(30)
        return clean(job, before)

    def keep(test, verdict, seconds):
        judged.append(test.id)
        if len(judged) >= len(tests) - MAX_BATCH_WINDOWS // 2:
            others_done.set()

    Campaign(tests, keep).run([FakeSession(slow), FakeSession(clean)])
    assert len(judged) == 200


def test_a_crash_is_the_verdict_of_its_test_alone():
    tests = make_corpus(20).tests
    bad = tests[7].id

    def script(job, before):
        return WindowRecord(job, crashed="Kernel panic") if job.test.id == bad else clean(job, before)

    verdicts, _ = run(tests, [FakeSession(script)])
    outcomes = collections.Counter(verdict.outcome for verdict in verdicts.values())
    assert outcomes == {Outcome.CONFLICT_FREE: 19, Outcome.CRASHED: 1}
    assert verdicts[bad].detail == "Kernel panic"


def test_a_target_that_always_dies_ends_the_campaign():
    sessions = [FakeSession(lambda job, before: WindowRecord(job, crashed="no boot"))]
    with pytest.raises(RunError, match=r"died in \d+ windows in a row, last in .*no boot"):
        run(make_corpus(10 * MAX_CRASHES_IN_A_ROW).tests, sessions)
    assert sessions[0].closed


def test_an_error_of_one_session_closes_all_and_is_the_error_of_the_campaign():
    failed = threading.Event()

    def fail(job, before):
        failed.set()
        raise RunError("QEMU was killed")

    def wait(job, before):
        assert failed.wait(30)
        return clean(job, before)

    sessions = [FakeSession(wait), FakeSession(fail)]
    before = threading.active_count()
    with pytest.raises(RunError, match="QEMU was killed"):
        run(make_corpus(2000).tests, sessions)
    assert all(session.closed for session in sessions)
    assert threading.active_count() <= before  # a thread of an earlier test may have ended in the meantime


def test_an_error_while_keeping_a_verdict_ends_the_campaign():
    def keep(test, verdict, seconds):
        raise RunError("no space left on device")

    session = FakeSession(clean)
    with pytest.raises(RunError, match="no space"):
        Campaign(make_corpus(10).tests, keep).run([session])
    assert session.closed


def test_an_interrupt_closes_the_sessions_and_keeps_what_was_judged():
    tests = make_corpus(3000).tests
    judged = []
    interrupted = threading.Event()

    def script(job, before):
        if len(judged) == 5:
            interrupted.wait(30)
        return clean(job, before)

    session = FakeSession(script)

    def interrupt(progress):
        if progress.done == 5:
            interrupted.set()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Campaign(tests, lambda test, verdict, seconds: judged.append(test.id)).run([session], interrupt)
    assert session.closed
    assert 5 <= len(judged) < 3000
    assert len(judged) == len(set(judged))


def test_a_session_that_gives_too_few_windows_is_found_out():
    class Short(FakeSession):
        def run(self, jobs):
            return iter([WindowRecord(jobs[0])])

    with pytest.raises(RunError, match="fewer windows"):
        run([make_test()], [Short(clean)])


def test_a_session_that_mixes_up_tests_is_found_out():
    class Mixed(FakeSession):
        def run(self, jobs):
            return reversed([WindowRecord(job) for job in jobs])

    with pytest.raises(RunError, match=r"where .* was due"):
        run(make_corpus(2).tests, [Mixed(clean)])


def test_progress_is_told():
    told = []
    last = threading.Event()

    def slow(job, before):
        last.wait(30)
        return clean(job, before)

    def listen(progress):
        told.append(progress)
        last.set()

    Campaign([make_test()], lambda *_: None).run([FakeSession(slow)], listen)
    assert told[0] == Progress(0, 1, "0 windows/s")


def test_rate_and_times_are_told_in_seconds_since_the_start(monkeypatch):
    """The clock says 1000 as the campaign starts, and 1002 from then on; five tests take ten windows."""
    times = iter([1000.0])
    monkeypatch.setattr(campaign_module, "time", SimpleNamespace(monotonic=lambda: next(times, 1002.0)))
    told, judged = {}, []
    five_told = threading.Event()

    def script(job, before):
        if len(judged) == 5:
            assert five_told.wait(30)
        return clean(job, before)

    def listen(progress):
        told[progress.done] = progress.text
        if progress.done == 5:
            five_told.set()

    campaign = Campaign(make_corpus(8).tests, lambda test, verdict, seconds: judged.append(seconds))
    assert campaign.run([FakeSession(script)], listen) == 2.0
    assert told[5] == "5 windows/s"
    assert judged == [2.0] * 8


def one_window_each(count):
    return [structs.replace(test, orders=test.orders[:1]) for test in make_corpus(count).tests]


def test_batches_get_smaller_towards_the_end():
    """At most 1,024 windows, and half of what is left, but not fewer than 16."""
    session = FakeSession(clean)
    run(one_window_each(2100), [session])
    left, expected = 2100, []
    while left:
        expected.append(min(left, 1024, max(16, left // 2)))
        left -= expected[-1]
    assert session.batches == expected


def test_25_windows_in_a_row_that_die_end_the_campaign_and_24_do_not():
    def dying(every):
        windows = itertools.count(1)
        return FakeSession(
            lambda job, before: (
                clean(job, before) if next(windows) % every == 0 else WindowRecord(job, crashed="no boot")
            )
        )

    verdicts, _ = run(one_window_each(100), [dying(25)])
    assert collections.Counter(verdict.outcome for verdict in verdicts.values())[Outcome.CRASHED] == 96
    with pytest.raises(RunError, match="died in 25 windows in a row"):
        run(one_window_each(100), [dying(26)])


def test_nothing_is_judged_after_an_interrupt_even_by_a_session_that_goes_on():
    judged = []
    closed = threading.Event()

    class Deaf(FakeSession):
        def close(self):
            closed.set()

    def script(job, before):
        if len(judged) == 5:
            assert closed.wait(30)
        return clean(job, before)

    def interrupt(progress):
        if progress.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Campaign(make_corpus(200).tests, lambda *_: judged.append(1)).run([Deaf(script)], interrupt)
    assert len(judged) <= 6


def test_an_unstable_test_keeps_what_was_seen():
    def script(job, before):
        return WindowRecord(job, (make_finding(f"field{before}"),) if job.order_index == 0 else ())

    verdicts, _ = run([make_test()], [FakeSession(script)])
    (verdict,) = verdicts.values()
    assert verdict.outcome is Outcome.UNSTABLE
    assert [finding.field for finding in verdict.findings] == ["field0", "field1", "field2"]
