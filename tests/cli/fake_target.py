"""`fake:outcome=...`: a target without a machine, for runs of the whole command line.

Run as a program, this is `commutant` with that target in its table. `COMMUTANT_FAKE_STUCK=N` makes the session stop in
window N until it is closed, and say so on standard error: the moment to send a signal. `COMMUTANT_FAKE_DIES=N` makes it
fail there.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from commutant.support import OnProgress
from commutant.support.errors import RunError
from commutant.targets import registry
from commutant.targets.base import Job, WindowRecord
from tests.campaign.fakes import FakeSession, FakeTarget, Script, clean, conflicting, make_finding


def _unstable(job: Job, before: int) -> WindowRecord:
    return WindowRecord(job, (make_finding(f"field{before}"),))


def _accident(job: Job, before: int) -> WindowRecord:
    """A finding in one test, unless a campaign on this target has ended in this folder before."""
    return conflicting(job, before) if job.test.path == 0 and not ENDED.exists() else clean(job, before)


ENDED = Path("accident-ended")


def _varied(job: Job, before: int) -> WindowRecord:
    """Forty-eight distinct findings for each set of calls, three in each test: what a large campaign has."""
    caller = f"{job.test.set_name}{job.test.id[-1]}"
    return WindowRecord(job, tuple(make_finding(f"field{place}", (f"f{place}", caller)) for place in range(3)))


SCRIPTS: dict[str, Script] = {
    "clean": clean,
    "conflicting": conflicting,
    "unstable": _unstable,
    "varied": _varied,
    "accident": _accident,
    "wrong": lambda job, before: WindowRecord(job, wrong="link returned EEXIST, acceptable: 0"),
    "crashed": lambda job, before: (
        WindowRecord(job, crashed="Kernel panic") if job.test.path == 0 else clean(job, before)
    ),
}


class CommandLineSession(FakeSession):
    """A session that stops in one window until it is closed, or dies in one."""

    def __init__(self, script: Script, before: dict[tuple[str, int], int]) -> None:
        super().__init__(script, before)
        self._stuck_in = int(os.environ.get("COMMUTANT_FAKE_STUCK", -1))
        self._dies_in = int(os.environ.get("COMMUTANT_FAKE_DIES", -1))
        self._closed = threading.Event()

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        for number, record in enumerate(super().run(jobs)):
            if number == self._dies_in:
                raise RunError("the emulator was killed")
            if number == self._stuck_in:
                print("stuck", file=sys.stderr, flush=True)
                self._closed.wait(60)
                raise RunError("the session was closed")
            yield record

    def close(self) -> None:
        super().close()
        self._closed.set()


class CommandLineTarget(FakeTarget):
    """The target `fake`."""

    def __init__(self, argument: str, options: Mapping[str, str]) -> None:
        super().__init__(SCRIPTS[options.get("outcome", "clean")], options.get("unknown", "").split("+"), argument)
        self._fails = "start" in options

    def start(self, on_progress: OnProgress, core_count: int) -> None:
        super().start(on_progress, core_count)
        if self._fails:
            raise RunError("self-test: the planted conflict was not seen; the tracer is not to be trusted")

    def sessions(self, count: int) -> Sequence[FakeSession]:
        self.made = [CommandLineSession(self.script, self.before) for _ in range(count)]
        return self.made

    def close(self) -> None:
        super().close()
        if self.script is _accident:
            ENDED.touch()
        if "COMMUTANT_FAKE_STUCK" in os.environ:
            print("closed", file=sys.stderr, flush=True)


def create(argument: str, options: Mapping[str, str]) -> CommandLineTarget:
    """The factory that the table of targets names."""
    return CommandLineTarget(argument, options)


if __name__ == "__main__":
    from commutant.cli import main

    registry.TARGETS["fake"] = "tests.cli.fake_target:create"
    sys.exit(main())
