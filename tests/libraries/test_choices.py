"""Choices that a model leaves open: an implementation that makes others than the test is right, and one that returns
what no one put in is wrong, in a sequence as short as others are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from commutant.api import check, conform
from commutant.campaign import Outcome
from tests.libraries.building import build
from tests.libraries.job_queue import JobQueue

LEASES = ("0", "count-1", "count/2", "queue->next%count", "(queue->leased*3+1)%count")
BACKS = ("count", "0", "count/2", "job.number%(count+1)")
"""Which job is leased, and where one goes that is given back: twenty queues, all right."""


def queue(folder: Path, *macros: str) -> str:
    return f"library:path={build(folder, 'queue', 'job_queue.c', extra=[f'-D{macro}' for macro in macros])}"


@pytest.fixture(scope="module")
def corpus() -> object:
    from commutant.api import generate

    return generate(JobQueue, cache=False)


def test_the_last_job_first_is_right_and_its_tests_are_not_reached(corpus: object, tmp_path: Path) -> None:
    found = check(corpus, target=queue(tmp_path, "LEASE=count-1"), directory=tmp_path / "run")  # type: ignore[arg-type]
    summary = found.summary
    assert (summary.wrong_result, summary.crashed) == (0, 0)
    assert summary.unreached == summary.skipped == 6
    details = {one.detail for one in found.run.verdicts() if one.outcome is Outcome.SKIPPED}
    assert details == {"set-up not reached: set-up 2, lease(): returned Job 14, which is allowed and leads elsewhere"}
    assert "6 skipped; 6 of them with a set-up that the target led elsewhere, as the model allows" in str(found)


def test_a_set_up_that_leads_there_is_judged(corpus: object, tmp_path: Path) -> None:
    found = check(corpus, target=queue(tmp_path), directory=tmp_path / "run")  # type: ignore[arg-type]
    assert (found.summary.wrong_result, found.summary.skipped) == (0, 0)


def test_what_nobody_put_in_is_a_difference_with_its_call(tmp_path: Path) -> None:
    target = queue(tmp_path, "FAULT=1")
    answer = conform(JobQueue, target=target, sequences=500, jobs=1)
    (difference,) = answer.conformance.differences
    calls = [call.name for call in difference.shrunk.sequence.calls]
    assert calls == ["submit", "lease", "nack", "lease"] or calls == ["submit", "lease", "nack", "lease", "payload"]
    assert "which no call was given" in str(answer) and "payload(" in str(answer)


def queues(chosen: Sequence[tuple[str, str]]) -> object:
    return pytest.mark.parametrize(("lease", "back"), chosen)


@pytest.mark.long
@queues(list(itertools.product(LEASES, BACKS)))
def test_twenty_right_queues_have_no_wrong_result(corpus: object, tmp_path: Path, lease: str, back: str) -> None:
    target = queue(tmp_path, f"LEASE=({lease})", f"BACK=({back})")
    found = check(corpus, target=target, directory=tmp_path / "run")  # type: ignore[arg-type]
    assert (found.summary.wrong_result, found.summary.crashed) == (0, 0)
    assert conform(JobQueue, target=target, sequences=300, jobs=1)
