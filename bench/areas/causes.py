"""What causes and the parts of objects take in a campaign on ext4, as a share of its processor time.

Measured within one campaign, so that other work on the machine hardly matters: the time of the thread in the functions
that make causes and parts, for the text and for the page, against that of the whole campaign with its emulator. What
the tracer and the reading of traces do for them is a part of native functions, and not in here: docs/notes/linux.md.
"""

from __future__ import annotations

import io
import resource
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.figure import Figure, Goal
from commutant.lang import load_interface
from commutant.report import print_run, terminal
from commutant.report.page import pack, write
from commutant.runs import Check, report_of
from commutant.targets.registry import load_target
from commutant.testgen import generate

TITLE = "Causes and parts of objects in a campaign"
COMMAND = "make bench-causes"
PARTS = (
    (terminal, "print_first"),
    (pack.Pack, "_explained_of"),
    (pack, "role"),
    (write, "rank_causes"),
    (write, "parallel_calls"),
)
"""Where a function that exists for causes or parts is entered, by its holder and name."""


def measure() -> list[Figure]:
    """The share of `names` on ext4: campaign, verdicts, text and page."""
    clock = _Clock()
    for holder, name in PARTS:
        setattr(holder, name, clock.timed(getattr(holder, name)))
    before = _processor_seconds()
    corpus = generate(load_interface("names"), None, 2, level="conflict", jobs=1)
    with tempfile.TemporaryDirectory() as folder:
        with Check.new(corpus, load_target("linux:fs=ext4"), jobs=1, directory=Path(folder) / "run") as check:
            check.start(lambda _doing: None)
            run = check.run()
        print_run(report_of(run), Console(file=io.StringIO(), width=100))
    whole = _processor_seconds() - before
    assert clock.calls, "no function that was timed ran"
    return [
        Figure("names on ext4, the whole campaign", "s", (whole,), COMMAND),
        Figure("causes and parts, text and page", "s", (clock.seconds,), COMMAND),
        Figure("their share", "%", (100 * clock.seconds / whole,), COMMAND, Goal("at_most", 5)),
    ]


class _Clock:
    """Adds up the time of this thread within functions, of nested ones once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0
        self._depth = 0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def inner(*arguments: Any, **named: Any) -> Any:
            started = time.thread_time()
            self._depth += 1
            try:
                return function(*arguments, **named)
            finally:
                self._depth -= 1
                self.calls += 1
                if not self._depth:
                    self.seconds += time.thread_time() - started

        return inner


def _processor_seconds() -> float:
    """Of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
