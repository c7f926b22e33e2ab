"""The document of `report --format json`, declared once; comparisons and remedies use its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict

from commutant.campaign import Summary
from commutant.corpus import SetOfCalls
from commutant.documents import Count, Part
from commutant.mtrace import DIGEST_CHARACTERS, Finding, Sharing
from commutant.report.causes import CauseKind, RunCause, rank_causes
from commutant.report.data import JudgedTest
from commutant.report.groups import FindingGroup
from commutant.report.hints import HintKind, Technique
from commutant.report.parallel import ParallelCall, parallel_calls
from commutant.report.ranking import FUNCTIONS_SHOWN, SharedVariable, rank_shared

Some = Annotated[int, Meta(ge=1)]
"""A number of things of which there is at least one."""

TechniqueAnchor = Annotated[str, Meta(extra_json_schema={"enum": [one.anchor for one in Technique]})]
"""A section of docs/guides/patterns.md: what to look at first."""


class NamedCount(Part, frozen=True):
    """A variable, and how many tests share it."""

    name: str
    tests: Some


class GroupEntry(Finding, frozen=True, kw_only=True):
    """All findings of one fingerprint, which is the same for another build, boot or run.

    Line, object, field, accesses, fields and touched are those of the first that came. `calls` are sorted; so are
    `functions`, the two that met there, without what a compiler adds to names. `accepted` is the reason of the
    suppression that accepts it. `new` says whether the run that was compared with never saw it; absent without one.
    `former` says what a finding was there that only moved: another variable in the same functions, or the other way.
    """

    fingerprint: Annotated[str, Meta(pattern=rf"^[0-9a-f]{{{DIGEST_CHARACTERS}}}$")]
    calls: SetOfCalls
    functions: tuple[str, str]
    kind: HintKind
    technique: TechniqueAnchor
    tests: Annotated[Count, Meta(description="Tests in which it stands.")]
    examples: Annotated[tuple[str, ...], Meta(description="Ids of some of them.")]
    accepted: str | None
    new: bool | UnsetType = UNSET
    former: str | UnsetType = UNSET


class RunCauseEntry(Part, frozen=True):
    """A cause of shared lines, over all tests of a run.

    Its lines are touched only while a lock is held; or of an object that one call makes and the other uses; or of one
    variable; or of two variables in one line; or of two variables in neighbouring lines. `role` is the object's part in
    the test, such as 'the directory'; empty where it is not known.
    """

    kind: CauseKind
    name: str
    role: str
    first: Annotated[Count, Meta(description="Tests in which it is the cause without which the fewest lines remain.")]
    tests: Annotated[Count, Meta(description="Tests in which lines follow from it.")]
    lines: Annotated[Count, Meta(description="Lines that follow from it, over all tests.")]
    technique: TechniqueAnchor
    sets: tuple[SetOfCalls, ...]
    example: Annotated[str, Meta(description="The test in which it explains most.")]


class ParallelCallEntry(Part, frozen=True):
    """A call with itself, and what most of its shared lines follow from: null where none has a cause.

    `call` has the flags that it sets, such as `open(creat)`. `role` is the part of the cause's object in the tests.
    """

    call: str
    tests: Some
    conflicting: Annotated[Some, Meta(description="Tests that share memory.")]
    lines: Annotated[Count, Meta(description="Their shared lines, added up.")]
    explained: Annotated[Count, Meta(description="Lines of these that follow from the cause.")]
    name: str | None
    role: str | None
    technique: TechniqueAnchor | None
    example: Annotated[str | None, Meta(description="The test in which it explains most.")]


class SharedEntry(Part, frozen=True):
    """A variable that keeps tests from being conflict-free."""

    name: str
    tests: Count
    only: Annotated[Count, Meta(description="Tests in which nothing else was shared.")]
    sets: Annotated[Count, Meta(description="Sets of calls with such a test.")]
    sharing: Literal[Sharing, "both"]
    functions: Annotated[tuple[str, ...], Meta(description="The functions that touch it most often.")]
    line_in_use: Annotated[str, Meta(description="What else of its line is in use, mostly; empty if nothing is.")]


class ReportDocument(Summary, frozen=True, kw_only=True, tag_field="schema_version", tag=1):
    """The summary, whether the run is complete, what to fix first, the variables that break most tests, and all
    findings by fingerprint.

    `first` are causes of shared lines, the one that comes first in most tests before the others; `parallel` each call
    with itself that shares memory, the one with most such tests first.
    """

    complete: bool
    first: tuple[RunCauseEntry, ...]
    parallel: tuple[ParallelCallEntry, ...]
    most_shared: tuple[SharedEntry, ...]
    findings: tuple[GroupEntry, ...]


def report_document(
    summary: Summary, tests: Sequence[JudgedTest], groups: Iterable[FindingGroup], *, complete: bool, limit: int
) -> ReportDocument:
    """A run with its findings; of causes and of variables the first `limit`."""
    return ReportDocument(
        **asdict(summary),
        complete=complete,
        first=tuple(map(_run_cause, rank_causes(tests)[:limit])),
        parallel=tuple(map(_parallel_call, parallel_calls(tests))),
        most_shared=tuple(map(_shared, rank_shared(tests)[:limit])),
        findings=group_entries(groups),
    )


def group_entries(groups: Iterable[FindingGroup]) -> tuple[GroupEntry, ...]:
    """The groups as documents have them."""
    return tuple(map(_group, groups))


def _group(group: FindingGroup) -> GroupEntry:
    mark, advice = group.fingerprint, group.hint
    return GroupEntry(
        **asdict(group.example),
        fingerprint=mark.digest,
        calls=mark.calls,
        functions=mark.functions,
        kind=advice.kind,
        technique=advice.technique.anchor,
        tests=group.tests,
        examples=tuple(group.examples),
        accepted=group.accepted or None,
        new=UNSET if group.is_new is None else group.is_new,
        former=UNSET if group.former is None else group.former.place,
    )


def _run_cause(cause: RunCause) -> RunCauseEntry:
    example = cause.example
    return RunCauseEntry(
        kind=example.kind,
        name=example.name,
        role=example.role,
        first=cause.first,
        tests=cause.tests,
        lines=cause.lines,
        technique=example.hint.technique.anchor,
        sets=tuple(calls for calls, _ in cause.sets.most_common()),
        example=cause.example_id,
    )


def _shared(variable: SharedVariable) -> SharedEntry:
    return SharedEntry(
        name=variable.name,
        tests=variable.tests,
        only=variable.only,
        sets=variable.sets,
        sharing=variable.sharing,
        functions=variable.functions[:FUNCTIONS_SHOWN],
        line_in_use=variable.line_in_use,
    )


def _parallel_call(one: ParallelCall) -> ParallelCallEntry:
    first = one.first
    return ParallelCallEntry(
        call=one.call,
        tests=one.tests,
        conflicting=one.conflicting,
        lines=one.lines,
        explained=one.explained,
        name=first.name if first else None,
        role=first.role if first else None,
        technique=first.hint.technique.anchor if first else None,
        example=one.example_id or None,
    )
