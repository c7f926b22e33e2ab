"""Findings that only moved: a test shared the same before, where now a function or a variable has another name.

In one test, a finding of NEW that BASE does not know has a former one if that one went from the test, and has the same
variable (a function was renamed, or its work is done in another one) or the same two functions (a field has another
name, or other neighbours). `prove` and `history` say moved of the same. A finding moved if it has a former one in every
test that both runs judged: one test without makes it new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from commutant.compare.known import Known
from commutant.mtrace import Finding, Fingerprint
from commutant.report import FindingGroup, FingerprintTable, JudgedTest


@dataclass(frozen=True, slots=True)
class Moved:
    """Findings of NEW, each with the name and functions that it had in BASE; `left` are those of BASE that became them
    in every test that had them."""

    former: Mapping[Fingerprint, Fingerprint]
    left: frozenset[Fingerprint]


def find_moved(base: Iterable[JudgedTest], new: Iterable[JudgedTest]) -> Moved:
    """What moved from BASE to NEW, in the tests that both have."""
    marks = FingerprintTable()
    old = {judged.test.id: judged for judged in base}
    former: dict[Fingerprint, Fingerprint] = {}
    stays_new: set[Fingerprint] = set()
    left: set[Fingerprint] = set()
    went: set[Fingerprint] = set()
    for after in new:
        before = old.get(after.test.id)
        if before is None:
            continue
        was = {marks.of(before.calls, finding): finding for finding in before.findings}
        now = {marks.of(after.calls, finding): finding for finding in after.findings}
        gone = [mark for mark in was if mark not in now]
        matched: set[Fingerprint] = set()
        for mark in now.keys() - was.keys():
            sources = [one for one in gone if _is_same(one, mark, was[one], now[mark])]
            matched.update(sources)
            if sources:
                former.setdefault(mark, sources[0])
            else:
                stays_new.add(mark)
        left |= matched
        went.update(mark for mark in gone if mark not in matched)
    return Moved({mark: one for mark, one in former.items() if mark not in stays_new}, frozenset(left - went))


def mark_new(group: FindingGroup, known: Known, *moves: Moved) -> None:
    """Says of a group whether it is new: neither known nor moved; and what it was, where it moved."""
    group.is_new, group.former = not known.has(group), None
    if group.is_new:
        group.former = next((one.former[group.fingerprint] for one in moves if group.fingerprint in one.former), None)
        group.is_new = group.former is None


def _is_same(was: Fingerprint, now: Fingerprint, before: Finding, after: Finding) -> bool:
    """Whether one may be the other under another name: the same kind of sharing of one variable, or in one place."""
    if before.sharing != after.sharing:
        return False
    return was.variable == now.variable or was.functions == now.functions
