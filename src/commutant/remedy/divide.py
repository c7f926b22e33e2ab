"""Locks of a run, and what would go with one if it were divided, so that calls on different data take different ones.

To leave out a lock's word alone frees little, since what is touched only while it is held stays shared. So dividing a
lock is a change of its own. It is the counterpart of the cause that a report names first: without the lock, the lines
go that follow from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from commutant.mtrace import Finding
from commutant.remedy.places import place_of
from commutant.report import HintKind, kind_of


def locks_in(findings: Iterable[Finding]) -> frozenset[str]:
    """The locks that findings are of or lie under, as places."""
    known = list(findings)
    # Where no field is known, as in a kernel without types, a name says nothing.
    under = {one.under for one in known if one.under and "." in one.under}
    words = {one.name for one in known if one.field and is_lock(one)}
    return frozenset(map(place_of, under | words))


def is_lock(finding: Finding) -> bool:
    """Whether what is shared is a lock's word."""
    return finding.sharing == "true" and kind_of(finding) is HintKind.LOCK


def lock_of(finding: Finding, locks: Collection[str]) -> str:
    """The lock that a finding goes with, as a place; empty if none."""
    under, name = place_of(finding.under), place_of(finding.name)
    if under in locks:
        return under
    return name if finding.sharing == "true" and name in locks else ""
