"""SIM commutativity by the letter of its definition, on concrete states: every order, every prefix, every choice.

The counterpart of the symbolic engine: no sharing between orders, no cube of subsets, nothing lazy.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from commutant.lang.interface import Interface
from commutant.lang.nondeterminism import answered_by, finite_values
from commutant.lang.types import OpaqueValue, SortType, TimeValue, Type

Calls = Sequence[tuple[str, Mapping[str, Any]]]


class Refused(Exception):
    """Nothing is allowed for a choice."""


class Run(NamedTuple):
    """One order of the calls by some choices: what each call returned, the state after each of them, and the fresh
    values by call and question, which are the same in every order."""

    results: dict[int, Any]
    states: dict[frozenset[int], Interface]
    fresh: dict[tuple[int, int, str], Any]


class Oracle:
    """Answers one order's questions by prescribed positions among the options, and notes how many there were."""

    def __init__(
        self,
        picks: Sequence[int],
        domains: Mapping[str, Sequence[Any]],
        known: Mapping[tuple[int, int, str], Any],
    ) -> None:
        self._picks = picks
        self._domains = domains
        self._known = known
        self.call = 0
        self.asked = 0
        self.fresh: dict[tuple[int, int, str], Any] = {}
        self.taken: list[tuple[int, int]] = []

    def _pick(self, options: Sequence[Any]) -> Any:
        if not options:
            raise Refused
        position = self._picks[len(self.taken)] if len(self.taken) < len(self._picks) else 0
        self.taken.append((position, len(options)))
        return options[position]

    def choose(self, type_: Type, allowed: Callable[[Any], Any]) -> Any:
        """Any value of the domain, or one more, that is allowed here."""
        self.asked += 1
        if isinstance(type_, SortType):
            values = [*self._domains[type_.sort.__name__], f"other.{type_.sort.__name__}"]
        else:
            values = finite_values(type_)
        return self._pick([value for value in values if allowed(value)])

    def unused(self, type_: SortType) -> Any:
        """What the call was given in other orders; else any fresh value that this order has not handed out."""
        self.asked += 1
        sort, in_use = type_.sort.__name__, self.fresh.values()
        question = (self.call, self.asked, sort)
        if question in self._known:
            options = [self._known[question]]
        else:
            before = [value for value in self._known.values() if value.sort == sort]
            label = f"fresh.{len(self._known) + len(self.fresh)}"
            options = [*dict.fromkeys(before), OpaqueValue(sort, label)]
        value = self._pick([value for value in options if value not in in_use])
        self.fresh[question] = value
        return value

    def now(self) -> TimeValue:
        """The one time at which all calls run."""
        return NOW


NOW = TimeValue(1_000_000)


def commutes(start: Interface, calls: Calls, domains: Mapping[str, Sequence[Any]]) -> bool:
    """Whether the calls SIM-commute in the state (paper, section 3.2): whether each order has a run, by choices of its
    own, such that all return the same and reach equivalent states."""
    orders = list(itertools.permutations(range(len(calls))))

    def agree(chosen: list[Run], known: dict[tuple[int, int, str], Any]) -> bool:
        if len(chosen) == len(orders):
            return True
        return any(
            all(_compatible(one, other) for other in chosen) and agree([*chosen, one], {**known, **one.fresh})
            for one in _runs(start, calls, orders[len(chosen)], domains, known)
        )

    return agree([], {})


def _runs(
    start: Interface,
    calls: Calls,
    order: Sequence[int],
    domains: Mapping[str, Sequence[Any]],
    known: Mapping[tuple[int, int, str], Any],
) -> Iterator[Run]:
    """Every run of an order in which fresh values are the known ones."""
    picks: list[int] | None = []
    while picks is not None:
        oracle = Oracle(picks, domains, known)
        run = Run({}, {}, oracle.fresh)
        state = copy.deepcopy(start)
        try:
            with answered_by(oracle):
                for length, index in enumerate(order, 1):
                    name, arguments = calls[index]
                    oracle.call, oracle.asked = index, 0
                    run.results[index] = copy.deepcopy(getattr(state, name)(**copy.deepcopy(dict(arguments))))
                    run.states[frozenset(order[:length])] = copy.deepcopy(state)
            yield run
        except Refused:
            pass
        taken = oracle.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        picks = [position for position, _ in taken[:-1]] + [taken[-1][0] + 1] if taken else None


def _compatible(one: Run, other: Run) -> bool:
    return all(_same(result, other.results[index]) for index, result in one.results.items()) and all(
        state.equivalent(other.states[subset]) for subset, state in one.states.items() if subset in other.states
    )


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def all_combinations(**choices: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Every way to pick one value per name."""
    for picked in itertools.product(*choices.values()):
        yield dict(zip(choices, picked, strict=True))
