"""What a campaign and its reports keep of a test, in bytes: so few that 100,000 tests stay below 1 GiB."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from commutant.corpus.file import read_corpus, write_corpus
from commutant.runs import Check, lines
from commutant.targets.base import Job, WindowRecord
from tests.campaign.fakes import FakeTarget, make_corpus, make_finding

MOST_BYTES_PER_TEST = 3_000
"""Without the corpus; measured are 1,700. Of 1 GiB each of 100,000 tests has 10,700."""


def _new_findings(job: Job, before: int) -> WindowRecord:
    """A target that builds each finding again, though there are few different ones."""
    return WindowRecord(job, tuple(make_finding(f"field{place}") for place in range(3)))


def _peak_bytes(folder: Path, tests: int) -> int:
    """The most memory that Python's objects take during a check, beyond the corpus."""
    write_corpus(make_corpus(tests), folder / f"{tests}.jsonl.gz")
    corpus = read_corpus(folder / f"{tests}.jsonl.gz")
    tracemalloc.start()
    try:
        with Check.new(corpus, FakeTarget(_new_findings), jobs=2, repeats=1, directory=folder / str(tests)) as check:
            check.start(lambda _: None)
            check.run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_per_test_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a writer held on to of a target that builds each finding again once made it 4,100 bytes."""
    monkeypatch.setattr(lines, "MAX_KNOWN", 64)
    _peak_bytes(tmp_path, 10)  # imports, and what is made once
    few, many = _peak_bytes(tmp_path, 100), _peak_bytes(tmp_path, 500)
    assert many - few < 400 * MOST_BYTES_PER_TEST
