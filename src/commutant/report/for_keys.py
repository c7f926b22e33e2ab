"""What calls share for some keys and not for most: the rates of a summary, and what parts the keys."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import convert

from commutant.campaign import KeyRate
from commutant.support import plural


def key_rates(summary: Mapping[str, object]) -> list[KeyRate]:
    """The rates of a `summary.json`, the most often first; none of a run that did not ask."""
    rates = summary.get("keys")
    if not isinstance(rates, list | tuple):
        return []
    return [convert(rate, KeyRate) if isinstance(rate, Mapping) else rate for rate in rates]


def how_often(rate: KeyRate) -> str:
    """`in 4.8 % of 2,560 windows with keys of their own, of 20 tests`."""
    share = f"{100 * rate.shared / rate.windows:.1f} %"
    return f"in {share} of {plural(rate.windows, 'window')} with keys of their own, of {plural(rate.tests, 'test')}"


def spreading_of(rate: KeyRate) -> str:
    """`spread the entries of struct counters.shards, each on a line of its own`: where keys fall to entries of an array
    that lie in one line. Empty if that is not so."""
    array, is_array, _ = rate.variable.partition("[]")
    return f"spread the entries of {array}, each on a line of its own" if is_array and rate.sharing == "false" else ""
