"""Drawing: of all types, the same each time, with what calls returned, and about something."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from commutant.conformance.draw import Drawer
from commutant.conformance.sequence import Returned
from commutant.guard.faults import ModelFault
from commutant.interfaces.names import Name, Names
from commutant.lang import Process, call, load_interface
from commutant.lang.types import OpaqueValue
from tests.conformance.models import AllTypes, Data, Key, Tickets

NUMBERS = range(300)


def drawn(interface: Any, length: int = 20, numbers: range = NUMBERS) -> list[Any]:
    drawer = Drawer(interface, interface.call_names(), length)
    return [drawer.draw(number) for number in numbers]


def test_a_sequence_depends_on_its_number_alone() -> None:
    first = [script.text() for _, script in drawn(Names)]
    again = [script.text() for _, script in drawn(Names)]
    assert first == again
    assert len(set(first)) > len(first) * 9 // 10


def test_arguments_are_of_their_types() -> None:
    lengths = set()
    for sequence, script in drawn(AllTypes, 12):
        lengths.add(len(sequence.calls))
        for step in script.calls:
            if step.call != "every":
                continue
            given = step.arguments
            assert given["process"] == step.process and step.process in sequence.pools[Process]
            assert type(given["flag"]) is bool and given["small"] in (3, 4, 5) and given["large"] >= 0
            assert type(given["any_number"]) is int
            key, flag = given["couple"]
            assert key in sequence.pools[Key] and type(flag) is bool
            assert given["pair"].key in sequence.pools[Key] and given["pair"].data in sequence.pools[Data]
            assert all(item in sequence.pools[Data] for item in given["items"])
            assert 0 in sequence.pools[Data]
    assert max(lengths) == 12 and min(lengths) < 4


def test_what_calls_returned_is_given_to_later_ones_of_the_same_process() -> None:
    reused = Counter[str]()
    for sequence, script in drawn(Tickets):
        owners = {}
        for drawn_call, step in zip(sequence.calls, script.calls, strict=True):
            ticket = step.arguments.get("ticket")
            if isinstance(ticket, OpaqueValue):
                assert isinstance(drawn_call.arguments["ticket"], Returned)
                assert owners[ticket.label.split(".")[0]] == step.process
                reused[step.call] += 1
            owners[step.label] = step.process
    assert reused["give"] > 100 and reused["holds"] > 100


@pytest.mark.parametrize("name", ["names", "posix18"])
def test_every_call_succeeds_and_fails_somewhere(name: str) -> None:
    interface = load_interface(name)
    seen = Counter[tuple[str, bool]]()
    for sequence, script in drawn(interface):
        documents = script.documents[len(script.begin) : len(script.begin) + len(sequence.calls)]
        for document in documents:
            result = document["result"]
            seen[str(document["call"]), isinstance(result, dict) and bool({"errno", "signal"} & result.keys())] += 1
    never_fail = {"munmap", "pipe"} if name == "posix18" else set()
    for call_name in interface.call_names():
        assert seen[call_name, False] > 3, call_name
        assert call_name in never_fail or seen[call_name, True] > 3, call_name
    assert sum(count for (_, failed), count in seen.items() if not failed) > sum(seen.values()) // 3


def test_only_the_calls_that_are_asked_for_are_drawn() -> None:
    drawer = Drawer(Names, ("open", "stat"), 9)
    for number in NUMBERS:
        sequence, script = drawer.draw(number)
        assert {made.name for made in sequence.calls} <= {"open", "stat"} and len(sequence.calls) <= 9
        json.loads(script.text())


class Broken(Names):
    """A model that cannot do a thing that it should."""

    @call
    def unlink(self, name: Name) -> int:
        del self.names[name]
        return 0


def test_a_model_that_fails_is_told_with_the_number_of_the_sequence() -> None:
    with pytest.raises(ModelFault, match=r"Broken.unlink raised KeyError.*in sequence \d+; `--seed \d+ --sequences 1`"):
        drawn(Broken)


def test_values_of_calls_that_are_left_out_are_left_out_too() -> None:
    """So that nothing has to be observed that no call could have changed; others, such as directories, stay."""
    interface = load_interface("posix18")
    drawer = Drawer(interface, ("open", "unlink"), 9)
    for number in range(20):
        sequence, script = drawer.draw(number)
        pools = {sort.__name__: pool for sort, pool in sequence.pools.items()}
        assert not pools["Address"] and pools["Directory"] and pools["Name"]
        assert "peek_memory" not in {step.call for step in script.observe}
