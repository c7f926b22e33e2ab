"""What an analysis says as data: the facts of its cases, whatever they are about, and no more than was asked for."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Annotated, Any

import pytest
from msgspec import UNSET, UnsetType

from commutant.analyzer import SetAnalysis, analyze
from commutant.analyzer.condition import Fact, fact_entry
from commutant.analyzer.document import AnalysisDocument, FactEntry, SummandEntry, TermEntry
from commutant.documents import encode, read
from commutant.lang import Interface, Map, Range, call, load_interface

KINDS = {"bool": "bool", "same": "same", "at_most_zero": "<=", "zero": "=="}


def term_of(entry: TermEntry | UnsetType) -> tuple[Any, ...]:
    """The term that an entry says."""
    assert entry is not UNSET
    if entry.constant is not UNSET and entry.terms is UNSET:
        return ("constant", entry.constant)
    if entry.function is not UNSET:
        assert entry.arguments is not UNSET
        return ("apply", entry.function, tuple(map(term_of, entry.arguments)))
    if entry.terms is not UNSET:
        return ("sum", summands_of(entry.terms), entry.constant)
    return ("value", entry.value)


def summands_of(entries: tuple[SummandEntry, ...] | UnsetType) -> tuple[Any, ...]:
    assert entries is not UNSET
    return tuple((term_of(entry.term), entry.coefficient) for entry in entries)


def fact_of(entry: FactEntry) -> Fact:
    """The fact that an entry says."""
    if entry.kind == "bool":
        return Fact("bool", term_of(entry.term), None, entry.holds)
    if entry.kind == "same":
        return Fact("same", term_of(entry.left), term_of(entry.right), entry.holds)
    return Fact(KINDS[entry.kind], summands_of(entry.terms), entry.constant, entry.holds)


class Accounts(Interface):
    """Conditions on sums, and on values under keys that are sums."""

    money: Annotated[int, Range(0, None)]
    owed: Map[int, int]
    closed: bool

    @call
    def pay(self, amount: Annotated[int, Range(1, 9)]) -> bool:
        if self.closed or self.money < amount:
            return False
        self.money -= amount
        return True

    @call
    def settle(self, place: int) -> int:
        owed = self.owed.get(place + 1, 0)
        self.owed[place] = 0
        return owed


SETS: list[tuple[Any, list[str], set[str]]] = [
    (Accounts, ["pay", "pay"], {"bool", "<="}),
    (Accounts, ["settle", "settle"], {"bool", "=="}),
    (load_interface("names"), ["stat", "unlink"], {"bool", "same"}),
]


@pytest.mark.parametrize(("interface", "calls", "kinds"), SETS, ids=["pay-pay", "settle-settle", "stat-unlink"])
def test_the_data_say_what_the_cases_say(interface: Any, calls: list[str], kinds: set[str]) -> None:
    with_data = analyze(interface, calls, detail="data")
    document = read(AnalysisDocument, encode(with_data.document()))
    assert document == with_data.document()
    (entry,), (one,) = document.sets, analyze(interface, calls).sets
    assert entry.calls == one.calls
    assert entry.smt2 == one.to_smt2()
    assert entry.conditions is not UNSET
    said = [(case.text, tuple(map(fact_of, case.facts))) for case in entry.conditions]
    assert said == [(text, tuple(cube)) for text, cube in one.cases]
    assert {fact.kind for _, cube in said for fact in cube} == kinds


@pytest.mark.parametrize("key", [7, True])
def test_a_value_as_a_key_is_in_the_data(key: int) -> None:
    fact = Fact("bool", ("apply", "owed_has", (("value", key),)), None, True)
    assert fact_of(read(FactEntry, encode(fact_entry(fact)))) == fact


def test_what_was_not_asked_for_is_not_there() -> None:
    """Counts alone are short, in a document and in words, even if the script is there already."""
    one = analyze(load_interface("names"), ["stat", "unlink"], detail="smt2").sets[0]
    entry = one.entry()
    assert (entry.paths, entry.commutative_paths, entry.unknown) == (one.paths, one.commutative_paths, 0)
    assert (entry.conditions, entry.smt2) == (UNSET, UNSET)
    assert "assert" not in repr(one) and len(repr(one)) < 200


def test_conditions_without_a_script_have_none() -> None:
    whole = analyze(load_interface("names"), ["stat", "unlink"], detail="data").sets[0]
    alone = SetAnalysis(whole.interface, whole.calls, whole.paths, whole.commutative_paths, known_data=whole.known_data)
    assert (alone.entry().conditions, alone.entry().smt2) == (whole.known_data, UNSET)


def test_a_document_is_not_changed_by_its_readers() -> None:
    analysis = analyze(load_interface("names"), ["stat", "unlink"], detail="data")
    document = analysis.document()
    (entry,) = document.sets
    assert entry.conditions is not UNSET
    case = entry.conditions[0]
    (on_sums,) = analyze(Accounts, ["settle", "settle"], detail="data").document().sets
    assert on_sums.conditions is not UNSET
    summands = [fact.terms for case in on_sums.conditions for fact in case.facts if fact.terms is not UNSET]
    for value in (document, entry, case, case.facts[0], summands[0][0], summands[0][0].term):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(value, value.__struct_fields__[-1], None)
    for leaf in analyze(load_interface("names"), ["stat", "unlink"]).sets[0].leaves:
        with pytest.raises(FrozenInstanceError):
            leaf.feasible = False  # type: ignore[misc]
        assert not hasattr(leaf, "__dict__"), "a set may have 100,000 paths"
