"""Causes before symptoms: the shared lines of a test by what they follow from, the one that explains most first.

Lines that both calls touch only while they hold one lock follow from that lock; lines of an object that one call makes
and the other uses follow from that the object is made there; the rest are causes of their own, a variable each. Two
locks of one type and field are two causes: what they are about tells them apart, or the order in which they are taken.
Without the first cause the fewest lines remain. Lines that are shared by their place alone stand apart: to separate the
fields is enough there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from commutant.campaign import Outcome
from commutant.mtrace import Access, Finding
from commutant.report.data import JudgedTest
from commutant.report.groups import has_idle_call
from commutant.report.hints import Hint, HintKind, hint, kind_of
from commutant.report.roles import role, role_by_name
from commutant.support import plural


class CauseKind(StrEnum):
    """Why lines belong together."""

    LOCK = "lock"
    """They are touched only while it is held."""
    MADE = "made"
    """One call makes the object, the other uses it."""
    VARIABLE = "variable"
    """They are the same one."""
    PLACE = "place"
    """Two variables that lie in one line."""
    NEIGHBOURS = "neighbours"
    """Two variables in neighbouring lines, which processors fetch together."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause in a test: its name, the part of its object in the test, the lines that follow from it (its own first,
    where that is shared), how many of the test's lines remain without it, and what to look at."""

    kind: CauseKind
    name: str
    role: str
    lines: tuple[Finding, ...]
    remaining: int
    hint: Hint

    @property
    def title(self) -> str:
        """`the lock struct inode.i_rwsem (the directory)`."""
        name = self.name or "memory without a name"
        words = {
            CauseKind.LOCK: f"the lock {name}",
            CauseKind.MADE: f"{name}, which one call makes and the other uses",
            CauseKind.VARIABLE: f"{name}, only prefetched for writing" if self._is_prefetched else name,
            CauseKind.PLACE: f"{name}, in one line",
            CauseKind.NEIGHBOURS: f"{name}, in neighbouring lines",
        }[self.kind]
        return f"{words} ({self.role})" if self.role else words

    @property
    def sentence(self) -> str:
        """What follows from it and what would remain."""
        count, total = len(self.lines), len(self.lines) + self.remaining
        if not self.remaining:
            return "it is the one shared line" if count == 1 else f"all {count} shared lines follow from it"
        if count == 1:
            follow = "is this one"
        else:
            follow = {
                CauseKind.LOCK: "are touched only while it is held, or are the lock's own",
                CauseKind.MADE: "are of that object",
            }.get(self.kind, "are this one")
        return f"{count} of {plural(total, 'shared line')} {follow}; {self.remaining} would remain without it"

    @property
    def _is_prefetched(self) -> bool:
        """Whether no core writes or takes it: all that is done to it is to prefetch it for writing."""
        return all(_is_prefetched(line) for line in self.lines)

    @property
    def is_known(self) -> bool:
        """Whether more than one line follows from it, or few are shared at all: else it is but one line of many."""
        return len(self.lines) > 1 or self.remaining < _FEW_LINES


_FEW_LINES = 5
"""This many shared lines, each of a cause of its own, can be listed one by one."""

_A_FILE = "a file's inode and names"
_OF_A_FILE = re.compile(r"struct (?:inode|dentry|address_space|\w+_inode_info|jbd2_inode)$")
"""What is made together with a file."""
_MAKERS = frozenset(
    {
        *("alloc_inode", "new_inode", "new_inode_pseudo", "inode_init_always", "inode_init_owner", "__d_alloc"),
        *("alloc_empty_file", "alloc_file", "shmem_get_inode", "shmem_alloc_inode", "__ext4_new_inode"),
        *("ext4_alloc_inode", "vm_area_alloc", "vm_area_dup", "anon_vma_alloc", "mas_alloc_nodes", "alloc_pipe_info"),
    }
)
"""Functions of Linux that make an object and nothing else."""


def causes(judged: JudgedTest) -> list[Cause]:
    """The causes of a test's shared lines: the one first without which the fewest remain."""
    grouped: dict[_Key, list[Finding]] = defaultdict(list)
    known = _known_locks(judged.findings)
    for finding in judged.findings:
        grouped[_key(finding, known)].append(finding)
    taken = Counter((key.name, key.lock.owner) for key in grouped if key.lock)
    failing = has_idle_call(judged.test)
    total = len(judged.findings)

    def cause(key: _Key, lines: Sequence[Finding]) -> Cause:
        own = sorted(lines, key=lambda finding: finding.name != key.name)
        if key.lock:
            part = role_by_name(judged.test, key.name, key.lock.owner)
            if taken[key.name, key.lock.owner] > 1:
                part = f"{part}, {_taken(key.lock.number)}".removeprefix(", ")
        elif own[0].name == key.name or key.kind is CauseKind.MADE:
            part = role(judged.test, own[0])
        else:
            part = ""
        return Cause(key.kind, key.name, part, tuple(own), total - len(own), hint(own[0], failing))

    found = [cause(key, lines) for key, lines in grouped.items()]
    return sorted(found, key=lambda one: (-len(one.lines), one.kind is not CauseKind.LOCK, one.name, one.role))


class _Lock(NamedTuple):
    """Which of several locks of one name: what it is about, and of those that are about the same its place in order."""

    owner: str
    number: int


class _Key(NamedTuple):
    """What lines of one cause have in common."""

    kind: CauseKind
    name: str
    lock: _Lock | None = None


def _known_locks(findings: Iterable[Finding]) -> dict[str, set[_Lock]]:
    """The locks that cover lines, each with those of its name of which a line is shared itself."""
    locks: dict[str, set[_Lock]] = {finding.under: set() for finding in findings if finding.under}
    for finding in findings:
        if not finding.under and _is_one_of(finding, locks):
            locks[finding.name].add(_Lock(finding.owner, finding.lock_number))
    return locks


def _is_one_of(finding: Finding, locks: Container[str]) -> bool:
    """Whether the line is that of one of these locks. Where no field is known, as in a kernel without types, many lines
    have one name, so that it says nothing."""
    return finding.name in locks and (bool(finding.field) or kind_of(finding) is HintKind.LOCK)


def _key(finding: Finding, locks: Mapping[str, set[_Lock]]) -> _Key:
    if finding.under:
        lock = _Lock(finding.under_owner, finding.lock_number)
        shared = locks[finding.under]
        # Runs of earlier versions do not say whose lock it is; where only one of the name is shared, it is that one.
        return _Key(CauseKind.LOCK, finding.under, next(iter(shared)) if not lock.owner and len(shared) == 1 else lock)
    if finding.sharing == "false":
        return _Key(CauseKind.PLACE, finding.name)
    if finding.sharing == "neighbour":
        return _Key(CauseKind.NEIGHBOURS, finding.name)
    lock = _Lock(finding.owner, finding.lock_number)
    if _is_one_of(finding, locks):
        return _Key(CauseKind.LOCK, finding.name, lock)
    if _makes(finding.first) != _makes(finding.second):
        return _Key(CauseKind.MADE, _A_FILE if _OF_A_FILE.match(finding.object) else finding.object)
    if kind_of(finding) is HintKind.LOCK and not _is_prefetched(finding):
        return _Key(CauseKind.LOCK, finding.name, lock)
    return _Key(CauseKind.VARIABLE, finding.name)


def _taken(number: int) -> str:
    words = ("first", "second", "third", "fourth")
    return f"the {words[number]} taken" if number < len(words) else f"taken as number {number + 1}"


def _is_prefetched(finding: Finding) -> bool:
    return finding.first.prefetch and finding.second.prefetch


def _makes(access: Access) -> bool:
    return any(frame.partition("+")[0].partition(".")[0] in _MAKERS for frame in access.stack)


@dataclass(slots=True)
class RunCause:
    """A cause over all tests: in how many it comes first, in how many it has a part, how many of their lines follow
    from it, and an example: of the tests in which it comes first the one in which it explains most."""

    example: Cause
    example_id: str
    first: int = 0
    tests: int = 0
    lines: int = 0
    sets: Counter[tuple[str, ...]] = field(default_factory=Counter)

    @property
    def title(self) -> str:
        """The cause as in its example."""
        return self.example.title


def rank_causes(tests: Iterable[JudgedTest]) -> list[RunCause]:
    """The causes of a run: the one first that comes first in most tests, not counting tests whose cause is not
    known."""
    known: dict[tuple[CauseKind, str, str], RunCause] = {}
    for judged in tests:
        if judged.outcome is not Outcome.CONFLICTING:
            continue
        for place, cause in enumerate(causes(judged)):
            key = (cause.kind, cause.name, cause.role)
            one = known.get(key)
            if one is None:
                one = known[key] = RunCause(cause, judged.test.id)
            one.tests += 1
            one.lines += len(cause.lines)
            if place == 0 and cause.is_known:
                if not one.first or len(cause.lines) > len(one.example.lines):
                    one.example, one.example_id = cause, judged.test.id
                one.first += 1
                one.sets[judged.calls] += 1
    return sorted(known.values(), key=lambda one: (-one.first, -one.lines, one.title))


def cause_json(cause: Cause) -> dict[str, object]:
    """A cause of a test as a JSON object, as `commutant show --as json` has it."""
    return {
        "kind": cause.kind.value,
        "name": cause.name,
        "role": cause.role,
        "lines": len(cause.lines),
        "remaining": cause.remaining,
        "technique": cause.hint.technique.anchor,
        "names": sorted({finding.name for finding in cause.lines}),
    }
