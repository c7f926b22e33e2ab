"""`try` at length: random commands and random changes of others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = 10
PAIRS_PER_PART = 2_000
"""More than half of them are refused, so that there are 10,000 that must be."""

pytestmark = pytest.mark.long


@pytest.mark.parametrize("part", range(PARTS))
def test_random_changes_of_others_are_refused_or_do_not_matter(part: int) -> None:
    environment = {**os.environ, "TRY_ROUNDS": str(PAIRS_PER_PART), "TRY_SEED": str(part + 2)}
    command = ["cargo", "test", "--locked", "--offline", "-p", "try-program", "--test", "random"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
