"""The verdict rule, against a plain reference that looks at all windows at once."""

from __future__ import annotations

import itertools
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from commutant.campaign.verdict import Judge, Outcome, skipped
from commutant.targets.base import Job, WindowRecord
from tests.campaign.fakes import make_finding, make_test

FINDINGS = {name: make_finding(name) for name in "abc"}
CRASH, WRONG = "crash", "wrong"


def record(test, order_index, shown):
    job = Job(test, order_index)
    if shown == CRASH:
        return WindowRecord(job, crashed="panic")
    if shown == WRONG:
        return WindowRecord(job, wrong="link returned EEXIST")
    return WindowRecord(job, tuple(FINDINGS[name] for name in sorted(shown)), {"timer": 1} if shown else {})


def judge_all(shows, repeats):
    """Feeds a judge from `shows[order][window]`; gives the verdict and the number of windows asked for per order."""
    test = make_test(calls=["a", "b", "c"][: 2 if len(shows) == 2 else 3])
    judge = Judge(test, repeats)
    used = [0] * len(shows)
    while judge.verdict is None:
        due = judge.due
        assert due, "a judge without verdict wants windows"
        for order_index in due:
            judge.add(record(test, order_index, shows[order_index][used[order_index]]))
            used[order_index] += 1
    assert judge.due == ()
    return judge.verdict, used


def reference(shows, repeats):
    """The rule of the contract, written down naively."""
    first = [order[0] for order in shows]
    if WRONG in first:
        return Outcome.WRONG_RESULT
    if CRASH in first:
        return Outcome.CRASHED
    if not any(first):
        return Outcome.CONFLICT_FREE
    windows = [order[:repeats] for order in shows]
    flat = [window for order in windows for window in order]
    if WRONG in flat:
        return Outcome.WRONG_RESULT
    if CRASH in flat:
        return Outcome.CRASHED
    for order in windows:
        for name in FINDINGS:
            if 2 * sum(name in window for window in order) > repeats:
                return Outcome.CONFLICTING
    return Outcome.CONFLICT_FREE if sum(bool(window) for window in flat) <= 1 else Outcome.UNSTABLE


windows = st.one_of(
    st.just(frozenset()),
    st.just(frozenset()),
    st.frozensets(st.sampled_from("abc"), max_size=3),
    st.sampled_from([CRASH, WRONG, frozenset()]),
)


@given(data=st.data(), repeats=st.integers(1, 5), orders=st.sampled_from([2, 6]))
def test_agrees_with_the_reference(data, repeats, orders):
    shows = data.draw(st.lists(st.lists(windows, min_size=5, max_size=5), min_size=orders, max_size=orders))
    verdict, used = judge_all(shows, repeats)
    assert verdict.outcome == reference(shows, repeats)
    assert verdict.windows == sum(used)
    assert set(used) in ({1}, {repeats})
    if all(not order[0] for order in shows):
        assert set(used) == {1}


def test_every_small_case_of_two_orders_agrees_with_the_reference():
    kinds = [frozenset(), frozenset("a"), frozenset("b")]
    for flat in itertools.product(kinds, repeat=6):
        shows = [flat[:3], flat[3:]]
        verdict, _ = judge_all(shows, 3)
        assert verdict.outcome == reference(shows, 3), shows


def test_a_clean_round_is_enough():
    verdict, used = judge_all([["", "a", "a"], ["", "a", "a"]], 3)
    assert (verdict.outcome, verdict.findings, used) == (Outcome.CONFLICT_FREE, (), [1, 1])


def test_a_finding_in_two_of_three_of_one_order_stands():
    verdict, used = judge_all([["a", "", "a"], ["", "", ""]], 3)
    assert verdict.outcome is Outcome.CONFLICTING
    assert [finding.field for finding in verdict.findings] == ["a"]
    assert used == [3, 3]


def test_a_finding_that_only_adds_up_over_orders_does_not_stand():
    verdict, _ = judge_all([["a", "", ""], ["a", "", ""]], 3)
    assert verdict.outcome is Outcome.UNSTABLE
    assert [finding.field for finding in verdict.findings] == ["a"]


def test_different_findings_do_not_add_up():
    verdict, _ = judge_all([["a", "b", "c"], ["", "", ""]], 3)
    assert verdict.outcome is Outcome.UNSTABLE


def test_one_window_with_findings_is_noise():
    verdict, _ = judge_all([["abc", "", ""], ["", "", ""]], 3)
    assert (verdict.outcome, verdict.findings) == (Outcome.CONFLICT_FREE, ())


def test_with_one_repeat_one_window_decides():
    verdict, used = judge_all([["", "a"], ["a", ""]], 1)
    assert (verdict.outcome, used) == (Outcome.CONFLICTING, [1, 1])


def test_only_the_findings_that_stand_are_kept():
    verdict, _ = judge_all([["ab", "a", "c"], ["", "b", ""]], 3)
    assert [finding.field for finding in verdict.findings] == ["a"]


def test_the_functions_are_part_of_the_identity_but_their_order_is_not():
    test = make_test()
    judge = Judge(test)
    one, other, swapped = (make_finding("f", pair) for pair in (("p", "q"), ("p", "r"), ("q", "p")))
    for order_index, findings in zip((0, 1, 0, 1, 0, 1), ([one], [], [swapped], [], [other], []), strict=True):
        judge.add(WindowRecord(Job(test, order_index), tuple(findings)))
    assert judge.verdict is not None
    assert judge.verdict.findings == (one,)


def test_a_wrong_result_dominates_crash_and_findings():
    assert judge_all([[CRASH], [WRONG]], 3)[0].outcome is Outcome.WRONG_RESULT
    verdict, used = judge_all([["a", "a", "a"], ["", WRONG, ""]], 3)
    assert (verdict.outcome, verdict.detail, used) == (Outcome.WRONG_RESULT, "link returned EEXIST", [3, 3])


def test_a_crash_ends_the_test():
    verdict, used = judge_all([["a"], [CRASH]], 3)
    assert (verdict.outcome, verdict.detail, used) == (Outcome.CRASHED, "panic", [1, 1])


def test_ignored_lines_are_added_up():
    verdict, _ = judge_all([["a", "a", ""], ["", "", "b"]], 3)
    assert verdict.ignored == {"timer": 3}


def test_a_record_of_another_order_is_refused():
    test = make_test()
    with pytest.raises(ValueError, match="expected a window of order 0, got 1"):
        Judge(test).add(WindowRecord(Job(test, 1)))


def test_repeats_below_one_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        Judge(make_test(), 0)


def test_a_skipped_test_has_no_window():
    verdict = skipped(make_test(), "fake does not know the call link")
    assert (verdict.outcome, verdict.windows) == (Outcome.SKIPPED, 0)
    assert "link" in verdict.detail


def test_a_window_that_the_target_cannot_run_skips_the_test():
    judge = Judge(make_test())
    judge.add(record(judge.test, 0, ""))
    judge.add(WindowRecord(Job(judge.test, 1), unsupported="no such call here"))
    assert judge.verdict is not None and judge.due == ()
    assert (judge.verdict.outcome, judge.verdict.detail) == (Outcome.SKIPPED, "no such call here")


def unreached(judge, order_index):
    return WindowRecord(Job(judge.test, order_index), unreached="set-up 2, lease(): another job")


def test_a_set_up_that_leads_elsewhere_is_asked_again_and_then_skipped():
    judge = Judge(make_test())
    for _ in range(3):
        for order_index in (0, 1):
            assert judge.verdict is None
            judge.add(unreached(judge, order_index))
    verdict = judge.verdict
    assert (verdict.outcome, verdict.windows, verdict.is_unreached) == (Outcome.SKIPPED, 6, True)
    assert verdict.detail == "set-up not reached: set-up 2, lease(): another job"
    assert not skipped(make_test(), "no such call").is_unreached


@pytest.mark.parametrize(
    ("shown", "outcome"),
    [(["", ""], Outcome.CONFLICT_FREE), (["a", ""], Outcome.CONFLICT_FREE), ([None, ""], Outcome.SKIPPED)],
)
def test_of_windows_that_got_there_the_verdict_is_made(shown, outcome):
    """Both orders lead elsewhere at first; then each is as shown in its other windows."""
    judge = Judge(make_test())
    for order_index in (0, 1):
        judge.add(unreached(judge, order_index))
    for number, order_index in enumerate(judge.due):
        text = shown[order_index] if number < 2 else (None if shown[order_index] is None else "")
        judge.add(unreached(judge, order_index) if text is None else record(judge.test, order_index, text))
    assert judge.verdict.outcome is outcome


def test_what_stands_in_one_order_counts_though_the_other_is_not_reached():
    judge = Judge(make_test())
    for _ in range(3):
        judge.add(record(judge.test, 0, "a"))
        judge.add(unreached(judge, 1))
    assert judge.verdict.outcome is Outcome.CONFLICTING


def test_wrong_results_count_whatever_was_not_reached():
    judge = Judge(make_test())
    judge.add(unreached(judge, 0))
    judge.add(WindowRecord(Job(judge.test, 1), wrong="link returned 1"))
    assert judge.verdict.outcome is Outcome.WRONG_RESULT


def test_no_record_is_taken_once_the_verdict_is_there():
    judge = Judge(make_test())
    for order_index in judge.due:
        judge.add(record(judge.test, order_index, ""))
    assert judge.verdict is not None and judge.due_count == 0
    with pytest.raises(ValueError, match="expected a window of order 0, got 0"):
        judge.add(record(judge.test, 0, ""))


def test_a_verdict_stays_as_it_was_given():
    verdict = skipped(make_test(), "no such call")
    with pytest.raises(FrozenInstanceError):
        verdict.windows = 3
    assert not hasattr(verdict, "__dict__"), "there is one for each of many thousand tests"


@pytest.mark.parametrize("turned", [False, True])
def test_of_findings_that_nothing_tells_apart_the_one_under_no_lock_is_kept(turned):
    outer = FINDINGS["a"]
    inner = structs.replace(outer, under="struct inode.i_rwsem", line_address=outer.line_address + 64)
    assert inner.identity == outer.identity
    judge = Judge(make_test(), repeats=1)
    for order_index in judge.due:
        findings = (outer, inner) if turned else (inner, outer)
        judge.add(WindowRecord(Job(judge.test, order_index), findings))
    assert judge.verdict is not None and judge.verdict.findings == (outer,)
