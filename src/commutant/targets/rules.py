"""Ignoring rules that a target argument switches off: `linux:ignore_interrupt=off` counts lines that interrupts share.

The rules are those of docs/reference/trace-format.md. The self-test runs with all of them, whatever is asked for:
its planted tests are planted against them.
"""

from __future__ import annotations

from collections.abc import Mapping

from commutant import _native
from commutant.support import UsageError

_PREFIX = "ignore_"
RULE_OPTION = f"{_PREFIX}RULE=off"
"""The form of these options, for messages."""

ALL_RULES: frozenset[str] = frozenset()
"""No rule is switched off."""


def take_rules_off(argument: str, options: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """The options without those on rules, and the rules that are off; raises UsageError for a rule or value unknown."""
    rest: dict[str, str] = {}
    off = set()
    for key, value in options.items():
        if not key.startswith(_PREFIX):
            rest[key] = value
            continue
        rule = key.removeprefix(_PREFIX)
        if rule not in _native.RULES:
            raise UsageError(f"target {argument!r}: unknown rule {rule!r}; expected one of {', '.join(_native.RULES)}")
        if value not in ("on", "off"):
            raise UsageError(f"target {argument!r}: {key}={value}: expected on or off")
        if value == "off":
            off.add(rule)
    return rest, frozenset(off)


def tracer_arguments(rules_off: frozenset[str]) -> list[str]:
    """The tracer's arguments that switch the rules off."""
    return [f"{_PREFIX}{rule}=off" for rule in sorted(rules_off)]
