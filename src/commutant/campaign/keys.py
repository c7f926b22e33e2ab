"""Sharing that the keys decide: how often calls of other keys meet in a line.

A structure that spreads its keys over places by a hash shares a line where two keys fall to one place, or to places in
one line. A window shows that for the keys that it has; of a few windows of one test mostly none does, and which test
shows it depends on the seed. So tests that share nothing for most keys run in many more windows, each with keys that no
window had before, and what comes up is reported once for all of them, with its rate: that is a property of the
structure, and the same for every seed. A test that only looked as if it conflicted, for its few windows had such keys,
is then conflict-free, by the rule of the few windows: one in six may share a line.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

from commutant.campaign.verdict import Outcome, Verdict
from commutant.corpus import TestCase
from commutant.documents import Count, Part
from commutant.mtrace import Sharing
from commutant.targets import Job, Session

WINDOWS_PER_TEST = 128
"""Of tests of which one window in twenty shares a line, one in seven hundred shows none in this many."""

SELDOM = 6
"""Of this many windows one may share a line in a test that is conflict-free: two orders, three windows each."""

_ENOUGH = WINDOWS_PER_TEST // 2
"""Of fewer windows that can be judged nothing follows."""

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


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """What tests share for some keys and not for most, the most often first; `seldom` are the tests of which one window
    in six of each order shared anything, or fewer, and none did anything wrong."""

    rates: tuple[KeyRate, ...]
    seldom: frozenset[str]

    def settled(self, verdict: Verdict) -> Verdict:
        """A verdict that was in doubt, now that keys were asked: what is seldom shared is listed with its rate alone.

        What has no rate is not of the keys: a first use, a table that grew. Then the verdict stays.
        """
        if not is_in_doubt(verdict) or verdict.test_id not in self.seldom:
            return verdict
        listed = {(rate.variable, rate.sharing) for rate in self.rates}
        if any((finding.name, finding.sharing) not in listed for finding in verdict.findings):
            return verdict
        return replace(verdict, outcome=Outcome.CONFLICT_FREE, findings=(), pictures=(), courses=(), collision=False)


def is_in_doubt(verdict: Verdict) -> bool:
    """Whether a test's windows disagreed, or its conflict went away under another seed."""
    return verdict.outcome is Outcome.UNSTABLE or verdict.collision


def ask_other_keys(session: Session, judged: Iterable[tuple[TestCase, Verdict]], window_count: int) -> KeyAnswer:
    """What tests share for some keys and not for most.

    At most `window_count` windows are run, of tests that are in doubt, then of some that are conflict-free. Raises
    RunError if the session cannot go on.
    """
    tests = [one for one in judged if is_in_doubt(one[1]) or one[1].outcome is Outcome.CONFLICT_FREE]
    asked = [test for test, _ in sorted(tests, key=_place)[: max(1, window_count // WINDOWS_PER_TEST)]]
    windows: Counter[str] = Counter()
    by_order: Counter[tuple[str, int]] = Counter()
    sharing: Counter[tuple[str, int]] = Counter()
    wrong: set[str] = set()
    shared: dict[tuple[str, Sharing], Counter[str]] = defaultdict(Counter)
    jobs = (Job(test, number % len(test.orders)) for test in asked for number in range(WINDOWS_PER_TEST))
    while batch := list(islice(jobs, _BATCH)):
        for record in session.run(batch):
            if record.crashed is not None or record.wrong is not None:
                wrong.add(record.job.test.id)
            if {record.crashed, record.wrong, record.unreached, record.unsupported} != {None}:
                continue
            windows[record.job.test.id] += 1
            order = record.job.test.id, record.job.order_index
            by_order[order] += 1
            sharing[order] += bool(record.findings)
            for place in {(finding.name, finding.sharing) for finding in record.findings}:
                shared[place][record.job.test.id] += 1
    rates = [
        KeyRate(name, sharing, len(by_test), sum(windows[test] for test in by_test), sum(by_test.values()))
        for (name, sharing), by_test in shared.items()
        if sum(by_test.values()) > 1
    ]
    often = {test for (test, order), count in by_order.items() if SELDOM * sharing[test, order] > count}
    return KeyAnswer(
        rates=tuple(sorted(rates, key=lambda rate: (-rate.shared / rate.windows, rate.variable, rate.sharing))),
        seldom=frozenset(test for test, count in windows.items() if count >= _ENOUGH) - often - wrong,
    )


def _place(judged: tuple[TestCase, Verdict]) -> tuple[bool, str]:
    """Where in the row a test is asked: what is in doubt first, and then by what ids are a hash of, so that the first
    ones are of all calls."""
    test, verdict = judged
    return not is_in_doubt(verdict), test.id[-12:]
