"""Two campaigns over one corpus on Linux, with different seeds and so another order of the tests, say the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.naming import share_named
from commutant.compare import compare_runs
from commutant.lang import load_interface
from commutant.runs import Check
from commutant.runs.content import report_of
from commutant.targets.registry import load_target
from commutant.testgen import generate

pytestmark = pytest.mark.long

LEAST_AGREEMENT = 0.995
LEAST_NAMED = 0.99
MOST_NEW_FINDINGS = 0.05


def test_seed_and_order_change_hardly_a_verdict(tmp_path: Path) -> None:
    jobs = min(2, len(os.sched_getaffinity(0)))
    corpus = generate(load_interface("names"), None, 2, level="conflict", jobs=jobs)
    reports = []
    for seed in (1, 2):
        with Check.new(corpus, load_target("linux"), jobs=jobs, seed=seed, directory=tmp_path / str(seed)) as check:
            check.start(lambda _doing: None)
            reports.append(report_of(check.run()))
    first, second = ({judged.test.id: judged.outcome for judged in report.tests} for report in reports)
    assert first.keys() == second.keys() and len(first) > 1000
    agreed = sum(1 for test, outcome in first.items() if second[test] == outcome)
    comparison = compare_runs(*reports)
    print(
        f"{agreed} of {len(first)} verdicts agree; {len(comparison.appeared)} findings appeared, "
        f"{len(comparison.went)} went, {len(comparison.stayed)} stayed"
    )
    named = [share_named(finding for judged in report.tests for finding in judged.findings) for report in reports]
    assert min(named) >= LEAST_NAMED, named
    assert agreed / len(first) >= LEAST_AGREEMENT
    assert len(comparison.appeared) <= MOST_NEW_FINDINGS * len(comparison.stayed)
