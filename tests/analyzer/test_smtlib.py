"""SMT-LIB text: every condition parses in Z3, over the model's own names, and says what the paths say."""

from __future__ import annotations

from typing import Annotated

import pytest
import z3

from commutant.analyzer import SetAnalysis, analyze
from commutant.lang import Capacity, Interface, Map, Range, Seq, Sort, Struct, call, load_interface
from tests.analyzer.interpretation import Z3Terms, all_signatures, proved, read_condition

NAMES = analyze(load_interface("names")).sets


class Key(Sort):
    """A key."""


class Entry(Struct):
    flag: bool
    count: int
    pair: tuple[Key, int]


class Everything(Interface):
    """One attribute of each kind."""

    flag: bool
    count: Annotated[int, Range(0, 9)]
    pair: tuple[Key, bool]
    entry: Entry
    queue: Annotated[Seq[Entry], Capacity(1)]
    plain: Map[Key, Key]
    numbered: Map[int, int]
    nested: Map[Key, Map[tuple[Key, bool], Entry]]
    truth: Map[bool, bool]

    @call
    def scalars(self, flag: bool, count: int, pair: tuple[Key, bool]) -> bool:
        self.flag = flag and pair == self.pair
        self.count -= 2 * count
        return self.count < 3 * count

    @call
    def entries(self, entry: Entry) -> bool:
        same = self.entry == entry
        self.queue.append(entry)
        return same

    @call
    def numbers(self, number: Annotated[int, Range(-2, 2)], flag: bool) -> None:
        self.truth[flag] = True
        self.numbered[number] = self.numbered.get(number + 1, -1)

    @call
    def maps(self, key: Key, flag: bool) -> int:
        found = self.plain.get(key, key)
        if found in self.nested:
            inner = self.nested[found]
            if (key, flag) in inner and inner[key, flag].pair[0] == found:
                inner[key, flag].count += 1
                return inner[key, flag].count
        return 0

    @call
    def free(self) -> int:
        return self.numbered.lowest_absent()


EVERYTHING = analyze(Everything).sets


def name_of(one: SetAnalysis) -> str:
    return "-".join(one.calls)


@pytest.mark.parametrize("one", [*NAMES, *EVERYTHING], ids=name_of)
def test_every_condition_parses(one: SetAnalysis) -> None:
    solver = z3.Solver()
    solver.add(read_condition(one.to_smt2()))
    assert solver.check() == (z3.sat if one.commutative_paths else z3.unsat)


@pytest.mark.parametrize("one", [one for one in NAMES if "open" not in one.calls], ids=name_of)
def test_the_text_says_what_the_paths_say(one: SetAnalysis) -> None:
    """Among the well-formed states, which are those of the feasible paths."""
    terms = Z3Terms(all_signatures(one.interface, one.calls))
    commuting = terms.union(leaf.facts for leaf in one.leaves if leaf.commutes)
    feasible = terms.union(leaf.facts for leaf in one.leaves if leaf.feasible)
    condition = read_condition(one.to_smt2())
    assert proved(z3.Implies(feasible, condition == commuting))


def test_declarations_use_the_models_names() -> None:
    text = next(one for one in EVERYTHING if one.calls == ("maps", "maps")).to_smt2()
    for declaration in (
        "(declare-sort Key 0)",
        "(declare-fun plain_has (Key) Bool)",
        "(declare-fun plain_value (Key) Key)",
        "(declare-fun nested_has (Key) Bool)",
        "(declare-fun nested_value_has (Key Key Bool) Bool)",
        "(declare-fun nested_value_pair_1 (Key Key Bool) Int)",
        "(declare-fun numbered_free (Int) Int)",
        "(declare-fun queue_length () Int)",
        "(declare-const maps.1.flag Bool)",
    ):
        assert declaration in text


def test_a_set_that_never_commutes_is_unsatisfiable() -> None:
    class Ticket(Interface):
        next: int

        @call
        def draw(self) -> int:
            self.next += 1
            return self.next

    one = analyze(Ticket, ["draw", "draw"]).sets[0]
    assert "(assert false)" in one.to_smt2()
    assert one.conditions == []


def test_a_set_that_always_commutes_is_true() -> None:
    one = analyze(load_interface("names"), ["stat", "access"]).sets[0]
    assert "(assert true)" in one.to_smt2()
    assert one.conditions == ["always"]
