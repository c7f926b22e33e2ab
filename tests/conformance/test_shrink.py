"""Every planted mistake is found and shrunk to a shortest sequence that shows it, the same one each time."""

from __future__ import annotations

from typing import Any

import pytest

from commutant.conformance import Conform, Conformance
from commutant.interfaces.names import Names
from commutant.targets.base import SequenceRecord
from tests.conformance.model_target import ModelSession, ModelTarget
from tests.conformance.models import (
    SHORTEST,
    Cache,
    CacheComesBack,
    CacheInvents,
    RenameOfLinksRemoves,
    ThirdTicketIsNotHeld,
    Tickets,
)

SEQUENCES = 128
"""The last of the mistakes shows in the 30th, and the others within ten."""


def conform(interface: Any, target: Any, **options: Any) -> Conformance:
    with Conform(interface, target, **({"sequences": SEQUENCES} | options)) as running:
        running.start(lambda text: None)
        return running.run()


def calls_of(found: Conformance) -> list[str]:
    (difference,) = found.differences
    return [call.name for call in difference.shrunk.sequence.calls]


@pytest.mark.parametrize("mistake", SHORTEST, ids=lambda mistake: mistake.__name__)
def test_a_mistake_in_names_is_shrunk_to_a_shortest_sequence(mistake: Any) -> None:
    assert len(calls_of(conform(Names, ModelTarget(mistake)))) == SHORTEST[mistake]


FIRST, *OTHERS = SHORTEST


@pytest.mark.parametrize(
    "mistake", [FIRST, *(pytest.param(other, marks=pytest.mark.long) for other in OTHERS)], ids=lambda one: one.__name__
)
def test_a_mistake_in_the_model_is_shrunk_the_same_way(mistake: Any) -> None:
    assert len(calls_of(conform(mistake, ModelTarget(Names)))) == SHORTEST[mistake]


def test_a_mistake_among_choices_is_shrunk() -> None:
    assert calls_of(conform(Cache, ModelTarget(CacheInvents))) in ([], ["get"])  # the observation gets too
    assert calls_of(conform(Cache, ModelTarget(CacheComesBack))) == ["put", "get"]


def test_a_call_keeps_what_it_refers_to_when_others_are_dropped() -> None:
    found = conform(Tickets, ModelTarget(ThirdTicketIsNotHeld))
    assert calls_of(found)[:3] == ["take"] * 3 and calls_of(found)[3:] in (["give"], ["holds"])
    (difference,) = found.differences
    assert {call.process for call in difference.shrunk.sequence.calls} == {1}


def test_shrinking_is_deterministic_and_simplifies_arguments() -> None:
    (first,) = conform(Names, ModelTarget(RenameOfLinksRemoves), jobs=2).differences
    (again,) = conform(Names, ModelTarget(RenameOfLinksRemoves)).differences
    assert first.shrunk.sequence == again.shrunk.sequence and first.number == again.number
    sequence = first.shrunk.sequence
    assert {value for call in sequence.calls for value in call.arguments.values()} <= {"n0", "n1", True, False}
    assert {(call.process, call.core) for call in sequence.calls} == {(0, None)}


class Flaky(ModelSession):
    """Makes its mistake in every other run."""

    def _run(self, document: Any) -> SequenceRecord:
        right = self.implementation
        try:
            if self.ran % 2 == 0:
                self.implementation = RenameOfLinksRemoves
            return super()._run(document)
        finally:
            self.implementation = right


def test_a_difference_that_comes_now_and_then_is_shrunk_by_repetition() -> None:
    found = conform(Names, ModelTarget(Names, session=Flaky), sequences=256)
    assert len(calls_of(found)) == SHORTEST[RenameOfLinksRemoves]
    assert found.differences[0].shrunk.repeats == 8
    assert f"each candidate run {found.differences[0].shrunk.repeats} times" in found.text()


class IdentityCache(ModelSession):
    """Makes its mistake for the first sequences only."""

    def _run(self, document: Any) -> SequenceRecord:
        self.implementation = RenameOfLinksRemoves if self.ran <= 256 else Names
        return super()._run(document)


def test_a_difference_that_never_comes_again_is_told_as_it_was_drawn() -> None:
    (difference,) = conform(Names, ModelTarget(Names, session=IdentityCache), sequences=256).differences
    assert difference.shrunk.repeats == 0 and len(difference.shrunk.sequence.calls) == difference.calls_drawn
    assert "did not come again" in difference.text()
