"""How well a finding is named: what kind of name its place has, and whether both call stacks are whole.

A finding without a name tells its reader that something is shared, and no more. `kmalloc-192` or "a page" is no name:
thousands of objects are called so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from commutant.mtrace.finding import Access, Finding


class NameKind(StrEnum):
    """What kind of name a shared place has; of two places that share a line the less telling one's."""

    FIELD = "type.field"
    VARIABLE = "variable"
    PER_CPU = "per-CPU variable"
    STACK = "kernel stack"
    PAGE = "page of known use"
    TYPE = "type without field"
    NAMELESS = "nameless"


NAMED = frozenset(NameKind) - {NameKind.NAMELESS, NameKind.TYPE}
"""The kinds that say which variable or field it is, or what memory that has neither is used for."""

_LEAST_TELLING = (NameKind.NAMELESS, NameKind.TYPE)
_NAMELESS = re.compile(
    r"(?:dma-)?kmalloc-|(?:page|unknown|slab page|slab object|table|vmalloc area|kernel image|per-CPU \(dynamic\)"
    r"|memory without symbol)$"
)
_PAGES = frozenset({"page table", "page cache page", "anonymous page", "user page"})
_ENTRY = re.compile(r"(?:entry_SYSCALL_64|asm_exc_|asm_sysvec_|asm_common_interrupt|ret_from_fork|user code)")
"""Functions at which a kernel's stack ends: nothing in the kernel called them."""


def kind_of_name(finding: Finding) -> NameKind:
    """What kind of name the finding's place has."""
    kinds = [_kind_of_object(place, bool(finding.field)) for place in finding.object.split(" | ")]
    return next((kind for kind in _LEAST_TELLING if kind in kinds), kinds[0])


def _kind_of_object(place: str, has_field: bool) -> NameKind:
    if _NAMELESS.match(place):
        return NameKind.NAMELESS
    if place.startswith("struct "):
        return NameKind.FIELD if has_field or "." in place else NameKind.TYPE
    if place in _PAGES:
        return NameKind.PAGE
    if place == "kernel stack":
        return NameKind.STACK
    return NameKind.PER_CPU if place.startswith("per-CPU ") else NameKind.VARIABLE


def has_whole_stack(access: Access) -> bool:
    """Whether an access's stack goes back to where the kernel was entered, and every frame has a name."""
    named = all(not frame.startswith("0x") for frame in access.stack)
    return named and bool(access.stack) and _ENTRY.match(access.stack[-1]) is not None


def share_named(findings: Iterable[Finding]) -> float:
    """The share of findings, from 0 to 1, that have a name and both stacks whole; 1 without findings.

    A run's findings come once per test that has them, so that each counts as often as a reader meets it.
    """
    counts = Counter(
        kind_of_name(finding) in NAMED and all(map(has_whole_stack, (finding.first, finding.second)))
        for finding in findings
    )
    return counts[True] / counts.total() if counts else 1.0
