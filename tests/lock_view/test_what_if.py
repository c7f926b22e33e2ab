"""Predictions: the simulation against what queueing says, and the changes against workloads of known answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commutant.lock_view.study.simulation import Policy, throughput
from commutant.lock_view.study.workload import Length, SectionKind, SectionWorkload


def workload(
    *,
    hold: float = 100.0,
    gap: float = 0.0,
    scatter: float = 0.0,
    kinds: int = 1,
    instances: int = 1,
    writes: tuple[bool, ...] = (True,),
) -> SectionWorkload:
    made = tuple(
        SectionKind(place, False, writes[place % len(writes)], 1 / kinds, Length(hold, scatter * hold))
        for place in range(kinds)
    )
    none = ((0.0,) * kinds,) * kinds
    return SectionWorkload(
        made,
        ((1.0,) * kinds,) * 3,
        (none,) * 3,
        ((1 / kinds,) * kinds,),
        (1 / instances,) * instances,
        Length(gap, scatter * gap),
    )


ALONE = Policy([[1.0]])
TOGETHER = Policy([[0.0]])


def test_a_lock_that_is_always_held_lets_one_thread_run() -> None:
    for threads in (1, 2, 8):
        assert throughput(workload(), ALONE, threads) == pytest.approx(1, rel=0.01)
        assert throughput(workload(), TOGETHER, threads) == pytest.approx(threads, rel=0.01)


def test_sections_far_apart_do_not_meet() -> None:
    rare = workload(hold=1, gap=10_000, scatter=1)
    assert throughput(rare, TOGETHER, 2) / throughput(rare, ALONE, 2) == pytest.approx(1, rel=0.01)


def test_two_threads_at_one_server_agree_with_queueing_theory() -> None:
    """M/M/1 with two customers: the server is busy with a share of 1 - 1 / (1 + 2r + 2r^2), r = hold / gap."""
    for ratio in (0.25, 1.0, 4.0):
        load = workload(hold=100 * ratio, gap=100, scatter=1)
        busy = 1 - 1 / (1 + 2 * ratio + 2 * ratio * ratio)
        assert throughput(load, ALONE, 2, sections=20_000) == pytest.approx(busy * (1 + 1 / ratio), rel=0.03)


def test_locks_of_many_objects_are_seldom_the_same() -> None:
    many = workload(instances=100)
    assert throughput(many, ALONE, 2) / throughput(workload(), ALONE, 2) == pytest.approx(1.98, rel=0.02)


def test_a_reader_that_is_overtaken_repeats() -> None:
    """One of two kinds writes: what readers lose by repeating is more than nothing and less than by waiting."""
    load = workload(kinds=2, writes=(True, False), scatter=1)
    waits = [[1.0, 0.0], [1.0, 0.0]]
    free = throughput(load, Policy(waits), 2)
    repeating = throughput(load, Policy(waits, [[0.0, 1.0], [0.0, 0.0]]), 2)
    locked = throughput(load, Policy([[1.0, 1.0], [1.0, 1.0]]), 2)
    assert locked < repeating < free


@settings(max_examples=15, deadline=None)
@given(st.floats(1, 1000), st.floats(0, 1000), st.floats(0, 1.5), st.integers(1, 6), st.floats(0, 1))
def test_less_waiting_is_never_slower_and_never_faster_than_all_processors(
    hold: float, gap: float, scatter: float, threads: int, share: float
) -> None:
    load = workload(hold=hold, gap=gap, scatter=scatter)
    alone, some, none = (throughput(load, Policy([[map_unique]]), threads) for map_unique in (1.0, share, 0.0))
    assert alone <= some * 1.15 and some <= none * 1.15  # draws differ once order differs
    assert none <= threads * throughput(load, ALONE, 1) * 1.15


def test_handing_a_lock_on_costs_no_more_than_running_alone() -> None:
    """A thread that comes back before the next one has the lock takes it: two threads do the work of one."""
    load = workload(hold=100, gap=100)
    spinning, sleeping = (throughput(load, ALONE, 2, hand_over=cost) for cost in (50, 5000))
    assert spinning == pytest.approx(2 * 200 / (2 * 150 + 25), rel=0.1)
    assert 0.7 < sleeping <= 1.01


def test_short_sections_that_become_parallel_count_by_their_work() -> None:
    """Many short sections freed from after few long ones were counted as 72 times the speed with 32 threads."""
    made = (
        SectionKind(0, False, True, 0.9, Length(10, 0)),
        SectionKind(1, False, True, 0.1, Length(10_000, 0)),
    )
    none = ((0.0,) * 2,) * 2
    load = SectionWorkload(made, ((1.0,) * 2,) * 3, (none,) * 3, ((1.0, 0.0), (0.0, 1.0)), (1.0,), Length(0.0, 0.0))
    gain = throughput(load, Policy([[0.0] * 2] * 2), 2) / throughput(load, Policy([[1.0] * 2] * 2), 2)
    assert gain <= 2.01


def test_readers_pay_for_their_count() -> None:
    """Of short sections a reader-writer lock loses what its count costs: 80 % readers got 0.67 instead of 1.29."""
    load = workload(hold=10, gap=0)
    readers = Policy([[0.0]], entrances=2.5, reserves=True)
    assert throughput(load, readers, 2, entrance=80) < throughput(load, ALONE, 2)
    assert throughput(load, readers, 1, entrance=80) == pytest.approx(1)
