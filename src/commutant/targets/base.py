"""What the checker asks of an implementation under test.

A target is started once, then gives independent sessions (virtual machines, traced processes). A session takes jobs and
returns one record per job. Everything that a record holds is already named and compared: no one above this border sees
an address that could still change its meaning, or a raw result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from commutant.mtrace import Finding, Picture, WindowCourse
from commutant.support import OnProgress

if TYPE_CHECKING:
    from commutant.corpus import TestCase

OF_MACHINE = frozenset({"host"})
"""What a target says of the machine that it runs on: another one may go on, or make a part."""

"""Called, in a few words, with what a long start is doing ("booting Linux 6.1.0-32-amd64")."""


@dataclass(frozen=True, slots=True)
class Job:
    """One window to run: a test case with its calls in one of its orders (an index into `test.orders`)."""

    test: TestCase
    order_index: int


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """What one window showed.

    `findings` are the conflicts that stay after the ignoring rules, with each in `pictures` the object that shows it
    (no pictures where the target draws none), and `course` in which order these were touched; `ignored` counts, per
    rule, the conflicting lines that were dropped. `wrong` is None if the outcome was acceptable, else a text that says
    which call or observation returned what, and what was acceptable. `crashed` tells that the implementation died in
    this window: then the other fields are empty and the session has restarted itself. `unsupported` says what the
    target does not offer, so that the window was not run; `unreached` how its set-up led to another state than the
    test's, by a choice that the model leaves to the implementation, so that it says nothing of the test. `aborted` are
    the calls whose transactions were aborted; they were made again, so that the outcome can be right.
    """

    job: Job
    findings: tuple[Finding, ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)
    wrong: str | None = None
    crashed: str | None = None
    pictures: tuple[Picture, ...] = ()
    unsupported: str | None = None
    unreached: str | None = None
    aborted: tuple[int, ...] = ()
    course: WindowCourse | None = None


@dataclass(frozen=True, slots=True)
class SequenceRecord:
    """What a sequence of calls gave.

    `came` is None if every step and the observation returned what was expected of them, else the JSON text of what they
    returned, `{"results": [...], "observation": [...]}` (docs/reference/test-cases.md), or `{"refused": "why"}` if
    the runner could not make a call. `crashed` as in a `WindowRecord`.
    """

    actual: str | None = None
    crashed: str | None = None


class Session(Protocol):
    """One implementation that runs windows, one after the other."""

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        """Runs the jobs in the order given and yields their records in that order.

        Raises RunError if the session cannot go on at all (emulator gone and not restartable).
        """

    def run_sequences(self, texts: Sequence[str]) -> Iterator[SequenceRecord]:
        """Runs sequences of calls, each from an empty state, and yields their records in that order.

        A text is a test case in JSON without calls under test: `calls` and `orders` are empty, the steps of `setup` are
        the sequence, each perhaps with the `core` that it is made on, and all steps, those of `observe` too, have the
        `result` that is expected. Raises RunError as `run` does, UsageError for a text that is no such sequence.
        """

    def close(self) -> None:
        """Ends the session; no process or file of it stays. May be called twice and from a signal handler's unwind."""


class Target(Protocol):
    """An implementation under test, as named on the command line (`linux:fs=ramfs`)."""

    argument: str
    """The target argument as the user gave it."""

    def implements(self, call: str, parameters: Iterable[str]) -> bool:
        """Whether the target knows the call of this name with exactly these parameters (without the process that makes
        it), in whatever order; tests with a call that it does not know are counted as skipped. `lacks`, if the target
        has it, says by name of the call why."""

    def start(self, on_progress: OnProgress, core_count: int) -> None:
        """Prepares everything that sessions share (boot and snapshot) for tests of at most `core_count` calls, each on
        a core of its own, and runs the self-test.

        Raises RunError if the self-test misjudges its planted conflict or non-conflict, or the target cannot start.
        """

    def sessions(self, count: int) -> Sequence[Session]:
        """Starts `count` sessions."""

    def reseeded(self) -> Sequence[Target]:
        """Targets that differ from this one in nothing but a hash seed, not started; none if it has no such seed. A
        conflict that one of them does not show is reported as not repeated under other seeds."""

    def describe(self) -> Mapping[str, object]:
        """What `run.json` records of the target: versions, kernel, command line, options; JSON values only.

        `limits`, if it is there, says in words what this target cannot tell; users are informed before a campaign.
        """

    def close(self) -> None:
        """Ends all sessions and removes what the target left on disk."""
