"""What a tracer counts as shared, by options of every traced target's argument.

`linux:ignore_interrupt=off` switches off an ignoring rule, so that lines that interrupts share count. The rules are
those of docs/reference/trace-format.md. `library:path=x.so,neighbours=on` counts neighbouring lines of an aligned pair
of 128 bytes, too. The self-test runs with all rules and without neighbours, whatever is asked for: its planted
tests are planted against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from commutant import _native
from commutant.support import UsageError

_PREFIX = "ignore_"
_NEIGHBOURS = "neighbours"
COUNTED_OPTIONS = (f"{_NEIGHBOURS}=on", f"{_PREFIX}RULE=off")
"""The forms of these options, for messages."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Ignoring rules that are switched off, and whether neighbouring lines count."""

    rules_off: frozenset[str] = frozenset()
    neighbours: bool = False

    def described(self) -> dict[str, object]:
        """What differs from the usual, for a run's description."""
        told: dict[str, object] = {}
        if self.rules_off:
            told["rules_switched_off"] = sorted(self.rules_off)
        if self.neighbours:
            told[_NEIGHBOURS] = True
        return told


USUAL = Counted()
"""No rule is switched off, and neighbours do not count."""


def take_counted(argument: str, options: Mapping[str, str]) -> tuple[dict[str, str], Counted]:
    """The options without these, and what they ask for; raises UsageError for a rule or value unknown."""
    rest: dict[str, str] = {}
    off = set()
    neighbours = False
    for key, value in options.items():
        rule = key.removeprefix(_PREFIX)
        if key != _NEIGHBOURS and rule == key:
            rest[key] = value
            continue
        if rule != key and rule not in _native.RULES:
            raise UsageError(f"target {argument!r}: unknown rule {rule!r}; expected one of {', '.join(_native.RULES)}")
        if value not in ("on", "off"):
            raise UsageError(f"target {argument!r}: {key}={value}: expected on or off")
        if key == _NEIGHBOURS:
            neighbours = value == "on"
        elif value == "off":
            off.add(rule)
    return rest, Counted(frozenset(off), neighbours)


def tracer_arguments(counted: Counted) -> list[str]:
    """The tracer's arguments for it."""
    return [f"{_PREFIX}{rule}=off" for rule in sorted(counted.rules_off)] + [f"{_NEIGHBOURS}=on"] * counted.neighbours
