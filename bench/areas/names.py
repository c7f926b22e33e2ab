"""How many shared lines of the paper's 18 calls on Linux have a name, and how alike two campaigns are.

Every tenth test of `posix18` at level `conflict` runs on tmpfs in two campaigns that differ in seed, and so in the
order of the tests. A shared line counts once for each test that has it. It is named if its type and field, its
variable or its kind of memory is known and both call stacks go back to the kernel's entry.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from bench.figure import Figure, Goal
from bench.naming import share_named
from commutant.campaign.campaign import Campaign
from commutant.campaign.verdict import Outcome, Verdict
from commutant.corpus.testcase import TestCase
from commutant.lang import load_interface
from commutant.mtrace.fingerprint import Fingerprint, fingerprint
from commutant.targets.base import Session
from commutant.targets.registry import load_target
from commutant.testgen import generate

TITLE = "Names and stability on Linux"
STRIDE = 10
SEEDS = (1, 2)
CORES = min(2, len(os.sched_getaffinity(0)))


def measure() -> list[Figure]:
    """The share of named lines of each campaign, and what two campaigns have in common."""
    corpus = generate(load_interface("posix18"), None, 2, level="conflict", jobs=CORES)
    tests = corpus.tests[::STRIDE]
    target = load_target("linux:fs=tmpfs")
    try:
        target.start(lambda _doing: None, 2)
        sessions = target.sessions(CORES)
        first, second = (_campaign(tests, sessions, seed) for seed in SEEDS)
    finally:
        target.close()
    named = tuple(
        100 * share_named(finding for verdict in verdicts.values() for finding in verdict.findings)
        for verdicts in (first, second)
    )
    alike = sum(verdict.outcome is second[test].outcome for test, verdict in first.items()) / len(first)
    known = [_fingerprints(tests, verdicts) for verdicts in (first, second)]
    kept = len(known[0] & known[1]) / max(1, len(known[0] | known[1]))
    command = "make bench-names"
    what = f"{len(tests)} tests of posix18 on tmpfs"
    return [
        Figure(f"shared lines with name and both stacks, {what}", "%", named, command, Goal("at_least", 95)),
        Figure(f"verdicts that two campaigns agree on, {what}", "%", (100 * alike,), command, Goal("at_least", 99.5)),
        Figure(f"fingerprints that both campaigns have, {what}", "%", (100 * kept,), command),
    ]


def _campaign(tests: Sequence[TestCase], sessions: Sequence[Session], seed: int) -> Mapping[str, Verdict]:
    verdicts: dict[str, Verdict] = {}

    def judged(test: TestCase, verdict: Verdict, _seconds: float) -> None:
        if verdict.outcome in (Outcome.WRONG_RESULT, Outcome.CRASHED, Outcome.SKIPPED):
            raise RuntimeError(f"{test.id}: {verdict.outcome} {verdict.detail}")
        verdicts[test.id] = verdict

    Campaign(tests, judged, seed=seed).run(sessions)
    assert len(verdicts) == len(tests)
    return verdicts


def _fingerprints(tests: Sequence[TestCase], verdicts: Mapping[str, Verdict]) -> set[Fingerprint]:
    calls = {test.id: [call.call for call in test.calls] for test in tests}
    return {fingerprint(calls[test], finding) for test, verdict in verdicts.items() for finding in verdict.findings}
