"""The target `plain`: POSIX's calls over ordinary maps (crate `plain`), in a program that one thread runs.

It is the reference that ScaleFS is held against, and shows that a model is right about results without a kernel or an
emulator. One thread makes all calls, so nothing can be shared between cores: no run says anything about sharing.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from commutant.mtrace import TracedWindow
from commutant.support import MAX_CALLS_PER_SET, OnProgress, Progress, RunError, UsageError, artifacts, close_at_exit
from commutant.targets.base import Session, Target
from commutant.targets.options import Option, one_of, read_options
from commutant.targets.process.running import RunningProgram
from commutant.targets.process.selftest import SELF_TEST_CALLS, check_judgement
from commutant.targets.process.session import ProcessSession
from commutant.targets.process.surroundings import NO_SURROUNDINGS, Surroundings
from commutant.targets.process.surroundings import OPTIONS as SURROUNDINGS
from commutant.targets.process.transacted import TRANSACTED, Transacted, in_transactions
from commutant.targets.runner import LACKS, Signature, read_calls, signature

OPTIONS: Mapping[str, Option] = {"tx": one_of(*TRANSACTED), **SURROUNDINGS}

_LIMITS = "the target plain runs in one thread, so its tests tell results alone: conflict-free means nothing there"


def create(argument: str, options: Mapping[str, str]) -> Target:
    """The target for `plain[:KEY=VALUE,...]`, keys as in `OPTIONS`, not started; raises UsageError for others."""
    read = read_options(argument, options, OPTIONS)
    return PlainTarget(argument, read.pop("tx", None), Surroundings(**read))


class _PlainProgram(RunningProgram):
    """The runner over `plain`, without an emulator; its windows show nothing."""

    _kind = "runner of the target plain"

    def __init__(self, mode: Sequence[str], workers: int, surroundings: Surroundings) -> None:
        arguments = (*mode, "--workers", str(workers), *surroundings.runner_arguments())
        super().__init__([str(artifacts.scalefs_runner_path()), *arguments])
        close_at_exit(self)

    def windows(self, count: int, timeout_seconds: float) -> Sequence[TracedWindow]:
        """As `RunningProgram.windows`."""
        return [TracedWindow(number, (), {}, ()) for number in range(count)]


class PlainTarget:
    """`plain` in programs of one thread; see `commutant.targets.base.Target`."""

    _limits = _LIMITS
    lacks = LACKS

    def __init__(
        self, argument: str, tx: Transacted | None = None, surroundings: Surroundings = NO_SURROUNDINGS
    ) -> None:
        """Does nothing yet; `tx` says which calls are made in transactions."""
        self._surroundings = surroundings
        self.argument = argument
        self._tx = tx
        self._workers = 0
        self._sessions: list[ProcessSession] = []

    def _mode(self) -> Sequence[str]:
        """The runner's arguments that say what it runs tests on."""
        return ("--plain",)

    @cached_property
    def _calls(self) -> frozenset[Signature]:
        calls = read_calls(artifacts.scalefs_runner_path())
        return frozenset(call for call in calls if call[0] not in SELF_TEST_CALLS)

    def implements(self, call: str, parameters: Iterable[str]) -> bool:
        """Whether the program knows this call; raises RunError if there is no runner."""
        return signature(call, parameters) in self._calls

    def start(self, on_progress: OnProgress, core_count: int) -> None:
        """Finds the runner and checks that it makes calls, and that wrong results are noticed."""
        if core_count > MAX_CALLS_PER_SET:
            raise UsageError(f"a test has {core_count} calls: expected at most {MAX_CALLS_PER_SET} on the target plain")
        self._workers = max(core_count, 2)
        on_progress(Progress(text="checking the runner"))
        session = self._new_session()
        check_judgement(session)
        session.close()

    def _new_session(self) -> ProcessSession:
        if not self._workers:
            raise RunError("the target plain has not been started")
        session = ProcessSession(lambda: _PlainProgram(self._mode(), self._workers, self._surroundings))
        self._sessions.append(session)
        return session

    def sessions(self, count: int) -> Sequence[Session]:
        """Starts `count` programs."""
        with ThreadPoolExecutor(max(1, count)) as starters:
            futures = [starters.submit(self._new_session) for _ in range(count)]
            sessions = [future.result() for future in futures]
        return in_transactions(sessions, self._tx)

    def reseeded(self) -> Sequence[Target]:
        """None: nothing is hashed."""
        return ()

    def describe(self) -> Mapping[str, object]:
        """The host, and what a run cannot tell."""
        told = {**self._surroundings.described(), **({"transactions": self._tx} if self._tx else {})}
        return {"host": platform.platform(), "limits": self._limits, **told}

    def close(self) -> None:
        """Ends all sessions; may be called twice, and while a session runs in another thread."""
        for session in self._sessions:
            session.close()
