"""SIM commutativity on models whose answer is known by hand: subsets, prefixes, choices."""

from __future__ import annotations

from typing import Annotated

import pytest
import z3

from commutant.analyzer import SetAnalysis, analyze
from commutant.analyzer.commute import CallSet
from commutant.lang import Capacity, Errno, Interface, Map, Range, Seq, Set, Sort, call, choose, load_interface, unused
from commutant.symbolic import Context, explore
from tests.analyzer.interpretation import proved, read_condition


class Register(Interface):
    """The paper's get/set interface (section 3.2)."""

    value: int

    @call
    def set(self, new: int) -> None:
        self.value = new

    @call
    def set1(self) -> None:
        self.value = 1

    @call
    def set2(self) -> None:
        self.value = 2

    @call
    def get(self) -> int:
        return self.value


class Counter(Interface):
    value: int
    limit: Annotated[int, Range(0, 10)]

    @call
    def add(self, amount: int) -> None:
        self.value += amount

    @call
    def increment(self) -> int:
        self.value += 1
        return self.value

    @call
    def below(self) -> bool:
        return self.value < self.limit


class Queue(Interface):
    items: Annotated[Seq[int], Capacity(2)]

    @call
    def push(self, item: int) -> None:
        self.items.append(item)

    @call
    def pop(self) -> int | Errno:
        return self.items.pop(0) if self.items else Errno.EAGAIN

    @call
    def size(self) -> int:
        return len(self.items)


class Number(Sort, opaque=True):
    """A number that the implementation picks."""


class Slots(Interface):
    """Four slots: take any that is free, or the lowest one."""

    taken: Map[int, bool]
    low: Annotated[int, Range(0, 3)]

    @call
    def take_any(self) -> int:
        slot = choose(Annotated[int, Range(0, 3)], lambda slot: slot not in self.taken)
        self.taken[slot] = True
        return slot

    @call
    def take_above(self, floor: int) -> None:
        slot = choose(Annotated[int, Range(0, 9)], lambda slot: slot >= floor)
        if slot > 5:
            self.low = 0
        else:
            self.low = 1

    @call
    def take_lowest(self) -> int:
        slot = 0
        while slot < 3 and slot in self.taken:
            slot += 1
        self.taken[slot] = True
        return slot

    @call
    def coin(self) -> bool:
        return choose(bool)

    @call
    def kept_coin(self) -> None:
        self.low = 1 if choose(bool) else 0

    @call
    def impossible(self) -> int:
        return choose(Annotated[int, Range(0, 3)], lambda slot: slot > 3)

    @call
    def above_low(self) -> int:
        return choose(Annotated[int, Range(0, 3)], lambda value: value > self.low)

    @call
    def raise_low(self) -> None:
        self.low = 3


class Mint(Interface):
    made: Map[Number, bool]
    last: Number

    @call
    def mint(self) -> Number:
        number = unused(Number)
        self.made[number] = True
        return number

    @call
    def mint_last(self) -> None:
        self.last = unused(Number)


def only(interface: type[Interface], *calls: str) -> SetAnalysis:
    return analyze(interface, calls, size=len(calls)).sets[0]


def always(one: SetAnalysis) -> bool:
    return one.conditions == ["always"]


def never(one: SetAnalysis) -> bool:
    return one.conditions == []


def test_the_papers_three_sets_do_not_commute_although_their_permutations_agree() -> None:
    assert never(only(Register, "set1", "set2", "set2"))
    assert never(only(Register, "set1", "set2"))
    assert always(only(Register, "set2", "set2"))


def test_three_sets_commute_where_all_values_are_one() -> None:
    assert only(Register, "set", "set", "set").conditions == ["new.0 = new.1; new.0 = new.2"]


def test_a_single_call_always_commutes() -> None:
    assert always(only(Register, "set"))
    assert always(only(Queue, "pop"))


def test_a_set_and_a_get_commute_where_the_set_changes_nothing() -> None:
    assert only(Register, "set", "get").conditions == ["value = new.0"]


def test_additions_commute_and_counted_increments_do_not() -> None:
    assert always(only(Counter, "add", "add", "add"))
    assert never(only(Counter, "increment", "increment"))
    assert only(Counter, "add", "increment").conditions == ["amount.0 = 0"]


def test_an_addition_and_a_comparison_commute_where_it_does_not_cross_the_limit() -> None:
    assert only(Counter, "add", "below").conditions == [
        "value < limit; value + amount.0 < limit",
        "value ≥ limit; value + amount.0 ≥ limit",
    ]


def test_queues() -> None:
    assert only(Queue, "push", "push").conditions == ["item.0 = item.1"]
    assert only(Queue, "pop", "pop").conditions == ["len(items) ≤ 0", "len(items) > 1; items[0] = items[1]"]
    assert only(Queue, "push", "pop").conditions == ["len(items) > 0"]
    assert always(only(Queue, "size", "size"))
    assert never(only(Queue, "push", "size"))


def test_any_unused_number_commutes() -> None:
    assert always(only(Mint, "mint", "mint"))
    assert always(only(Mint, "mint", "mint", "mint"))


def test_an_unused_number_that_is_kept_last_does_not_commute() -> None:
    """Both orders leave two different numbers behind."""
    assert never(only(Mint, "mint_last", "mint_last"))


def test_any_two_free_slots_commute() -> None:
    """Which two of four slots are free is written out."""
    one = only(Slots, "take_any", "take_any")
    assert len(one.conditions) == 6
    assert "2 and 0 not in taken" in one.conditions
    assert [difference for difference, _ in one.refusals] == ["no choice is allowed in every order"]
    condition = read_condition(one.to_smt2())
    taken = z3.Function("taken_has", z3.IntSort(), z3.BoolSort())
    two_free = z3.AtLeast(*(z3.Not(taken(slot)) for slot in range(4)), 2)
    assert proved(condition == two_free)


def test_the_lowest_free_slot_commutes_only_where_there_is_no_other() -> None:
    """The model's fourth slot can be taken twice."""
    assert only(Slots, "take_lowest", "take_lowest").conditions == ["0, 1 and 2 in taken"]


def test_a_choice_that_no_order_allows_never_commutes() -> None:
    one = only(Slots, "impossible", "coin")
    assert never(one)
    assert [difference for difference, _ in one.refusals] == ["no choice is allowed in every order"]


def test_coins_commute() -> None:
    assert always(only(Slots, "coin", "coin"))
    assert always(only(Slots, "kept_coin", "kept_coin"))


def test_a_choice_that_another_call_forbids() -> None:
    """Above low: nothing is once low is 3."""
    assert never(only(Slots, "above_low", "raise_low"))
    assert only(Slots, "above_low", "above_low").conditions == ["low ≤ 2"]


def test_bounds_of_a_choice_are_part_of_the_condition() -> None:
    """Some slot from 0 to 9 is at least the floor where the floor is at most 9."""
    assert only(Slots, "take_above").conditions == ["floor.0 ≤ 9"]
    assert only(Slots, "take_above", "take_above").conditions == ["floor.0 ≤ 9; floor.1 ≤ 9"]


@pytest.mark.parametrize("creating", [("open", "open"), ("open", "open", "open")])
def test_opens_that_create_the_same_name_commute_if_none_is_exclusive(creating: tuple[str, ...]) -> None:
    """The call that comes first gets the inode number that either might have got."""
    one = only(load_interface("names"), *creating)
    facts = [
        [fact for fact in leaf.facts if fact.kind == "bool"]
        for leaf in one.leaves
        if leaf.commutes and any(".choice." in repr(fact) for fact in leaf.facts)
    ]
    assert facts
    assert not any(".choice." in repr(cube) for cube in one.cubes)


def test_refusals_leave_out_what_another_choice_makes_commute() -> None:
    sentences = [s for _, group in only(Slots, "kept_coin", "kept_coin").refusals for s in group]
    assert sentences == []


class Jitter(Interface):
    """A value that calls use in ways that show, and in ways that do not."""

    value: Annotated[int, Range(0, 5)]

    @call
    def set(self, to: Annotated[int, Range(0, 5)]) -> None:
        self.value = to

    @call
    def work(self) -> None:
        choose(Annotated[int, Range(0, 5)], lambda near: near == self.value)

    @call
    def near(self) -> int:
        return choose(Annotated[int, Range(0, 5)], lambda near: near == self.value)


def test_a_choice_that_nobody_sees_may_differ_between_orders() -> None:
    assert always(only(Jitter, "set", "work"))
    assert only(Jitter, "set", "near").conditions == ["to.0 = value"]


@pytest.mark.parametrize(
    ("interface", "calls", "chooses"), [(Register, ("get", "set"), False), (Jitter, ("near", "set"), True)]
)
def test_orders_run_again_only_where_a_choice_was_handed_on(
    monkeypatch: pytest.MonkeyPatch, interface: type[Interface], calls: tuple[str, ...], chooses: bool
) -> None:
    """Elsewhere each path with a difference would be run twice, for the same answer."""
    again = []
    own_choices = CallSet._own_choices
    monkeypatch.setattr(CallSet, "_own_choices", lambda *given: again.append(1) or own_choices(*given))
    found = only(interface, *calls)
    assert found.commutative_paths < found.paths and bool(again) == chooses


class Sum(Interface):
    """Two numbers, and a choice that depends on both and that no one sees."""

    left: Annotated[int, Range(0, 5)]
    right: Annotated[int, Range(0, 5)]

    @call
    def set_left(self, to: Annotated[int, Range(0, 5)]) -> None:
        self.left = to

    @call
    def set_right(self, to: Annotated[int, Range(0, 5)]) -> None:
        self.right = to

    @call
    def work(self) -> None:
        choose(Annotated[int, Range(0, 10)], lambda near: near == self.left + self.right)


def test_a_choice_that_nobody_sees_may_differ_between_all_orders_of_three() -> None:
    """After the first, the second and both of the others."""
    assert always(only(Sum, "set_left", "set_right", "work"))


def test_a_path_ends_where_single_calls_left_the_state() -> None:
    """Tests take from there what calls change (`testgen.classes`)."""
    calls = CallSet(Register, ("get", "set"))

    def program(context: Context) -> bool:
        outcome = calls.run(context)
        after_get, after_set = outcome.ends
        return (
            after_get.value.linear == outcome.initial.value.linear
            and after_set.value.linear == outcome.arguments[1]["new"].linear
        )

    assert all(path.result for path in explore(program))


class Pool(Interface):
    """What is taken out is not returned."""

    kept: Set[int]

    @call
    def take(self) -> bool:
        if not self.kept:
            return False
        self.kept.remove(choose(self.kept))
        return True


def test_choices_that_differ_are_not_told_where_the_same_ones_do() -> None:
    assert only(Pool, "take", "take").conditions == [
        "len(kept) ≤ 0",
        "for some choice.0, choice.1: choice.0 and choice.1 in kept; len(kept) > 0; choice.0 ≠ choice.1",
    ]
