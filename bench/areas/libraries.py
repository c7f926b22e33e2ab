"""How many windows per second a library takes, as targets `library` and `gallery` run it: one process, with all names.

The tests of `map` on dashmap are cycled until there are enough windows. Building the adapter and the self-test come
before the clock starts.
"""

from __future__ import annotations

import time

from bench.areas.windows import WindowCounter
from bench.figure import Figure, Goal
from commutant.campaign.campaign import Campaign
from commutant.lang import load_interface
from commutant.targets.registry import load_target
from commutant.testgen import generate

TITLE = "Windows on libraries"
LEAST_WINDOWS = 5000
REPEATS = 3


def measure() -> list[Figure]:
    """Windows per second, of campaigns over at least `LEAST_WINDOWS` each."""
    tests = generate(load_interface("map")).tests
    cycles = 1 + LEAST_WINDOWS // sum(len(test.orders) for test in tests)
    target = load_target("gallery:dashmap")
    rates = []
    try:
        target.start(lambda _doing: None, 2)
        sessions = target.sessions(1)
        for seed in range(REPEATS):
            counter = WindowCounter()
            started = time.monotonic()
            Campaign(list(tests) * cycles, counter.judged, seed=seed).run(sessions, counter.progress)
            rates.append(counter.windows / (time.monotonic() - started))
            assert counter.windows >= LEAST_WINDOWS, counter.windows
    finally:
        target.close()
    command = "make bench-libraries"
    return [
        Figure(
            "dashmap in one process, recorded, named and judged",
            "windows/s",
            tuple(rates),
            command,
            Goal("at_least", 2000),
        )
    ]
