"""The run as a whole: what it counts, how it ends, and what it says of targets and models that are not up to it."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from commutant.conformance import Conform, Conformance, judge
from commutant.interfaces.names import Names
from commutant.lang import load_interface
from commutant.support import Progress, RunError, UsageError
from commutant.targets import batches
from commutant.targets.base import SequenceRecord
from commutant.targets.linux.session import BATCH_WINDOWS
from commutant.targets.registry import load_target
from tests.conformance.model_target import ModelSession, ModelTarget
from tests.conformance.models import (
    Cache,
    ExclusiveIsIgnored,
    LinkForgetsToCount,
    RenameOfLinksRemoves,
    Urn,
    UrnOfOthers,
)


def conform(interface: Any, target: Any, **options: Any) -> Conformance:
    with Conform(interface, target, **({"sequences": 1000} | options)) as running:
        running.start(lambda text: None)
        found = running.run()
    assert target.closed and not multiprocessing.active_children()
    return found


def test_a_right_implementation_has_no_difference_and_everything_is_counted() -> None:
    found = conform(Names, ModelTarget(Names), sequences=700, jobs=2)
    assert (found.tally.sequences, found.tally.undecided, found.differences, found.ended) == (700, 0, (), None)
    assert found.tally.calls > 700 * 4 and found.go_on == 700
    assert found.text().startswith("names on model: no difference in 700 sequences, ")


def test_choices_among_what_is_in_a_state() -> None:
    right = conform(Urn, ModelTarget(Urn), sequences=300)
    assert not right.differences and right.tally.undecided == 0
    assert conform(Urn, ModelTarget(UrnOfOthers), sequences=300).differences


def test_distinct_differences_are_told_apart_and_counted_once() -> None:
    class Both(LinkForgetsToCount, ExclusiveIsIgnored):
        """Two mistakes."""

    found = conform(Names, ModelTarget(Both), max_differences=2)
    shown = {tuple(call.name for call in one.shrunk.sequence.calls) for one in found.differences}
    assert shown == {("open", "link"), ("open", "open")}
    assert found.text().count("again: commutant conform names --target model --seed ") == 2


def test_the_command_draws_the_same_sequence_again() -> None:
    (first,) = conform(Names, ModelTarget(RenameOfLinksRemoves), length=9, calls=["open", "link", "rename"]).differences
    assert first.again[-6:] == ("--length", "9", "--seed", str(first.number), "--sequences", "1")
    (again,) = conform(
        Names,
        ModelTarget(RenameOfLinksRemoves),
        length=9,
        calls=["open", "link", "rename"],
        seed=first.number,
        sequences=1,
    ).differences
    assert again.shrunk.sequence == first.shrunk.sequence and again.number == first.number


def test_a_death_is_reported_and_shrunk_and_others_go_on() -> None:
    found = conform(Names, ModelTarget(Names, dies=lambda call: call == "rename"), max_differences=2)
    (difference,) = found.differences
    assert [call.name for call in difference.shrunk.sequence.calls] == ["rename"]
    assert difference.shrunk.fault.crashed == "it was asked to die"
    assert "then it died: it was asked to die" in found.text()


class Ending(ModelSession):
    """Ends after 300 sequences: by an error, or as by Ctrl-C in the main thread."""

    def run_sequences(self, texts: Sequence[str]) -> Iterator[SequenceRecord]:
        for record in super().run_sequences(texts):
            if self.ran > 300:
                raise RunError("the emulator was killed")
            yield record


def test_an_error_of_the_run_leaves_what_was_found_and_says_how_to_go_on() -> None:
    target = ModelTarget(Names, session=Ending)
    with Conform(Names, target, sequences=1000) as running:
        running.start(lambda text: None)
        found = running.run()
        assert isinstance(found.ended, RunError) and "the emulator was killed" in str(found.ended)
        assert (found.tally.sequences, found.go_on) == (256, 256)
        assert running.command_to_go_on(found) == "commutant conform names --target model --seed 256 --sequences 744"
    assert not multiprocessing.active_children()


def test_a_worker_that_is_killed_ends_the_run_with_what_was_found() -> None:
    target = ModelTarget(RenameOfLinksRemoves)

    def kill(progress: Progress) -> None:
        if progress.done >= 256:
            for worker in multiprocessing.active_children():
                worker.kill()

    with Conform(Names, target, sequences=100_000, length=6, max_differences=100) as running:
        running.start(lambda text: None)
        found = running.run(kill)
        assert isinstance(found.ended, RunError) and "a process that draws and judges sequences ended" in str(
            found.ended
        )
        assert 256 <= found.tally.sequences < 100_000
    assert not multiprocessing.active_children()


def test_an_interrupt_leaves_what_was_found() -> None:
    target = ModelTarget(RenameOfLinksRemoves)

    def interrupt(progress: Progress) -> None:
        if progress.done >= 256:
            raise KeyboardInterrupt

    with Conform(Names, target, sequences=100_000, length=6, max_differences=100) as running:
        running.start(lambda text: None)
        found = running.run(interrupt)
        assert isinstance(found.ended, KeyboardInterrupt)
        assert 256 <= found.tally.sequences < 100_000 and found.go_on <= found.tally.sequences
        assert all(session.closed for session in target.made)
    assert not multiprocessing.active_children()


def test_sequences_with_too_many_choices_are_counted_as_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "MAX_WAYS", 0)
    found = conform(Cache, ModelTarget(Cache), sequences=100)
    assert found.tally.undecided == 100 and not found.differences
    assert "; 100 undecided: too many choices" in found.text()


@pytest.mark.parametrize(
    ("options", "unknown", "message"),
    [
        ({}, ("link", "access"), "model does not know link, access of names; `--calls open,unlink,rename,stat` leaves"),
        ({"calls": ["link"]}, ("link",), "model does not know link of names$"),
        ({"calls": ["open"]}, ("stat",), "model does not know stat, with which names begins or observes sequences"),
        ({"calls": ["open", "fly"]}, (), "names has no call 'fly'; it has open, link, "),
    ],
)
def test_calls_that_are_not_there_are_named(options: Any, unknown: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Conform(Names, ModelTarget(Names, unknown=unknown), **options)


@pytest.mark.parametrize("argument", ["scalefs", "plain", "linux"])
def test_the_file_name_calls_are_as_the_model_says(argument: str) -> None:
    found = conform_real("names", argument, sequences=200)
    assert found.differences == () and found.tally.sequences == 200 and found.tally.undecided == 0


@pytest.mark.parametrize("argument", ["scalefs", "plain", "linux"])
def test_a_mistake_of_a_model_is_found_on_a_real_target(argument: str) -> None:
    with Conform(RenameOfLinksRemoves, load_target(argument), sequences=500) as running:
        running.start(lambda text: None)
        (difference,) = running.run().differences
    assert [call.name for call in difference.shrunk.sequence.calls] == ["open", "link", "rename"]


def test_a_kernel_that_panics_is_reported_with_its_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is none makes the runner, which is the guest's init, give up, and so the kernel panic."""
    encode = batches.SequenceBatch.encode
    encoded = itertools.count()
    broken = 2

    def sabotaged(batch: batches.SequenceBatch) -> bytes:
        return b"no batch" if next(encoded) == broken else encode(batch)

    monkeypatch.setattr(batches.SequenceBatch, "encode", sabotaged)
    found = conform_real("names", "linux", sequences=256)
    (difference,) = found.differences
    assert difference.number == broken * BATCH_WINDOWS and difference.shrunk.repeats == 0
    assert "Kernel panic" in str(difference.shrunk.fault.crashed) and "not a batch" in difference.text()
    assert found.tally.sequences == 256


@pytest.mark.parametrize("calls", [None, ["open", "pipe", "write", "read", "close"]])
def test_linux_does_what_posix18_says(calls: list[str] | None) -> None:
    found = conform_real("posix18", "linux", sequences=250, calls=calls, seed=1_000_000)
    assert found.differences == () and found.tally.undecided == 0, found.text()


@pytest.mark.long
def test_linux_does_what_posix18_says_in_100_000_sequences() -> None:
    found = conform_real("posix18", "linux", sequences=100_000, jobs=2)
    assert found.differences == () and found.tally.undecided == 0, found.text()
    assert found.tally.sequences == 100_000


def conform_real(interface: str, target: str, **options: Any) -> Conformance:
    with Conform(load_interface(interface), load_target(target), **options) as running:
        running.start(lambda text: None)
        found = running.run()
    assert found.ended is None
    return found
