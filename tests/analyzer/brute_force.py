"""SIM commutativity by the letter of its definition, on concrete states: every order, every prefix, every choice.

The counterpart of the symbolic engine: no sharing between orders, no cube of subsets, nothing lazy.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from commutant.lang.interface import Interface
from commutant.lang.nondeterminism import answered_by, finite_values
from commutant.lang.types import OpaqueValue, SortType, TimeValue, Type

Calls = Sequence[tuple[str, Mapping[str, Any]]]


class Refused(Exception):
    """The choice made in one order is not allowed in another."""


class Answers:
    """One way to answer every question of every call, the same in each order; `step` moves on to the next way."""

    def __init__(self, domains: Mapping[str, Sequence[Any]]) -> None:
        self._domains = domains
        self._picks: list[list[int]] = []
        self.begin_way()

    def begin_way(self) -> None:
        """Forgets the answers, to give them again."""
        self.given: dict[tuple[int, int, str], Any] = {}

    def step(self) -> bool:
        """Takes the next way to answer; False after the last."""
        self._picks = self._picks[: len(self.given)]
        while self._picks and self._picks[-1][0] + 1 == self._picks[-1][1]:
            self._picks.pop()
        if not self._picks:
            return False
        self._picks[-1][0] += 1
        self.begin_way()
        return True

    def answer(self, question: tuple[int, int, str], options: Callable[[], Sequence[Any]]) -> Any:
        """The answer to a question."""
        if question not in self.given:
            values = options()
            if not values:
                raise Refused
            position = len(self.given)
            if position == len(self._picks):
                self._picks.append([0, len(values)])
            self.given[question] = values[self._picks[position][0]]
        return self.given[question]

    def options(self, type_: Type) -> Sequence[Any]:
        """What may be chosen: any value of the domain, and one more."""
        if isinstance(type_, SortType):
            return [*self._domains[type_.sort.__name__], f"other.{type_.sort.__name__}"]
        return finite_values(type_)


class OrderOracle:
    """Answers on one order of the calls."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._in_use: list[Any] = []
        self.call = 0
        self.asked = 0

    def _question(self, type_: Type) -> tuple[int, int, str]:
        self.asked += 1
        return (self.call, self.asked - 1, repr(type_))

    def choose(self, type_: Type, allowed: Callable[[Any], Any]) -> Any:
        """The call's answer, if it is allowed here."""
        value = self._answers.answer(self._question(type_), lambda: self._answers.options(type_))
        if not allowed(value):
            raise Refused
        return value

    def unused(self, type_: SortType) -> Any:
        """The call's answer, if this order has not handed it out before."""
        sort = type_.sort.__name__
        question = self._question(type_)

        def options() -> list[Any]:
            before = [v for v in self._answers.given.values() if isinstance(v, OpaqueValue) and v.sort == sort]
            return [*dict.fromkeys(before), OpaqueValue(sort, f"fresh.{len(set(before))}")]

        value = self._answers.answer(question, options)
        if value in self._in_use:
            raise Refused
        self._in_use.append(value)
        return value

    def now(self) -> TimeValue:
        """The one time at which all calls run."""
        return NOW


NOW = TimeValue(1_000_000)


def commutes(start: Interface, calls: Calls, domains: Mapping[str, Sequence[Any]]) -> bool:
    """Whether the calls SIM-commute in the state (paper, section 3.2), for some choice of the implementation."""
    answers = Answers(domains)
    while True:
        try:
            if _agree(start, calls, answers):
                return True
        except Refused:
            pass
        if not answers.step():
            return False


def _agree(start: Interface, calls: Calls, answers: Answers) -> bool:
    results: dict[int, Any] = {}
    states: dict[frozenset[int], Interface] = {}
    for order in itertools.permutations(range(len(calls))):
        oracle = OrderOracle(answers)
        state = copy.deepcopy(start)
        for length, index in enumerate(order, 1):
            oracle.call, oracle.asked = index, 0
            name, arguments = calls[index]
            with answered_by(oracle):
                result = copy.deepcopy(getattr(state, name)(**copy.deepcopy(dict(arguments))))
            if not _same(results.setdefault(index, result), result):
                return False
            if not states.setdefault(frozenset(order[:length]), copy.deepcopy(state)).equivalent(state):
                return False
    return True


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def all_combinations(**choices: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Every way to pick one value per name."""
    for picked in itertools.product(*choices.values()):
        yield dict(zip(choices, picked, strict=True))
