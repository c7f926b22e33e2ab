"""The check of the checker, for programs: sharing that is planted in the runner must be found, and nothing else.

The calls are those of crates/checker/program-runner/src/planted.rs, which every runner of programs brings.
"""

from __future__ import annotations

from msgspec.structs import replace

from commutant.corpus import ExpectedOutcome, Order, PlacedCall, TestCase
from commutant.support import RunError
from commutant.targets.base import Job
from commutant.targets.process.session import ProcessSession

_PLANTED_CONFLICT = "count_shared"
_PLANTED_NON_CONFLICT = "count_per_core"
SELF_TEST_CALLS = frozenset({_PLANTED_CONFLICT, _PLANTED_NON_CONFLICT})
"""Calls that are no interface's."""

_PLANTED_NAME = "PLANTED_SHARED_COUNT"
_SELF_TEST_WINDOWS = 4


def planted(call: str) -> TestCase:
    """The test of the self-test in which two cores make a call of that name."""
    outcomes = (ExpectedOutcome((0, 0), ()),)
    test = TestCase(
        id="",
        level="path",
        path=0,
        equivalence_class="planted",
        calls=tuple(PlacedCall(call, {}, 0, core, core) for core in (0, 1)),
        setup=(),
        observe=(),
        orders=(Order((0, 1), outcomes), Order((1, 0), outcomes)),
    )
    return replace(test, id=test.content_id())


def check(session: ProcessSession) -> None:
    """The check of the checker: a planted conflict must be found in every window, with its name and on both cores, and
    a planted non-conflict in none. Raises RunError, with what was expected and what was found."""
    for call, expected in ((_PLANTED_CONFLICT, _PLANTED_NAME), (_PLANTED_NON_CONFLICT, None)):
        test = planted(call)
        jobs = [Job(test, order) for order in range(len(test.orders)) for _ in range(_SELF_TEST_WINDOWS)]
        for record, traced in session.run_traced(jobs):
            if record.wrong or record.crashed or traced is None:
                raise RunError(f"self-test, {call}: {record.wrong or record.crashed}")
            found = [finding.name for finding in record.findings]
            cores = {access.core for finding in record.findings for access in (finding.first, finding.second)}
            if expected is None and found:
                raise _misjudged(call, f"expected no shared line, found {', '.join(found)}")
            if expected is not None and not (len(found) == 1 and expected in found[0] and cores == {0, 1}):
                where = f"{', '.join(found) or 'nothing'} on cores {sorted(cores)}"
                raise _misjudged(call, f"expected the shared line {expected} on cores 0 and 1, found {where}")
            if any(count == 0 for count in traced.counted_accesses[:2]) or len(traced.counted_accesses) < 2:
                raise _misjudged(call, f"expected accesses on two cores, got {list(traced.counted_accesses)}")


def check_judgement(session: ProcessSession) -> None:
    """For programs that no one traces: right results must be accepted, and a planted wrong one noticed. Raises
    RunError, with what was expected and what came."""
    right = planted(_PLANTED_NON_CONFLICT)
    outcomes = (ExpectedOutcome((0, 1), ()),)
    wrong = replace(right, orders=(Order((0, 1), outcomes), Order((1, 0), outcomes)), id="")
    wrong = replace(wrong, id=wrong.content_id())
    for test, is_right in ((right, True), (wrong, False)):
        (record,) = session.run([Job(test, 0)])
        if record.crashed or (record.wrong is None) != is_right:
            expected = "expected acceptable results" if is_right else "expected a planted wrong result to be noticed"
            raise RunError(f"self-test: {expected}, got {record.wrong or record.crashed or 'acceptable ones'}")


def _misjudged(what: str, detail: str) -> RunError:
    return RunError(f"self-test, {what}: {detail}; the tracer cannot be trusted, see `commutant doctor`")
