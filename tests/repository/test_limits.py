"""Limits that Python and Rust keep to alike."""

from __future__ import annotations

import re

from commutant.support import MAX_CALLS_PER_SET
from tests.repository.tree import ROOT


def test_runners_take_as_many_calls_as_a_set_may_have() -> None:
    """Tests that no target could run were once made: the limit stood in six places."""
    place = (ROOT / "crates/checker/runner/src/place.rs").read_text()
    for constant in ("CORE_LIMIT", "PROCESS_LIMIT"):
        assert re.findall(rf"pub const {constant}: usize = (\d+);", place) == [str(MAX_CALLS_PER_SET)]
