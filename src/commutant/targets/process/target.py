"""What targets have in common whose implementation lies in a program of ours under QEMU's user mode."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Self

from commutant.guest import Emulator, find_user_emulator
from commutant.support import (
    MAX_CALLS_PER_SET,
    OnProgress,
    Progress,
    RunError,
    UsageError,
    artifacts,
    confinement_layers,
)
from commutant.targets.base import Session
from commutant.targets.counted import USUAL, Counted
from commutant.targets.process.program import Program
from commutant.targets.process.selftest import SELF_TEST_CALLS, check
from commutant.targets.process.session import ProcessSession
from commutant.targets.process.traced import TracedProgram
from commutant.targets.runner import Signature, signature

_SEEDS = 1 << 64
_OTHER_SEEDS = 2

UNCONFINED = (
    "this system has neither user namespaces nor Landlock: the programs of this target, which run what the corpus "
    "says, can write your files; run corpora of people whom you do not trust in a container"
)


def other_seeds(seed: int) -> Sequence[int]:
    """The next seeds, under which a conflict is looked at again."""
    return [(seed + step) % _SEEDS for step in range(1, _OTHER_SEEDS + 1)]


class ProgramTarget(ABC):
    """An implementation in traced programs; see `commutant.targets.base.Target`."""

    def __init__(self, argument: str, cores: int, counted: Counted) -> None:
        """Does nothing yet but keep what it is given; tests have at most `cores` calls."""
        self.argument = argument
        self._cores = cores
        self._counted = counted
        self._program: Program | None = None
        self._emulator: Emulator | None = None
        self._sessions: list[ProcessSession] = []
        self._spare: ProcessSession | None = None

    @abstractmethod
    def _read_calls(self) -> frozenset[Signature]:
        """The calls that the program says it knows."""

    @abstractmethod
    def _load(self, workers: int) -> Program:
        """The program for tests of this many calls."""

    @abstractmethod
    def reseeded(self) -> Sequence[Self]:
        """As `commutant.targets.base.Target.reseeded`."""

    @cached_property
    def _calls(self) -> frozenset[Signature]:
        return frozenset(call for call in self._read_calls() if call[0] not in SELF_TEST_CALLS)

    def implements(self, call: str, parameters: Iterable[str]) -> bool:
        """Whether the program knows this call; raises RunError if there is no runner."""
        return signature(call, parameters) in self._calls

    def start(self, on_progress: OnProgress, core_count: int) -> None:
        """Finds QEMU and the runner, starts one program, and runs the self-test on it."""
        limit = min(MAX_CALLS_PER_SET, self._cores)
        if core_count > limit:
            raise UsageError(f"a test has {core_count} calls: expected at most {limit} on the target {self.argument}")
        self._emulator = find_user_emulator()
        self._program = self._load(max(core_count, 2))
        on_progress(Progress(text="checking the tracer"))
        session = self._new_session(USUAL)
        check(session)
        if self._counted != USUAL:
            session.close()
        else:
            self._spare = session

    def _new_session(self, counted: Counted) -> ProcessSession:
        if self._program is None or self._emulator is None:
            raise RunError(f"the target {self.argument} has not been started")
        emulator, plugin, program = self._emulator.command, artifacts.plugin_path(), self._program.counting(counted)
        session = ProcessSession(lambda: TracedProgram(emulator, plugin, program))
        self._sessions.append(session)
        return session

    def sessions(self, count: int) -> Sequence[Session]:
        """Starts `count` programs, several at a time; the one of the self-test is among them."""
        spare, self._spare = self._spare, None
        sessions = [spare] if spare else []
        with ThreadPoolExecutor(max(1, count)) as starters:
            futures = [starters.submit(self._new_session, self._counted) for _ in range(count - len(sessions))]
            sessions += [future.result() for future in futures]
        return sessions[:count]

    def describe(self) -> Mapping[str, object]:
        """Host, QEMU and the program's arguments."""
        description: dict[str, object] = {"host": platform.platform()}
        description |= self._counted.described()
        unconfined = "" if confinement_layers() & {"namespaces", "landlock"} else UNCONFINED
        untested = ""
        if self._program is not None and self._emulator is not None:
            description |= {"qemu": self._emulator.version, "runner_arguments": list(self._program.arguments)}
            untested = self._emulator.untested
        if limits := "; ".join(filter(None, [untested, unconfined])):
            description["limits"] = limits
        return description

    def close(self) -> None:
        """Ends all sessions; may be called twice, and while a session runs in another thread."""
        for session in self._sessions:
            session.close()
