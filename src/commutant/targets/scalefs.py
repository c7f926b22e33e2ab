"""The target `scalefs`: the file system of this repository (docs/scalefs.md), in programs under QEMU's user mode.

Each session is one program with one instance (crate `scalefs-runner`). A test's calls run in threads, each on a core of
the instance; its processes are callers of the same instance. `cores=N` configures the instance for N cores that tests
may use (it has one more, for set-up and observation), `seed=N` moves its hash collisions.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

from commutant.corpus import Order, Outcome, PlacedCall, TestCase
from commutant.guest import find_user_emulator
from commutant.support import MAX_CALLS_PER_SET, RunError, UsageError, artifacts
from commutant.targets.base import Job, Progress, Target
from commutant.targets.options import number, read_options
from commutant.targets.process.program import Program, load_program
from commutant.targets.process.session import ProcessSession
from commutant.targets.rules import ALL_RULES, RULE_OPTION, take_rules_off
from commutant.targets.runner import Signature, read_calls, signature

_PLANTED_CONFLICT = "count_shared"
_PLANTED_NON_CONFLICT = "count_per_core"
_SELF_TEST_CALLS = frozenset({_PLANTED_CONFLICT, _PLANTED_NON_CONFLICT})
_PLANTED_NAME = "PLANTED_SHARED_COUNT"
_SELF_TEST_WINDOWS = 4

_SEEDS = 1 << 64
_KNOWN = {"cores": number(2, 255), "seed": number(0, _SEEDS - 1)}
_OTHER_SEEDS = 2


@dataclass(frozen=True, slots=True)
class Options:
    """What the target argument asks for."""

    cores: int = 2
    seed: int = 1
    rules_off: frozenset[str] = ALL_RULES


def parse_options(argument: str, options: Mapping[str, str]) -> Options:
    """The options of a target argument; raises UsageError for a key or value that there is not."""
    given, rules_off = take_rules_off(argument, options)
    return Options(rules_off=rules_off, **read_options(argument, given, _KNOWN, RULE_OPTION))


def create(argument: str, options: Mapping[str, str]) -> Target:
    """The target for `scalefs[:cores=N][,seed=N]`, not started; raises UsageError for other options."""
    return ScaleFsTarget(argument, parse_options(argument, options))


class ScaleFsTarget:
    """ScaleFS in traced programs; see `commutant.targets.base.Target`."""

    def __init__(self, argument: str, options: Options) -> None:
        """Does nothing yet but keep the options."""
        self.argument = argument
        self.options = options
        self._program: Program | None = None
        self._emulator = ""
        self._emulator_version = ""
        self._sessions: list[ProcessSession] = []
        self._spare: ProcessSession | None = None

    @cached_property
    def _calls(self) -> frozenset[Signature]:
        known = read_calls(artifacts.scalefs_runner_path())
        return frozenset(call for call in known if call[0] not in _SELF_TEST_CALLS)

    def implements(self, call: str, parameters: Iterable[str]) -> bool:
        """Whether the runner knows this call; raises RunError if there is no runner."""
        return signature(call, parameters) in self._calls

    def start(self, progress: Progress, core_count: int) -> None:
        """Finds QEMU and the runner, starts one program, and runs the self-test on it."""
        if core_count > min(MAX_CALLS_PER_SET, self.options.cores):
            raise UsageError(
                f"a test has {core_count} calls: expected at most {min(MAX_CALLS_PER_SET, self.options.cores)} "
                f"on the target {self.argument}"
            )
        emulator = find_user_emulator()
        runner = artifacts.scalefs_runner_path()
        workers = max(core_count, 2)
        arguments = ("--cores", str(self.options.cores), "--workers", str(workers), "--seed", str(self.options.seed))
        self._emulator, self._emulator_version = emulator.path, emulator.version
        self._program = load_program(runner, arguments)
        progress("checking the tracer")
        session = self._new_session(ALL_RULES)
        check(session)
        if self.options.rules_off:
            session.close()
        else:
            self._spare = session

    def _new_session(self, rules_off: frozenset[str]) -> ProcessSession:
        if self._program is None:
            raise RunError("the target scalefs has not been started")
        program = replace(self._program, rules_off=rules_off)
        session = ProcessSession(self._emulator, artifacts.plugin_path(), program)
        self._sessions.append(session)
        return session

    def sessions(self, count: int) -> Sequence[ProcessSession]:
        """Starts `count` programs, several at a time; the one of the self-test is among them."""
        spare, self._spare = self._spare, None
        sessions = [spare] if spare else []
        with ThreadPoolExecutor(max(1, count)) as starters:
            futures = [starters.submit(self._new_session, self.options.rules_off) for _ in range(count - len(sessions))]
            sessions += [future.result() for future in futures]
        return sessions[:count]

    def reseeded(self) -> Sequence[ScaleFsTarget]:
        """The same with the next two seeds."""
        return [
            ScaleFsTarget(self.argument, replace(self.options, seed=(self.options.seed + step) % _SEEDS))
            for step in range(1, _OTHER_SEEDS + 1)
        ]

    def describe(self) -> Mapping[str, object]:
        """Options, QEMU and the program's arguments."""
        description: dict[str, object] = {
            "cores": self.options.cores,
            "hash_seed": self.options.seed,
            "hash_seeds_of_conflicts": [other.options.seed for other in self.reseeded()],
            "host": platform.platform(),
        }
        if self.options.rules_off:
            description["rules_switched_off"] = sorted(self.options.rules_off)
        if self._program is not None:
            description |= {"qemu": self._emulator_version, "runner_arguments": list(self._program.arguments)}
        return description

    def close(self) -> None:
        """Ends all sessions; may be called twice, and while a session runs in another thread."""
        for session in self._sessions:
            session.close()


def planted(call: str) -> TestCase:
    """The test of the self-test in which two cores make a call of that name."""
    outcomes = (Outcome((0, 0), ()),)
    test = TestCase(
        id="",
        level="self-test",
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


def _misjudged(what: str, detail: str) -> RunError:
    return RunError(f"self-test, {what}: {detail}; the tracer cannot be trusted, see `commutant doctor`")
