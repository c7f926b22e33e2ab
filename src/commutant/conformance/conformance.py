"""From a model and a target to what they differ in: start, search, shrink.

    with Conform(interface, load_target("linux"), sequences=1000) as conform:
        conform.start(print)
        found = conform.run()
    assert not found.differences

Leaving the `with` closes target and workers, however it is left.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from commutant.conformance.difference import Deviation, DifferenceShown
from commutant.conformance.draw import PROCESSES, Drawer
from commutant.conformance.search import Search, SequenceTally, Suspect
from commutant.conformance.shrink import Shrinker, Shrunk
from commutant.documents import Count, Document, Measure
from commutant.guard import check_source
from commutant.lang import Interface
from commutant.support import CommutantError, OnProgress, Progress, UsageError, no_progress, plural
from commutant.targets import Session, Target

SEQUENCES = 2000
LENGTH = 20

_PROBED_SEQUENCES = 16
"""This many sequences are drawn to see which calls a target must know, in addition to those that are asked for."""


class ConformDocument(Document, frozen=True, kw_only=True):
    """Sequences `seed` to `seed + sequences - 1` were run on model and target; `differences` are shrunk.

    `calls` are those that sequences were made of, at most `length`; `calls_made` were made in all. In `undecided`
    sequences the model leaves open more than can be followed; `not_offered` ones ask for what the target does not
    offer. `complete` is false after an interrupt or an error of the run. `start_seconds` are for boot and self-test of
    the target.
    """

    interface: str
    target: str
    calls: tuple[str, ...]
    length: Annotated[int, Meta(ge=1)]
    seed: Count
    sequences: Count
    calls_made: Count
    undecided: Count
    not_offered: Count
    complete: bool
    seconds: Measure
    start_seconds: Measure
    differences: tuple[DifferenceShown, ...]


@dataclass(frozen=True, slots=True)
class Conformance:
    """What came of sequences `seed` to `seed + asked - 1`: how many were judged, and in what model and target differ.

    `ended` is why not all were judged, None if they were (or enough differences were found): an error of the run, or
    KeyboardInterrupt; `go_on` is the seed from which on they were not.
    """

    interface: str
    target: str
    calls: tuple[str, ...]
    length: int
    seed: int
    sequences_requested: int
    tally: SequenceTally
    seconds: float
    start_seconds: float
    differences: tuple[Deviation, ...]
    ended: BaseException | None = None
    go_on: int = 0

    def document(self) -> ConformDocument:
        """What is printed and kept as JSON."""
        return ConformDocument(
            interface=self.interface,
            target=self.target,
            calls=self.calls,
            length=self.length,
            seed=self.seed,
            sequences=self.tally.sequences,
            calls_made=self.tally.calls,
            undecided=self.tally.undecided,
            not_offered=self.tally.not_offered.total(),
            complete=self.ended is None,
            seconds=round(self.seconds, 3),
            start_seconds=round(self.start_seconds, 3),
            differences=tuple(difference.shown() for difference in self.differences),
        )

    def text(self) -> str:
        """All differences as transcripts, under one line that sums up."""
        count = len(self.differences)
        found = plural(count, "difference") if count else "no difference"
        sequences, calls = plural(self.tally.sequences, "sequence"), plural(self.tally.calls, "call")
        undecided = f"; {self.tally.undecided} undecided: too many choices" if self.tally.undecided else ""
        not_offered = "".join(f"; {number} say nothing: {what}" for what, number in self.tally.not_offered.items())
        head = f"{self.interface} on {self.target}: {found} in {sequences}, {calls}, {self.seconds:.1f} s"
        head += undecided + not_offered
        return "\n\n".join([head, *(difference.text() for difference in self.differences)])


class Conform:
    """One run of random sequences; `start`, then `run`, each once."""

    def __init__(
        self,
        interface: type[Interface],
        target: Target,
        *,
        argument: str | None = None,
        calls: Sequence[str] | None = None,
        sequences: int = SEQUENCES,
        length: int = LENGTH,
        seed: int = 0,
        max_differences: int = 1,
        jobs: int = 1,
    ) -> None:
        """`argument` is the interface as the user named it, `most` the number of distinct differences to stop after.

        Raises UsageError for calls that the model does not have or the target does not know, ModelFault for a model
        that cannot be analysed or fails on its first sequences.
        """
        check_source(interface)
        self.target = target
        self.interface = interface
        self._argument = argument or interface.interface_name
        self._chosen = calls
        names = tuple(dict.fromkeys(calls)) if calls is not None else interface.call_names()
        self._drawer = Drawer(interface, names, length)
        self._names, self._seed, self._sequences = names, seed, sequences
        self._max_differences, self._jobs = max_differences, jobs
        self._refuse_unknown_calls()
        self._search: Search | None = None
        self._sessions: Sequence[Session] = ()
        self._start_seconds = 0.0

    def __enter__(self) -> Conform:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._search is not None:
            self._search.close()
        self.target.close()

    def _refuse_unknown_calls(self) -> None:
        """Asks the target for the calls, and for what else sequences need: the steps of `begin` and `observe`."""
        missing = [name for name in self._names if not self._implements(name)]
        if missing:
            rest = [name for name in self._names if name not in missing]
            instead = f"; `--calls {','.join(rest)}` leaves them out" if rest else ""
            raise UsageError(f"{self.target.argument} does not know {', '.join(missing)} of {self._argument}{instead}")
        for number in range(self._seed, self._seed + min(self._sequences, _PROBED_SEQUENCES)):
            _, script = self._drawer.draw(number)
            for step in (*script.begin, *script.observe):
                if not self._implements(step.call):
                    raise UsageError(
                        f"{self.target.argument} does not know {step.call}, with which {self._argument} begins or "
                        "observes sequences"
                    )

    def _implements(self, call: str) -> bool:
        signature = self.interface.signature(call)
        return self.target.implements(call, [n for n in signature.parameters if n != signature.process_parameter])

    def start(self, on_progress: OnProgress = no_progress) -> None:
        """Starts workers, target and sessions; raises RunError if the target does not start."""
        started = time.monotonic()
        self._search = Search(
            self._drawer,
            seed=self._seed,
            sequences=self._sequences,
            max_differences=self._max_differences,
            jobs=self._jobs,
        )
        self.target.start(on_progress, PROCESSES)
        chunks = self._search.chunk_count
        self._sessions = self.target.sessions(max(1, min(self._jobs, chunks)))
        self._start_seconds = time.monotonic() - started

    def run(self, on_progress: OnProgress = no_progress) -> Conformance:
        """Runs all sequences, or until enough differences are found, and shrinks these.

        What was found before an interrupt or an error of the run is given too, with `ended` saying so; differences are
        then as drawn. Raises UsageError, also for a model that fails.
        """
        search = self._search
        assert search is not None, "start comes first"
        started = time.monotonic()
        ended: BaseException | None = None

        def tell(tally: SequenceTally) -> None:
            rate = tally.sequences / max(time.monotonic() - started, 1e-3)
            on_progress(Progress(tally.sequences, self._sequences, f"{rate:,.0f} sequences/s"))

        differences: list[Deviation] = []
        try:
            search.run(self._sessions, tell)
            seconds = time.monotonic() - started
            for suspect in _distinct(search.suspects, self._max_differences):
                differences.append(self._shrunk(suspect, on_progress))  # noqa: PERF401 - some, if it ends
        except UsageError:
            raise
        except (CommutantError, KeyboardInterrupt) as error:
            ended = error
            seconds = time.monotonic() - started
            suspects = _distinct(search.suspects, self._max_differences)
            differences += [self._as_drawn(suspect) for suspect in suspects[len(differences) :]]
        return Conformance(
            interface=self.interface.interface_name,
            target=self.target.argument,
            calls=self._names,
            length=self._drawer.length,
            seed=self._seed,
            sequences_requested=self._sequences,
            tally=search.tally,
            seconds=seconds,
            start_seconds=self._start_seconds,
            differences=_without_repetition(differences),
            ended=ended,
            go_on=search.first_open,
        )

    def again(self, number: int, sequences: int = 1) -> tuple[str, ...]:
        """The command that runs sequences from `number` on, with what was asked for here."""
        words = ["commutant", "conform", self._argument, "--target", self.target.argument]
        if self._chosen is not None:
            words += ["--calls", ",".join(self._names)]
        if self._drawer.length != LENGTH:
            words += ["--length", str(self._drawer.length)]
        return (*words, "--seed", str(number), "--sequences", str(sequences))

    def _shrunk(self, suspect: Suspect, on_progress: OnProgress) -> Deviation:
        sequence, script = self._drawer.draw(suspect.number)
        shrinker = Shrinker(self.interface, self._sessions[0], on_progress)
        shrunk = shrinker.shrink(sequence, script, suspect.fault, same=self._max_differences > 1)
        return Deviation(suspect.number, len(sequence.calls), shrunk, self.again(suspect.number))

    def _as_drawn(self, suspect: Suspect) -> Deviation:
        sequence, script = self._drawer.draw(suspect.number)
        shrunk = Shrunk(sequence, script, suspect.fault, 1)
        return Deviation(suspect.number, len(sequence.calls), shrunk, self.again(suspect.number))

    def command_to_go_on(self, found: Conformance) -> str:
        """The command that runs the sequences that `found` has not judged."""
        return shlex.join(self.again(found.go_on, self._seed + self._sequences - found.go_on))


def _distinct(suspects: Sequence[Suspect], max_differences: int) -> list[Suspect]:
    """The first suspect of each kind."""
    first: dict[tuple[str, ...], Suspect] = {}
    for suspect in suspects:
        first.setdefault(suspect.signature, suspect)
    return list(first.values())[:max_differences]


def _without_repetition(differences: Sequence[Deviation]) -> tuple[Deviation, ...]:
    """Those that shrank to the same sequence once."""
    distinct = {difference.shrunk.script.text(): difference for difference in reversed(differences)}
    return tuple(reversed(distinct.values()))
