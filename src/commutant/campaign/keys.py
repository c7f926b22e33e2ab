"""Sharing that the keys decide: how often calls of other keys meet in a line.

A structure that spreads its keys over places by a hash shares a line where two keys fall to one place, or to places in
one line. A window shows that for the keys that it has; of a few windows of one test mostly none does, and which test
shows it depends on the seed. So tests that share nothing for most keys run in many more windows, each with keys that no
window had before, and what comes up is told once for all of them, with its rate: that is a property of the structure,
and the same for every seed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from commutant.campaign.verdict import Outcome, Verdict
from commutant.corpus import TestCase
from commutant.documents import Count, Part
from commutant.mtrace import Sharing
from commutant.targets import Job, Session

WINDOWS_PER_TEST = 128
"""Of tests of which one window in twenty shares a line, one in seven hundred shows none in so many."""

_BATCH = 1024


class KeyRate(Part, frozen=True):
    """What keys share: a variable, in `shared` of `windows` windows of those `tests` that ever shared it."""

    variable: str
    sharing: Sharing
    tests: Count
    windows: Count
    shared: Count

    def __post_init__(self) -> None:
        """Refuses more windows that share than there are, and a rate of none."""
        if not self.shared <= self.windows or self.windows == 0:
            raise ValueError(f"{self.shared} of {self.windows} windows")


def ask_other_keys(
    session: Session, judged: Iterable[tuple[TestCase, Verdict]], window_count: int
) -> tuple[KeyRate, ...]:
    """What tests share for some keys and not for most, the most often first.

    At most `window_count` windows are run, of tests that are conflict-free, or that one set of keys showed as sharing.
    Raises RunError if the session cannot go on.
    """
    tests = [test for test, verdict in judged if _is_asked(verdict)]
    asked = [test for _, test in zip(range(max(1, window_count // WINDOWS_PER_TEST)), _spread(tests), strict=False)]
    windows: Counter[str] = Counter()
    shared: dict[tuple[str, Sharing], Counter[str]] = defaultdict(Counter)
    jobs = (Job(test, number % len(test.orders)) for test in asked for number in range(WINDOWS_PER_TEST))
    while batch := list(islice(jobs, _BATCH)):
        for record in session.run(batch):
            if record.crashed is not None or record.wrong is not None or record.unreached is not None:
                continue
            windows[record.job.test.id] += 1
            for place in {(finding.name, finding.sharing) for finding in record.findings}:
                shared[place][record.job.test.id] += 1
    rates = [
        KeyRate(name, sharing, len(by_test), sum(windows[test] for test in by_test), sum(by_test.values()))
        for (name, sharing), by_test in shared.items()
        if sum(by_test.values()) > 1
    ]
    return tuple(sorted(rates, key=lambda rate: (-rate.shared / rate.windows, rate.variable, rate.sharing)))


def _is_asked(verdict: Verdict) -> bool:
    return verdict.outcome in (Outcome.CONFLICT_FREE, Outcome.UNSTABLE) or verdict.collision


def _spread(tests: Sequence[TestCase]) -> Iterator[TestCase]:
    """The tests, sorted by what their ids are a hash of, so that the first of them are of all calls."""
    yield from sorted(tests, key=lambda test: test.id[-12:])
