"""How much each pair of calls weighs: all alike, or as often as a workload makes the calls."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from commutant.support import UsageError

Calls = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mix:
    """How often each call is made, in any unit; without any, all sets of calls weigh alike."""

    shares: Mapping[str, float]

    def weights(self, sets: Collection[Calls]) -> dict[Calls, float]:
        """The weight of each set of calls, all in all 1. Two calls meet as often as each is made, two different ones in
        either role. Raises UsageError if the mix has calls that no set has, or no set has calls of the mix alone."""
        if not self.shares:
            return dict.fromkeys(sets, 1 / len(sets)) if sets else {}
        known = sorted({call for one in sets for call in one})
        unknown = [call for call in self.shares if call not in known]
        if unknown:
            raise UsageError(
                f"--mix: no test of the run whose calls all succeed makes {unknown[0]!r:.60}; expected calls of "
                f"{', '.join(known) or 'a run that has such tests'}"
            )
        most = max(self.shares.values())  # in a unit of one's own, products may leave the range of numbers
        shares = {call: share / most for call, share in self.shares.items()}
        raw = {one: _ways(one) * math.prod(shares.get(call, 0.0) for call in one) for one in sets}
        total = sum(raw.values())
        if not total:
            raise UsageError(
                f"--mix: the run has no tests of {' and '.join(self.shares)} alone; expected calls that meet"
            )
        return {one: weight / total for one, weight in raw.items()}


def read_mix(text: str) -> Mix:
    """The mix that `stat=30,open=20` names; raises UsageError."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        call, equals, number = (piece.strip() for piece in part.partition("="))
        try:
            share = float(number)
        except ValueError:
            share = math.nan
        if not call or not equals or not math.isfinite(share):
            raise UsageError(f"--mix {part!r:.60}: expected CALL=NUMBER, such as stat=30,open=20")
        if share < 0:
            raise UsageError(f"--mix {part!r:.60}: expected no negative number; a call that is not made is left out")
        if call in shares:
            raise UsageError(f"--mix names {call!r:.60} twice; expected each call once")
        shares[call] = share
    if not sum(shares.values()) > 0:
        raise UsageError(f"--mix {text!r:.60}: sums to nothing; expected a number above 0, such as stat=30,open=20")
    return Mix(shares)


def _ways(calls: Calls) -> int:
    """In how many ways the calls fall to as many cores."""
    return math.factorial(len(calls)) // math.prod(math.factorial(count) for count in Counter(calls).values())
