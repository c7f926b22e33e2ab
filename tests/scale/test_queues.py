"""The network's solution, held against others' ways to the same numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commutant.scale.queues import Server, servers_of, throughput

TIMES = st.floats(1.0, 1000.0)


def by_convolution(own_ns: float, demands: list[float], cores: int) -> float:
    """Time of an operation by Buzen's algorithm: constants of normalisation instead of means."""
    # A delay is a server with as many places as there are cores: its terms are own^k / k!.
    terms = [1.0]
    for present in range(1, cores + 1):
        terms.append(terms[-1] * own_ns / present)
    for demand in demands:
        for present in range(1, cores + 1):
            terms[present] += demand * terms[present - 1]
    return cores * terms[cores] / terms[cores - 1]


@given(TIMES, st.lists(TIMES, min_size=1, max_size=6), st.integers(1, 40))
def test_means_agree_with_constants_of_normalisation(own_ns: float, demands: list[float], cores: int) -> None:
    solved = throughput(own_ns, [Server(1, demand) for demand in demands], cores)
    assert solved.operation_ns == pytest.approx(by_convolution(own_ns, demands, cores), rel=1e-6)


@given(TIMES, st.integers(2, 8), TIMES, st.integers(1, 40))
def test_servers_that_are_alike_are_as_many_servers(own_ns: float, count: int, demand: float, cores: int) -> None:
    together = throughput(own_ns, [Server(count, demand)], cores)
    apart = throughput(own_ns, [Server(1, demand)] * count, cores)
    assert together.operation_ns == pytest.approx(apart.operation_ns)


def test_without_transfers_nothing_is_lost() -> None:
    solved = throughput(100.0, [], 256)
    assert (solved.operation_ns, solved.queued_ns, solved.busiest) == (100.0, 0.0, 0.0)


def test_one_line_is_the_limit_of_all_cores_together() -> None:
    solved = throughput(100.0, [Server(1, 50.0)], 256)
    assert solved.operation_ns == pytest.approx(256 * 50.0, rel=1e-3)
    assert solved.busiest == pytest.approx(1.0)
    assert solved.queued_ns == pytest.approx(solved.operation_ns - 150.0)


def test_many_lines_that_seldom_move_only_take_their_time() -> None:
    solved = throughput(100.0, [Server(100_000, 0.0005)], 256)
    assert solved.operation_ns == pytest.approx(150.0)
    assert solved.queued_ns == 0.0


def test_a_line_takes_its_part_of_an_operation() -> None:
    assert servers_of([(400, 2)], 1000, 50.0) == [Server(2, 20.0)]
