"""SMT-LIB text: every condition parses in Z3, over the model's own names, and says what the paths say."""

from __future__ import annotations

from typing import Annotated

import pytest
import z3

from commutant.analyzer import SetAnalysis, analyze
from commutant.analyzer.analysis import sets_of_calls
from commutant.lang import Capacity, Interface, Map, Range, Seq, Sort, Struct, call, load_interface
from commutant.lang.types import IntType
from commutant.support.errors import UsageError
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


def check_posix18(calls: tuple[str, ...]) -> None:
    """The script parses; where no choice is made, it says of every well-formed state what the paths say."""
    one = analyze(load_interface("posix18"), calls).sets[0]
    condition = read_condition(one.to_smt2())
    if not one.choices.scalars:
        terms = Z3Terms(all_signatures(one.interface, one.calls))
        commuting = terms.union(leaf.facts for leaf in one.leaves if leaf.commutes)
        feasible = terms.union(leaf.facts for leaf in one.leaves if leaf.feasible)
        arguments = integer_arguments(one)
        bounds = [terms.term(("constant", name)) >= type_.low for name, type_ in arguments if type_.low is not None]
        assert proved(z3.Implies(feasible, condition == commuting), *bounds)


def integer_arguments(one: SetAnalysis) -> list[tuple[str, IntType]]:
    return [
        (f"{call}.{index}.{name}", type_)
        for index, call in enumerate(one.calls)
        for name, type_ in one.interface.signature(call).parameters.items()
        if isinstance(type_, IntType)
    ]


@pytest.mark.parametrize(
    "calls", [("open", "close"), ("rename", "stat"), ("pipe", "close"), ("lseek", "close"), ("pread", "pread")]
)
def test_posix18(calls: tuple[str, ...]) -> None:
    check_posix18(calls)


@pytest.mark.long
@pytest.mark.parametrize("calls", sets_of_calls(load_interface("posix18"), None, 2), ids="-".join)
def test_every_pair_of_posix18(calls: tuple[str, ...]) -> None:
    check_posix18(calls)


class String(Sort):
    """Called like a sort of SMT-LIB."""


class Awkward(Interface):
    let: bool
    true: Map[String, bool]
    größe: int

    @call
    def ite(self, forall: String, größer: int) -> bool:
        self.größe = größer
        return self.let if forall in self.true else self.true.get(forall, False)


class Twice(Interface):
    entry: Map[Key, bool]
    entry_has: bool

    @call
    def f(self, key: Key) -> bool:
        return key in self.entry and self.entry_has


def test_names_that_smtlib_takes_for_itself() -> None:
    """What SMT-LIB knows already gets a `!`; what it cannot read stands in bars."""
    text = analyze(Awkward).sets[0].to_smt2()
    assert "(declare-sort String! 0)" in text
    assert "(declare-fun let! () Bool)" in text
    assert "(declare-fun |größe| () Int)" in text
    read_condition(text)


def test_two_parts_of_a_state_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match=r"Twice: two parts of the state are called entry_has in conditions"):
        _ = analyze(Twice).sets[0].conditions
