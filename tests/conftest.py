"""For all tests: signals do what they do in a terminal, no property has a time in which it must be checked, and lanes.

A shell starts what runs in its background with SIGINT ignored, and nohup does so with SIGHUP; children inherit that,
and rightly leave such signals ignored. Tests that send them to children need the default.

How long an example takes, to be drawn or to be checked, says more of what else the machine does than of the code.

`--lane` chooses by measured time (scripts/lanes.py); `--seconds FILE` writes the processor time of each test.
"""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import lanes

settings.register_profile("commutant", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("commutant")

_SECONDS: dict[str, float] = {}
"""Processor time of each test, with that of the children that it waited for."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two options that `make test` gives."""
    parser.addoption("--lane", choices=["quick", "whole"], help="only tests of this lane (scripts/lanes.py)")
    parser.addoption("--seconds", type=Path, metavar="FILE", help="write the processor time of each test as JSON")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests of the lane that was asked for."""
    lane = config.getoption("--lane")
    if lane is None:
        return
    slow = lanes.Seconds.kept().slow
    chosen = [item for item in items if lanes.lane_of(item.nodeid, slow) == lane]
    left = set(map(id, items)) - set(map(id, chosen))
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left])
    items[:] = chosen


def _processor_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measures set-up, call and end of one test."""
    before = _processor_seconds()
    result = yield
    _SECONDS[item.nodeid] = round(_processor_seconds() - before, 3)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes what was measured, if it was asked for."""
    file = session.config.getoption("--seconds")
    if file is not None:
        file.write_text(json.dumps(_SECONDS), encoding="utf-8")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
