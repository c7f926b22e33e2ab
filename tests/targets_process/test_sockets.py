"""Sockets on the target `scalefs`: unordered ones share nothing where calls commute, ordered ones a ring's ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from commutant.lang import load_interface
from commutant.targets.base import Job
from commutant.targets.registry import load_target
from commutant.targets.scalefs import ScaleFsTarget
from commutant.testgen import generate


@pytest.fixture(scope="module")
def target() -> Iterator[ScaleFsTarget]:
    target = load_target("scalefs")
    assert isinstance(target, ScaleFsTarget)
    target.start(lambda _: None, 1)
    yield target
    target.close()


SHARED = {
    "sockets": {"send-send", "receive-receive", "sendto-sendto", "recvfrom-recvfrom"},
    "sockets-unordered": set(),
}
"""Sets of calls of which some test shares a line."""


@pytest.mark.parametrize("interface", SHARED)
def test_who_shares_lines(target: ScaleFsTarget, interface: str) -> None:
    """Three windows for each order; what collides is another line each time, so a conflict counts if all have it."""
    sets = ["send", "receive", "send,receive", "sendto", "recvfrom", "bind", "close"]
    tests = [test for calls in sets for test in generate(load_interface(interface), calls=calls.split(",")).tests]
    assert len(tests) > 100
    windows, shared = Counter[str](), Counter[str]()
    session = target.sessions(1)[0]
    try:
        for record in session.run([Job(test, order) for test in tests for order in range(len(test.orders))] * 3):
            assert record.wrong is None, (record.job.test.id, record.wrong)
            windows[record.job.test.id] += 1
            shared[record.job.test.id] += bool(record.findings)
    finally:
        session.close()
    conflicting = {test.set_name for test in tests if shared[test.id] == windows[test.id]}
    assert conflicting == SHARED[interface]
