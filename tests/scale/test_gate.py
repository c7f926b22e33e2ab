"""What `--fail-on` understands, and what it refuses."""

from __future__ import annotations

import pytest

from commutant.scale import ScaleGate, read_gate
from commutant.support import UsageError


def test_a_gate_is_a_measure_a_limit_and_cores() -> None:
    assert read_gate("transfers>0.1@64") == ScaleGate("transfers", 0.1, 64)
    assert str(read_gate("maintenance>0@256")) == "maintenance>0@256"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "transfers",
        "transfers>0.1",
        "misses>1@2",
        "transfers>-1@2",
        "transfers>nan@2",
        f"transfers>0.1@{'9' * 5000}",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        read_gate(text)
