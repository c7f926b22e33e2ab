"""Judging: whatever a right implementation picks is right, and what no resolution allows is found where it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from commutant.conformance import judge as judging
from commutant.conformance.draw import Drawer
from commutant.conformance.judge import Mismatch, Undecided, judge
from commutant.conformance.script import write_script
from commutant.conformance.sequence import Call, CallSequence
from commutant.interfaces.names import Name, Names
from tests.conformance.model_target import ModelSession
from tests.conformance.models import (
    Cache,
    CacheComesBack,
    CacheInvents,
    Clock,
    ClockGoesBack,
    InodesAreReusedTooEarly,
    Key,
    Tickets,
    TicketsAgain,
)

NUMBERS = range(250)


def judged(interface: Any, implementation: Any, numbers: range = NUMBERS) -> list[Mismatch | None]:
    """What is said of sequences of `interface` that were run on `implementation`."""
    drawer = Drawer(interface, interface.call_names(), 20)
    session = ModelSession(implementation)
    verdicts = []
    for number in numbers:
        _, script = drawer.draw(number)
        (record,) = session.run_sequences([script.text()])
        assert record.actual is not None
        actual = json.loads(record.actual)
        verdicts.append(judge(interface, script, actual["results"] + actual["observation"]))
    return verdicts


@pytest.mark.parametrize(
    ("interface", "implementation"),
    [
        (Names, Names),
        (Tickets, Tickets),
        (Tickets, TicketsAgain),
        (Cache, Cache),
        (Clock, Clock),
    ],
)
def test_what_the_model_allows_is_right_however_it_is_resolved(interface: Any, implementation: Any) -> None:
    assert judged(interface, implementation) == [None] * len(NUMBERS)


@pytest.mark.parametrize(
    ("interface", "implementation", "least"),
    [
        (Names, InodesAreReusedTooEarly, 50),
        (Cache, CacheInvents, 100),
        (Cache, CacheComesBack, 20),
        (Clock, ClockGoesBack, 2),
    ],
)
def test_what_the_model_does_not_allow_is_wrong(interface: Any, implementation: Any, least: int) -> None:
    assert sum(verdict is not None for verdict in judged(interface, implementation)) >= least


def script_of(
    interface: Any, *calls: tuple[str, dict[str, Any]], pools: dict[Any, tuple[Any, ...]] | None = None
) -> Any:
    made = tuple(Call(number, name, given, 0, 0) for number, (name, given) in enumerate(calls))
    return write_script(interface, CallSequence(pools or {}, made))


def test_the_first_step_that_does_not_fit_is_told_with_what_would() -> None:
    script = script_of(
        Names, ("open", {"name": "n0", "creat": True, "excl": False}), ("stat", {"name": "n0"}), pools={Name: ("n0",)}
    )
    right = [0, {"struct": {"ino": {"sort": "Inum", "id": 7}, "nlink": 1}}]
    other = {"struct": {"ino": {"sort": "Inum", "id": 7}, "nlink": 2}}
    assert judge(Names, script, [*right, right[1]]) is None
    acceptable = {"struct": {"ino": {"sort": "Inum", "id": 7}, "nlink": 1}}
    assert judge(Names, script, [*right, other]) == Mismatch(2, "nlink", (acceptable,), other)
    new = {"struct": {"ino": {"sort": "Inum", "id": None}, "nlink": 1}}
    assert judge(Names, script, [0, other, right[1]]) == Mismatch(1, "nlink", (new,), other)
    moved = {"struct": {"ino": {"sort": "Inum", "id": 8}, "nlink": 1}}
    assert judge(Names, script, [*right, moved]) == Mismatch(2, "ino", (acceptable,), moved)


def test_a_runner_may_tell_more_but_not_less() -> None:
    script = script_of(Names, ("open", {"name": "n0", "creat": True, "excl": False}), pools={Name: ("n0",)})
    more = {"struct": {"ino": {"sort": "Inum", "id": 7}, "nlink": 1, "size": 0}}
    assert judge(Names, script, [0, more]) is None
    less = {"struct": {"nlink": 1}}
    assert judge(Names, script, [0, less]) is not None


def test_numbers_and_truth_values_are_not_mixed_up() -> None:
    script = script_of(
        Names, ("access", {"name": "n0"}), ("open", {"name": "n0", "creat": True, "excl": False}), pools={Name: ()}
    )
    assert judge(Names, script, [{"errno": "ENOENT"}, 0]) is None
    for wrong in (False, None, "0", {"errno": "ENOENT"}, {"time": 0}):
        assert judge(Names, script, [{"errno": "ENOENT"}, wrong]) == Mismatch(1, "", (0,), wrong)


def test_times_are_compared_by_order() -> None:
    script = script_of(Clock, ("stat", {}), ("write", {"value": 1}), ("stat", {}))

    def actual(before: int, behind: int) -> Any:
        stamps = [{"struct": {"changed": {"time": time}, "read": {"time": 5}}} for time in (before, behind)]
        return judge(Clock, script, [stamps[0], 0, stamps[1]])

    assert actual(5, 5) is None and actual(5, 9) is None
    assert actual(5, 4) == Mismatch(
        2,
        "changed",
        ({"struct": {"changed": {"time": [5, None]}, "read": {"time": [None, None]}}},),
        {"struct": {"changed": {"time": 4}, "read": {"time": 5}}},
    )


def test_too_many_ways_are_left_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    puts = [("put", {"key": f"k{number}", "value": 1}) for number in range(8)]
    script = script_of(Cache, *puts, *[("size", {})] * 2, pools={Key: tuple(f"k{number}" for number in range(8))})
    results = [0] * 8 + [4, 4] + [1] * 8
    assert judge(Cache, script, results) is None
    monkeypatch.setattr(judging, "MAX_WAYS", 0)
    with pytest.raises(Undecided):
        judge(Cache, script, results)
