"""Compares two interfaces: all sets of calls that correspond, and what each changed call has to do with the outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from commutant.analyzer import check_correspondence, sets_of_calls
from commutant.gains.correspondence import SameCode, corresponding_calls
from commutant.gains.documents import (
    CallChangeEntry,
    ChangedEntry,
    CompareDocument,
    ComparedSetEntry,
    ExampleEntry,
)
from commutant.gains.situations import ChangedSituation, compare_set
from commutant.lang import Interface, model_hash
from commutant.pool import ModelReference, map_in_processes
from commutant.support import OnProgress, UsageError, no_progress, plural


class _Work(NamedTuple):
    first: ModelReference
    second: ModelReference
    calls: tuple[str, ...]
    calls_of_second: tuple[str, ...]


@dataclass(frozen=True)
class InterfaceComparison:
    """What came of a comparison: its document, and the two interfaces."""

    first: type[Interface]
    second: type[Interface]
    document: CompareDocument


def compare_interfaces(
    first: type[Interface],
    second: type[Interface],
    calls: Sequence[str] | None = None,
    size: int = 2,
    *,
    with_self: bool = False,
    declared: Mapping[str, str] | None = None,
    jobs: int = 1,
    on_progress: OnProgress = no_progress,
) -> InterfaceComparison:
    """Explores every set of `size` calls of the first interface together with the calls of the second that correspond.

    `calls` are those of the first interface, as for `analyze`; `declared` names calls of the second that stand for
    others, `{"fstatx": "fstat"}`. Raises UsageError for one interface given twice, for interfaces without a common
    call, and for calls or attributes that are declared unlike.
    """
    if first is second or _is_one(first, second):
        raise UsageError(f"{first.interface_name} was given twice: expected two interfaces, or two versions of one")
    started = time.perf_counter()
    correspond = corresponding_calls(first, second, declared)
    check_correspondence(first, second, correspond)
    same = SameCode(first, second)
    chosen = [
        one for one in sets_of_calls(first, calls, size, with_self=with_self) if all(call in correspond for call in one)
    ]
    if not chosen:
        raise UsageError(
            f"no set of the calls {', '.join(calls or ())} has its like in {second.interface_name}: it has "
            f"{', '.join(correspond.values())}"
        )
    theirs = [tuple(correspond[call] for call in one) for one in chosen]
    changed = {call: not same.of(call, other) for call, other in correspond.items()}
    work = [
        _Work(ModelReference(first), ModelReference(second), one, other)
        for one, other in zip(chosen, theirs, strict=True)
        if any(changed[call] for call in one)
    ]
    found = iter(map_in_processes(_compare, work, jobs, on_progress, name=lambda piece: ", ".join(piece.calls)))
    sets = tuple(
        next(found) if any(changed[call] for call in one) else ComparedSetEntry(one, other, True, 0, 0, None, None)
        for one, other in zip(chosen, theirs, strict=True)
    )
    entries = [entry for one in sets for entry in (one.gained, one.lost) if entry is not None]
    document = CompareDocument(
        first.interface_name,
        second.interface_name,
        size,
        round(time.perf_counter() - started, 3),
        sum(one.gained.situations for one in sets if one.gained),
        sum(one.lost.situations for one in sets if one.lost),
        sum(entry.situations - entry.confirmed for entry in entries),
        tuple(call for call in first.call_names() if call not in correspond),
        tuple(call for call in second.call_names() if call not in correspond.values()),
        sets,
        tuple(
            _of_call(call, correspond[call], changed, sets, _own(first, second, call, correspond[call]))
            for call in correspond
            if changed[call]
        ),
    )
    return InterfaceComparison(first, second, document)


def _is_one(first: type[Interface], second: type[Interface]) -> bool:
    """Whether two classes come from one text."""
    return first.__qualname__ == second.__qualname__ and model_hash(first) == model_hash(second)


def _own(first: type[Interface], second: type[Interface], call: str, other: str) -> tuple[str, ...]:
    known = first.signature(call).parameters
    return tuple(name for name in second.signature(other).parameters if name not in known)


def _compare(work: _Work) -> ComparedSetEntry:
    one = compare_set(work.first.model, work.second.model, work.calls, work.calls_of_second)
    return ComparedSetEntry(
        work.calls,
        work.calls_of_second,
        False,
        one.refused,
        one.commuting,
        _changed(one.gained, one.own_parameters),
        _changed(one.lost, ()),
    )


def _changed(changes: Sequence[ChangedSituation], own: Sequence[str]) -> ChangedEntry | None:
    if not changes:
        return None
    smallest = min(changes, key=lambda change: (not change.confirmed, change.example.size))
    fewest = sorted({text for change in changes for text in change.parameters})
    wholly = sum(change.wholly for change in changes)
    return ChangedEntry(
        len(changes),
        wholly,
        len(changes) - wholly,
        tuple(fewest or own),
        sum(change.confirmed for change in changes),
        ExampleEntry(str(smallest.example.first), str(smallest.example.second), smallest.confirmed),
    )


def _of_call(
    call: str, other: str, changed: Mapping[str, bool], sets: Sequence[ComparedSetEntry], own: tuple[str, ...]
) -> CallChangeEntry:
    counts = {"gained": [0, 0], "lost": [0, 0]}
    for one in sets:
        if call in one.calls:
            with_others = any(changed[name] for name in one.calls if name != call)
            for kind, entry in (("gained", one.gained), ("lost", one.lost)):
                counts[kind][with_others] += 0 if entry is None else entry.situations
    return CallChangeEntry(call, other, own, *counts["gained"], *counts["lost"])


def comparison_lines(document: CompareDocument, *, per_change: bool = False) -> list[str]:
    """The comparison as text."""
    lines = []
    for one in document.sets:
        for kind, entry in (("gained", one.gained), ("lost", one.lost)):
            if entry is None:
                continue
            of = one.refused if kind == "gained" else one.commuting
            part = f", {entry.in_part} of them in part" if entry.in_part else ""
            with_ = f" (with {', '.join(entry.parameters)})" if entry.parameters else ""
            lines.append(f"{_both(one.calls, one.calls_of_second)}: {entry.situations} of {of} {kind}{part}{with_}")
            lines += [f"    {document.first}: {entry.example.first}", f"    {document.second}: {entry.example.second}"]
            if not entry.example.confirmed:
                lines.append("    concrete runs of the two models do not show it")
    if lines:
        lines.append("")
    if per_change:
        lines += _change_lines(document)
    same = sum(one.same for one in document.sets)
    explored = [one for one in document.sets if not one.same]
    refused = sum(one.refused for one in explored)
    lines.append(
        f"{document.second} gains {document.gained} of the {plural(refused, 'situation')} in which calls of "
        f"{document.first} do not commute, and loses {document.lost}, in {plural(len(explored), 'set')} of calls that "
        f"changed; {plural(same, 'set is', 'sets are')} the same in both"
    )
    for interface, names in ((document.first, document.only_first), (document.second, document.only_second)):
        if names:
            lines.append(f"only in {interface}: {', '.join(names)}")
    if document.unconfirmed:
        lines.append(f"{document.unconfirmed} of these were not confirmed by runs of both models")
    return lines


def _change_lines(document: CompareDocument) -> list[str]:
    lines = []
    for change in document.changes:
        if not (change.parameters or change.gained_alone or change.lost_alone):
            continue  # its code differs, and nothing shows
        own = f" with {', '.join(change.parameters)}" if change.parameters else ""
        lines.append(
            f"{_both((change.call,), (change.call_of_second,))}{own}: gains {change.gained_alone} alone and "
            f"{change.gained_with_others} with other changed calls; loses {change.lost_alone} and "
            f"{change.lost_with_others}"
        )
    return [*lines, ""] if lines else []


def _both(calls: Sequence[str], others: Sequence[str]) -> str:
    return ", ".join(one if one == other else f"{one} ({other})" for one, other in zip(calls, others, strict=True))
