"""The check of the checker: planted conflicts and planted non-conflicts, before every campaign.

Two calls that share a line by their nature must be found, with its name; two that share nothing must not. If either is
misjudged, by a tracer that mixes up virtual CPUs or misses accesses, nothing else that it says can be believed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from commutant.corpus import ExpectedOutcome, Order, PlacedCall, SetupStep, TestCase, Value
from commutant.support import RunError
from commutant.targets.base import Job
from commutant.targets.linux.session import LinuxSession

_REPEATS = 3
"""Windows per order; the outcome of most of them counts, since a timer may fall into one."""

_COUNTS_RATIO = 4
"""At most this many times more accesses on one core than on the other, where both make the same call."""


@dataclass(frozen=True, slots=True)
class _Plant:
    """A planted test: what it is, and parts of names that must be among the findings (none: no findings at all)."""

    what: str
    test: TestCase
    shared: tuple[str, ...]


def _test(calls: Sequence[tuple[str, Mapping[str, Value], Value]], pipes: int = 0) -> TestCase:
    """A test of two calls, in two threads of one process, that give the same results in both orders.

    The process has a descriptor, from 0, of each of this many pipes.
    """
    results = tuple(result for _, _, result in calls)
    outcomes = (ExpectedOutcome(results, ()),)
    test = TestCase(
        id="",
        level="path",
        path=0,
        equivalence_class="planted",
        calls=tuple(PlacedCall(call, args, 0, core, core) for core, (call, args, _) in enumerate(calls)),
        setup=tuple(step for number in range(pipes) for step in _pipe(number)),
        observe=(),
        orders=(Order((0, 1), outcomes), Order((1, 0), outcomes)),
    )
    return structs.replace(test, id=test.content_id())


def _pipe(number: int) -> list[SetupStep]:
    """A pipe of its own behind a descriptor."""
    return [
        SetupStep("make_pipe", {"pipe": number}, 0, {"sort": "Inum", "id": number}),
        SetupStep("open_pipe", {"fd": number, "pipe": number, "write_end": False}, 0, None),
        SetupStep("forget_pipe", {"pipe": number, "other_readers": False, "other_writers": False}, 0, None),
    ]


def _plants() -> list[_Plant]:
    """What is planted must hold whatever file system is under test: of overlay, fstat itself counts references to the
    credentials of who mounted it. Hence pipes."""

    def fstat(descriptor: int) -> tuple[str, Mapping[str, Value], Value]:
        status = {"struct": {"ino": {"sort": "Inum", "id": descriptor}, "nlink": 1}}
        return "fstat", {"fd": descriptor}, status

    def create(name: str) -> tuple[str, Mapping[str, Value], Value]:
        return "open", {"name": name, "creat": True, "excl": True}, 0

    getppid: tuple[str, Mapping[str, Value], Value] = ("getppid", {}, {"sort": "Pid", "id": 0})
    return [
        _Plant("getppid and getppid", _test([getppid, getppid]), ()),
        _Plant("fstat of two pipes", _test([fstat(0), fstat(1)], pipes=2), ()),
        _Plant("fstat and fstat of one pipe", _test([fstat(0), fstat(0)], pipes=1), ("file.f_count",)),
        _Plant("creation of two names in one directory", _test([create("a"), create("b")]), ("d_lockref", "i_rwsem")),
    ]


def check(session: LinuxSession, *, types: bool = True) -> None:
    """Runs the self-test on a session; raises RunError, with what was expected and what was found.

    Without types objects have no names: then any shared line will do where one is planted.
    """
    for plant in _plants():
        jobs = [Job(plant.test, order) for order in range(len(plant.test.orders)) for _ in range(_REPEATS)]
        missing = dict.fromkeys(plant.shared if types else plant.shared and ("",), 0)
        counted: list[Sequence[int]] = []
        unexpected: dict[str, int] = {}
        for record, traced in session.run_traced(jobs):
            if traced is None or record.wrong:
                raise RunError(f"self-test, {plant.what}: {record.crashed or record.wrong}")
            names = {finding.name for finding in record.findings}
            for part in missing:
                missing[part] += not any(part in name for name in names)
            for name in names:
                unexpected[name] = unexpected.get(name, 0) + 1
            counted.append(traced.counted_accesses)
        _check_counts(plant.what, counted)
        majority = len(jobs) // 2
        found = (
            ", ".join(f"{name} in {count} of {len(jobs)} windows" for name, count in unexpected.items()) or "nothing"
        )
        for part, count in missing.items():
            if count > majority:
                wanted = f"the shared line {part}" if part else "a shared line"
                raise _misjudged(plant.what, f"expected {wanted}, found {found}")
        if not plant.shared and any(count > majority for count in unexpected.values()):
            raise _misjudged(plant.what, f"expected no shared line, found {found}")


def _check_counts(what: str, counted: Sequence[Sequence[int]]) -> None:
    """Both cores made the same call: a tracer that mixes up virtual CPUs gives one of them the other's accesses.

    Medians over the windows are compared: an interrupt in a single window adds to one core's accesses there.
    """
    seen = min(2, *(len(counts) for counts in counted))
    cores = [statistics.median(counts[core] for counts in counted) for core in range(seen)]
    if seen < 2 or min(cores) == 0 or max(cores) > _COUNTS_RATIO * min(cores):
        raise _misjudged(what, f"expected about the same number of accesses on both cores, got {cores}")


def _misjudged(what: str, detail: str) -> RunError:
    return RunError(f"self-test, {what}: {detail}; the tracer cannot be trusted, see `commutant doctor`")
