"""A check from corpus to run directory: start the target, run the campaign, keep what it finds, close everything.

    with Check.new(corpus, load_target("linux:fs=ramfs"), jobs=2) as check:
        check.start(print)
        run = check.run()

`Check.resume(Path("runs/x"), jobs=2)` goes on with an interrupted one, `Check.repeat` does again what a run did.

The run directory is made only once the target has started and passed its self-test; from then on every verdict is in it
as soon as it is known. Leaving the `with` closes the target, however it is left.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from msgspec import structs

from commutant import __version__
from commutant.campaign import (
    DEFAULT_REPEATS,
    Campaign,
    KeyRate,
    Outcome,
    Verdict,
    ask_other_keys,
    ask_other_seeds,
    is_in_doubt,
    skipped,
)
from commutant.corpus import Corpus, PlacedCall, Step, TestCase
from commutant.mtrace import NAMING
from commutant.runs.directory import (
    Generated,
    HostDescription,
    Run,
    RunInfo,
    RunWriter,
    hash_of_origin,
    hash_of_tests,
    load_run,
    new_directory,
    safe_folder_name,
)
from commutant.runs.finish import Took, finish
from commutant.runs.lines import TimedVerdict
from commutant.support import (
    CommutantError,
    IdentityCache,
    OnProgress,
    Progress,
    UsageError,
    no_progress,
    paused_collector,
    plural,
)
from commutant.targets import OF_MACHINE, Session, Target, load_target

"""Called with how far the campaign is, and the windows per second so far."""


class Interrupted(CommutantError):
    """The user interrupted a campaign; what was judged stays in the run directory."""

    exit_code = 130


@dataclass(frozen=True, slots=True)
class Plan:
    """How a check goes: windows per order, the seed of the tests' order, how the tests were made (None: unknown)."""

    repeats: int
    seed: int
    generated: Generated | None


class Check:
    """One check; made by `Check.new`, `Check.repeat` or `Check.resume`, then `start`, then `run`, each once."""

    def __init__(
        self,
        corpus: Corpus,
        target: Target,
        plan: Plan,
        *,
        jobs: int,
        directory: Path | None,
        resumed: Run | None = None,
        repeated: RunInfo | None = None,
    ) -> None:
        self.target = target
        self.corpus = corpus
        self._plan = plan
        self._jobs = jobs
        self._directory = directory
        self._resumed = resumed
        self._repeated = repeated
        self._sessions: Sequence[Session] = ()
        self._keys: tuple[KeyRate, ...] = ()
        self._start_seconds = 0.0
        self._implements = cache(target.implements)
        self._unknown_step = IdentityCache(self._first_unknown)

    @classmethod
    def new(
        cls,
        corpus: Corpus,
        target: Target,
        *,
        jobs: int,
        repeats: int = DEFAULT_REPEATS,
        seed: int = 0,
        directory: Path | None = None,
        generated: Generated | None = None,
    ) -> Check:
        """A check of a corpus on a target, into a new run directory (default: see `new_directory`).

        `generated` says how the corpus was made, for a repetition without it. Raises UsageError if the corpus has
        no tests, unless it is a shard: its sets may have none.
        """
        if not corpus.tests and corpus.shard is None:
            lost = sum(corpus.without_setup.values())
            reason = f"; {plural(lost, 'class has', 'classes have')} states that no calls build" if lost else ""
            raise UsageError(
                f"no tests of {corpus.interface} to run: expected a set of calls with at least one{reason}"
            )
        plan = Plan(repeats, seed, generated)
        return cls(corpus, target, plan, jobs=jobs, directory=directory)

    @classmethod
    def repeat(cls, info: RunInfo, corpus: Corpus, *, jobs: int, directory: Path | None = None) -> Check:
        """A check that does again what a run did: its tests in its order on its target.

        Raises UsageError if the corpus is another one than the run had, and at the start if the target is.
        """
        if hash_of_tests(corpus) != info.tests_sha256:
            what = f"{plural(len(corpus.tests), 'test')} of model {corpus.model_hash}"
            unhashed = "" if info.tests_sha256 else ", without their hash"
            then = f"{plural(info.tests, 'test')} of model {info.model}{unhashed}"
            raise UsageError(
                f"these are not the tests of the run: {what}, the run had {then}; use the model and the version of "
                f"then ({info.commutant}), or its corpus"
            )
        plan = Plan(info.repeats, info.seed, info.generated)
        return cls(corpus, load_target(info.target), plan, jobs=jobs, directory=directory, repeated=info)

    @classmethod
    def resume(cls, path: Path, jobs: int) -> Check:
        """The rest of an interrupted check; raises UsageError if `path` is no run directory or the run is complete."""
        run = load_run(path)
        if run.complete:
            raise UsageError(f"{path} is complete, nothing is left to run; `commutant report {path}` shows it")
        plan = Plan(run.info.repeats, run.info.seed, run.info.generated)
        return cls(run.corpus, load_target(run.info.target), plan, jobs=jobs, directory=path, resumed=run)

    def __enter__(self) -> Check:
        return self

    def __exit__(self, *exception: object) -> None:
        self.target.close()

    def start(self, on_progress: OnProgress = no_progress) -> None:
        """Starts the target, which runs its self-test, and its sessions; raises RunError if either fails, UsageError if
        the target cannot run a single test."""
        self._refuse_unknown_interface()
        started = time.monotonic()
        self.target.start(on_progress, max((len(test.calls) for test in self.corpus.tests), default=2))
        self._sessions = self.target.sessions(max(1, min(self._jobs, len(self.corpus.tests))))
        self._start_seconds = time.monotonic() - started

    def run(self, on_progress: OnProgress = no_progress) -> Run:
        """Runs and judges what is left to judge, closes the target, and writes findings, summary and page.

        Raises RunError if the run fails and Interrupted on Ctrl-C; both say how to go on.
        """
        with paused_collector(), self._open() as writer:
            judged, seconds = self._judge(writer, on_progress)
            self.target.close()
            self._sessions = ()  # and with them all that they know of the tests
            return finish(writer, self.corpus, judged, Took(seconds, self._start_seconds), self._keys)

    def _open(self) -> RunWriter:
        if self._resumed is not None:
            self._refuse_another_target(self._resumed.info, str(self._resumed.path))
            return RunWriter.resume(self._resumed)
        if self._repeated is not None:
            self._refuse_another_target(self._repeated, "the run")
        corpus = self.corpus
        of_target = getattr(self.target, "folder_name", self.target.argument)
        default_name = f"{safe_folder_name(corpus.interface)}-{safe_folder_name(of_target)}"
        description = dict(self.target.describe())
        info = RunInfo(
            commutant=__version__,
            python=platform.python_version(),
            command=["commutant", *sys.argv[1:]],
            interface=corpus.interface,
            level=corpus.level,
            model=corpus.model_hash,
            tests=len(corpus.tests),
            target=self.target.argument,
            target_description=description,
            seed=self._plan.seed,
            repeats=self._plan.repeats,
            jobs=self._jobs,
            started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            machine=_machine(),
            tests_sha256=hash_of_tests(corpus),
            generated=self._plan.generated,
            naming=NAMING,
        )
        info = structs.replace(info, origin_sha256=hash_of_origin(info))
        path = new_directory(self._directory, default_name)
        try:
            return RunWriter.create(path, info, corpus)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)  # nothing is in it that could be lost
            raise

    def _refuse_another_target(self, info: RunInfo, what: str) -> None:
        """Verdicts of two kernels (or QEMUs) do not belong into one run, nor are they those of a run repeated.

        Where they were made may change: a cluster makes them on many machines, and any can go on.
        """
        corpus = self._resumed.path if self._resumed else "CORPUS"
        was, now = dict(info.target_description), json.loads(json.dumps(dict(self.target.describe())))
        for key in sorted((was.keys() | now.keys()) - OF_MACHINE):
            if was.get(key) != now.get(key):
                raise UsageError(
                    f"{what} was started with {key} {was.get(key)!r:.80}, this is {now.get(key)!r:.80}; "
                    f"check its corpus again: `commutant check {corpus} --target {info.target}`"
                )

    def _judge(self, writer: RunWriter, on_progress: OnProgress) -> tuple[list[TimedVerdict], float]:
        """Judges all tests that have no verdict yet; gives all verdicts, and the seconds of the campaign.

        Where the target has hash seeds, a conflicting test has its verdict once others were asked; where windows have
        keys of their own, one that is in doubt has it once more of them were.
        """
        kept = list(self._resumed.timed_verdicts()) if self._resumed is not None else []
        judged = {verdict.test_id for verdict, _ in kept}
        seconds_before = max((seconds for _, seconds in kept), default=0.0)

        def keep(verdict: Verdict, seconds: float) -> None:
            kept.append((writer.append(verdict, seconds_before + seconds), seconds_before + seconds))

        has_seeds = bool(self.target.reseeded())
        key_windows: int = getattr(self.target, "key_windows", 0)
        suspects: list[tuple[TestCase, Verdict]] = []
        doubtful: list[tuple[TestCase, Verdict]] = []

        def take(test: TestCase, verdict: Verdict, seconds: float) -> None:
            if has_seeds and verdict.outcome is Outcome.CONFLICTING:
                suspects.append((test, verdict))
            elif key_windows and is_in_doubt(verdict):
                doubtful.append((test, verdict))
            else:
                keep(verdict, seconds)

        started = time.monotonic()
        done_before = len(kept)

        def tell(progress: Progress) -> None:
            on_progress(Progress(progress.done + done_before, len(self.corpus.tests), progress.text))

        try:
            runnable = []
            for test in self.corpus.tests:
                if test.id in judged:
                    continue
                unknown = self._unknown_call(test)
                if unknown is None:
                    runnable.append(test)
                else:
                    keep(skipped(test, f"{self.target.argument} does not know the call {unknown}"), 0.0)
            done_before = len(kept)
            campaign = Campaign(runnable, take, repeats=self._plan.repeats, seed=self._plan.seed)
            campaign.run(self._sessions, tell)
            judged_again = ask_other_seeds(
                self.target, suspects, jobs=self._jobs, repeats=self._plan.repeats, seed=self._plan.seed
            )
            for test, verdict in judged_again:
                if key_windows and is_in_doubt(verdict):
                    doubtful.append((test, verdict))
                else:
                    keep(verdict, time.monotonic() - started)
            if key_windows:
                of_id = {test.id: test for test in self.corpus.tests}
                asked = [(of_id[verdict.test_id], verdict) for verdict, _ in kept]
                answer = ask_other_keys(self._sessions[0], [*doubtful, *asked], key_windows)
                self._keys = answer.rates
                for _, verdict in doubtful:
                    keep(answer.settled(verdict), time.monotonic() - started)
            return kept, seconds_before + time.monotonic() - started
        except KeyboardInterrupt as interrupt:
            raise Interrupted(f"interrupted{self._so_far(len(kept), writer.path)}") from interrupt
        except CommutantError as error:
            raise type(error)(f"{error}{self._so_far(len(kept), writer.path)}") from error

    def _refuse_unknown_interface(self) -> None:
        """Raises UsageError if every test has a call that the target does not know: nothing would be judged."""
        tests = self.corpus.tests
        if tests and all(self._unknown_call(test) for test in tests):
            raise UsageError(
                f"{self.target.argument} can run none of the {plural(len(tests), 'test')} of {self.corpus.interface}: "
                f"it does not know the call {self._unknown_call(tests[0])}; an adapter needs a call of just that "
                "signature, and a corpus of another version of the interface must be generated again "
                "(`commutant generate`)"
            )

    def _unknown_call(self, test: TestCase) -> str | None:
        """The first call of a test that the target does not know, with its parameters, and why, if the target says so;
        None if it knows them all."""
        for steps in (test.calls, test.setup, test.observe):
            unknown = self._unknown_step(steps)
            if unknown is not None:
                return unknown
        return None

    def _first_unknown(self, steps: Sequence[PlacedCall | Step]) -> str | None:
        for step in steps:
            if not self._implements(step.call, tuple(step.args)):
                why = getattr(self.target, "lacks", {}).get(step.call)
                return f"{step.call}({', '.join(step.args)})" + (f": {why}" if why else "")
        return None

    def _so_far(self, judged: int, path: Path) -> str:
        return (
            f"; {judged:,} of {plural(len(self.corpus.tests), 'test is', 'tests are')} judged and kept: "
            f"`commutant report {path}` shows them, `commutant resume {path}` goes on"
        )


def _machine() -> HostDescription:
    return HostDescription(
        system=platform.system(),
        release=platform.release(),
        machine=platform.machine(),
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    )
