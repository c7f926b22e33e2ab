"""`--fail-on transfers>0.1@64`: what must not be at a number of cores."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from commutant.support import UsageError

_GATE = re.compile(r"([a-z_]+)>([^@]+)@([0-9]{1,4})")
MEASURES = ("transfers", "maintenance")


@dataclass(frozen=True, slots=True)
class ScaleGate:
    """More of a measure per operation than this is too much with this number of cores."""

    measure: str
    limit: float
    cores: int

    def __str__(self) -> str:
        """As it is written on the command line."""
        return f"{self.measure}>{self.limit:g}@{self.cores}"


def read_gate(text: str) -> ScaleGate:
    """The gate that a text says; raises UsageError in one line."""
    found = _GATE.fullmatch(text)
    if found is None or found[1] not in MEASURES:
        raise UsageError(f"expected {' or '.join(MEASURES)}, a limit and cores, as transfers>0.1@64, got {text!r:.80}")
    try:
        limit = float(found[2])
    except ValueError:
        limit = math.nan
    if not (math.isfinite(limit) and limit >= 0):
        raise UsageError(f"expected a number from 0 as the limit of {found[1]}, got {found[2]!r:.80}")
    return ScaleGate(found[1], limit, int(found[3]))
