"""Division of unknown integers by constants: quotient and remainder are unknowns that the constraints tie to the whole.

`x // 4`, `x % 4` and `x & mask` stay linear so: `x = 4 * quotient + remainder`, with a remainder from 0 to 3. A mask is
taken apart into runs of ones, each of which is a quotient's remainder.
"""

from __future__ import annotations

from typing import Any

from commutant.support import UsageError
from commutant.symbolic.engine import IntValue, Literal, Term, current

QUOTIENT, REMAINDER = "div", "mod"
"""The functions of SMT-LIB that these unknowns are the values of."""


def divided(value: IntValue, by: Any) -> tuple[Any, Any]:
    """Quotient and remainder, rounded down as in Python; UsageError unless the divisor is a positive number."""
    if not isinstance(by, int) or isinstance(by, bool) or by <= 0:
        raise UsageError(
            f"an unknown integer was divided by {by!r}: expected a positive number, the same on every path"
        )
    if by == 1:
        return value, 0
    context = current()
    quotient = IntValue.variable(context.new_int(_term(QUOTIENT, value, by), None, None))
    remainder = IntValue.variable(context.new_int(_term(REMAINDER, value, by), 0, by - 1))
    rest = value - quotient * by - remainder
    leads_positive = rest.linear[0][0][1] > 0
    context.restrict(Literal("==", (rest if leads_positive else -rest).linear, None))
    return quotient, remainder


def masked(value: IntValue, mask: Any) -> Any:
    """The bits of the mask, as of a number of any length with a sign; UsageError unless the mask is a number."""
    if not isinstance(mask, int) or isinstance(mask, bool) or mask < 0:
        raise UsageError(f"an unknown integer was masked by {mask!r}: expected a number that is not negative")
    total: Any = 0
    position = 0
    while mask >> position:
        if not mask >> position & 1:
            position += 1
            continue
        length = 0
        while mask >> (position + length) & 1:
            length += 1
        shifted = divided(value, 1 << position)[0]
        total = divided(shifted, 1 << length)[1] * (1 << position) + total
        position += length
    return total


def _term(function: str, value: IntValue, by: int) -> Term:
    return ("apply", function, (("linear", value.linear), ("value", by)))
