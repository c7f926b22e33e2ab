"""`try` at length: random commands and random changes of others, drawn bytes that are merged, looks during `--live`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = 10
LOOKS = 100_000
MERGED_PAIRS = 2_000
PAIRS_PER_PART = 2_000
"""More than half of them are refused, so that there are 10,000 that must be."""

pytestmark = pytest.mark.long


@pytest.mark.parametrize("part", range(PARTS))
def test_random_changes_of_others_are_refused_or_do_not_matter(part: int) -> None:
    run_test("random", {"TRY_ROUNDS": str(PAIRS_PER_PART), "TRY_SEED": str(part + 2)})


def test_no_look_during_a_commit_is_torn() -> None:
    run_test("live", {"TRY_LOOKS": str(LOOKS)}, "no_look_is_torn")


def test_drawn_bytes_are_merged_or_refused() -> None:
    run_test("merge", {"TRY_ROUNDS": str(MERGED_PAIRS), "TRY_SEED": "2"}, "drawn_bytes")


def run_test(program: str, environment: dict[str, str], *only: str) -> None:
    command = ["cargo", "test", "--locked", "--offline", "-p", "try-program", "--test", program, *only]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=True)
