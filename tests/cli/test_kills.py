"""Twenty kills at random moments; `python -m tests.cli.kills 500 1` makes as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.kills import run_kills


@pytest.mark.long
def test_what_is_killed_leaves_nothing_and_can_go_on(tmp_path: Path) -> None:
    tally = run_kills(20, seed=1, folder=tmp_path)
    assert not tally.faults, "\n".join(tally.faults)
