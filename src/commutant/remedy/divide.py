"""Dividing a lock: what a run's tests would no longer share if a lock, and all that is touched only while it is held,
were divided, so that calls on different data take different ones.

To leave out a lock's word alone frees little, since what lies under it stays shared. So this is a remedy of its own,
and the counterpart of the cause that a report names first: without the lock, the lines go that follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from commutant.campaign import Outcome, Verdict
from commutant.mtrace import Finding
from commutant.report import HintKind, kind_of
from commutant.support import plural, safe_text

_SHARED = (Outcome.CONFLICTING, Outcome.UNSTABLE)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class DividedLock:
    """A lock: the tests that share it or what lies under it, and those of them that share nothing else."""

    name: str
    tests: frozenset[str]
    freed: frozenset[str]

    def __str__(self) -> str:
        """The remedy in words."""
        return f"divide the lock {self.name}, with all that is touched under it"


def divided_locks(verdicts: Iterable[Verdict]) -> list[DividedLock]:
    """The locks of a run, the one first that would free most tests; those alone that free some."""
    shared = [verdict for verdict in verdicts if verdict.outcome in _SHARED]
    findings = {id(finding): finding for verdict in shared for finding in verdict.findings}
    # Where no field is known, as in a kernel without types, a name says nothing.
    locks = {one.under for one in findings.values() if one.under and "." in one.under}
    locks |= {one.name for one in findings.values() if one.field and is_lock(one)}
    tests: dict[str, set[str]] = {lock: set() for lock in locks}
    freed: dict[str, set[str]] = {lock: set() for lock in locks}
    for verdict in shared:
        of = {lock_of(finding, locks) for finding in verdict.findings}
        for lock in of - {""}:
            tests[lock].add(verdict.test_id)
            if len(of) == 1:
                freed[lock].add(verdict.test_id)
    found = [DividedLock(lock, frozenset(tests[lock]), frozenset(freed[lock])) for lock in locks if freed[lock]]
    return sorted(found, key=lambda one: (-len(one.freed), -len(one.tests), one.name))


def is_lock(finding: Finding) -> bool:
    """Whether what is shared is a lock's word."""
    return finding.sharing == "true" and kind_of(finding) is HintKind.LOCK


def lock_of(finding: Finding, locks: Iterable[str]) -> str:
    """The lock that a finding goes with; empty if none."""
    if finding.under in locks:
        return finding.under
    return finding.name if finding.sharing == "true" and finding.name in locks else ""


def print_divided(locks: Sequence[DividedLock], console: Console) -> None:
    """Prints the locks that free most, above the changes of single places."""
    for lock in locks[:_SHOWN]:
        share = f"frees {plural(len(lock.freed), 'test')} of {len(lock.tests):,} with it or what lies under it"
        console.print(Text(safe_text(str(lock)), style="bold").append(f": {share}", "not bold"), soft_wrap=True)
    if locks:
        more = f"; {len(locks) - _SHOWN:,} more locks free some" if len(locks) > _SHOWN else ""
        console.print(Text(f"The changes below leave locks as they are{more}.", style="dim"), soft_wrap=True)
        console.print()
