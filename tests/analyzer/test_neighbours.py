"""Which piece each process takes next: every piece once, neighbours to one process, the cheap ones last."""

from __future__ import annotations

import heapq
import random

from hypothesis import given
from hypothesis import strategies as st

from commutant.pool.neighbours import LARGE_PART, NEXT_FEW, Neighbours


def walk(plan: Neighbours, costs: list[float], workers: int) -> tuple[list[list[int]], float]:
    """Which pieces each worker does if all take as long as is expected, and when the last one ends."""
    free = [(0.0, plan.enter()) for _ in range(workers)]
    done: list[list[int]] = [[] for _ in range(workers)]
    for _ in costs:
        time, worker = heapq.heappop(free)
        number = plan.take(worker)
        done[worker].append(number)
        heapq.heappush(free, (time + costs[number], worker))
    return done, max(free)[0]


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=60), st.integers(1, 9), st.randoms(use_true_random=False))
def test_each_piece_is_taken_once_and_nobody_is_late(costs: list[float], workers: int, random_: random.Random) -> None:
    order = list(range(len(costs)))
    random_.shuffle(order)
    done, end = walk(Neighbours(order, costs, workers), costs, workers)
    assert sorted(number for one in done for number in one) == sorted(order)
    assert end <= sum(costs) / workers + max(costs)  # Graham's bound, as for any order without idle workers


def test_two_walk_towards_each_other() -> None:
    order = list(reversed(range(100)))
    (first, second), _ = walk(Neighbours(order, [1.0] * 100, 2), [1.0] * 100, 2)
    assert first == order[:50]
    assert second == order[:49:-1]


def test_four_walk_in_pairs() -> None:
    done, _ = walk(Neighbours(range(100), [1.0] * 100, 4), [1.0] * 100, 4)
    assert [sorted(one) for one in done] == [list(range(start, start + 25)) for start in (0, 25, 50, 75)]


def test_a_piece_that_is_a_large_part_of_the_work_is_taken_first() -> None:
    costs = [1.0] * 50 + [60.0] + [1.0] * 50
    done, end = walk(Neighbours(range(101), costs, 2), costs, 2)
    assert done[0][0] == 50
    assert end == sum(costs) / 2


def test_the_dearest_of_the_next_few_is_taken() -> None:
    costs = [1.0, 2.0, 1.0, 3.0, 9.0] + [1.0] * 200
    assert max(costs) < sum(costs) * LARGE_PART and NEXT_FEW == 4
    plan = Neighbours(range(len(costs)), costs, 1)
    assert [plan.take(plan.enter())] == [3]


def test_who_has_come_to_the_end_helps_where_most_is_left() -> None:
    plan = Neighbours(range(80), [1.0] * 80, 4)
    first = plan.enter()
    assert [plan.take(first) for _ in range(80)] == [*range(80)]
