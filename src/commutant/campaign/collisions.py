"""Conflicts of a target with a seed, asked for again under other seeds.

Two names that fall into one bucket share a line that the interface does not ask for. Another seed parts them; a
conflict of the calls themselves stays. So a conflicting test runs again on targets that differ in nothing but their
seed. One that is conflict-free there is *not repeated under other seeds*: it stays conflicting, and the summary tells
how many there are of these, as `collisions`: they may be some, but no one has compared the hashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from commutant.campaign.campaign import Campaign
from commutant.campaign.verdict import Outcome, Verdict
from commutant.corpus import TestCase
from commutant.targets import Target


def ask_other_seeds(
    target: Target, conflicting: Iterable[tuple[TestCase, Verdict]], *, jobs: int, repeats: int, seed: int
) -> list[tuple[TestCase, Verdict]]:
    """The tests with the verdicts that they have once `target.reseeded()` were asked, one after the other.

    A test that is conflict-free under one of them is marked (`collision`). One that dies or is wrong there is that: no
    seed excuses it. Windows and ignored lines of all runs are added up.

    Raises RunError if a target cannot start or go on.
    """
    tests: dict[str, TestCase] = {}
    verdicts: dict[str, Verdict] = {}
    for test, verdict in conflicting:
        tests[test.id], verdicts[test.id] = test, verdict
    for other in target.reseeded():
        left = [test for test in tests.values() if _is_open(verdicts[test.id])]
        if not left:
            break

        def add(test: TestCase, verdict: Verdict, _seconds: float) -> None:
            verdicts[test.id] = _together(verdicts[test.id], verdict)

        try:
            other.start(lambda _: None, max(len(test.calls) for test in left))
            Campaign(left, add, repeats=repeats, seed=seed).run(other.sessions(min(jobs, len(left))))
        finally:
            other.close()
    return [(test, verdicts[test.id]) for test in tests.values()]


def _is_open(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.CONFLICTING and not verdict.collision


def _together(first: Verdict, second: Verdict) -> Verdict:
    """The verdict of two seeds, the first of which showed a conflict."""
    bad = second.outcome in (Outcome.WRONG_RESULT, Outcome.CRASHED)
    return replace(
        second if bad else first,
        windows=first.windows + second.windows,
        ignored=dict(Counter(first.ignored) + Counter(second.ignored)),
        collision=second.outcome is Outcome.CONFLICT_FREE,
    )
