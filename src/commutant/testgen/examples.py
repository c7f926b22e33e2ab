"""A smallest concrete state and arguments for a condition, and two orders of calls that a caller can tell apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

from commutant.analyzer import CallSet, Conjunction, contradictory, facts_of
from commutant.guard import faults_of, time_limit
from commutant.lang import (
    BoolType,
    CallSignature,
    Interface,
    Process,
    Sort,
    SortType,
)
from commutant.testgen.classes import classes
from commutant.testgen.concrete import ConcreteModel, Start
from commutant.testgen.state_text import shown, state_text
from commutant.testgen.valuation import Valuation, sorts_of


@dataclass(frozen=True, slots=True)
class Example:
    """A state and arguments that stand for a path. `values` are those of the test, per sort."""

    facts: Conjunction
    commutes: bool
    state: Interface
    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    values: Mapping[type[Sort], Sequence[Any]]

    def __str__(self) -> str:
        """`names {n0: i0}: open(n0) and unlink(n1)`."""
        several = len(self.values.get(Process, ())) > 1
        calls = " and ".join(_call_text(type(self.state).signature(call), given, several) for call, given in self.calls)
        state = state_text(self.state)
        return f"{state}: {calls}" if state else calls

    @property
    def size(self) -> tuple[int, int, int]:
        """Smaller is simpler: entries, the sum of the numbers, the length of the text."""
        text = str(self)
        entries = sum(len(value) for value in vars(self.state).values() if isinstance(value, dict))
        return entries, sum(map(int, filter(str.isdigit, text))), len(text)


class Examples:
    """The paths of a set of calls, each with an example."""

    def __init__(self, interface: type[Interface], calls: tuple[str, ...]) -> None:
        """Explores the set; raises UsageError for a model that cannot be analysed."""
        sorts = sorts_of(interface)
        found = []
        with time_limit(interface, calls):
            for one in classes(CallSet(interface, calls), "path"):
                valuation = Valuation(one.context, sorts)
                arguments = [{n: valuation(value) for n, value in given.items()} for given in one.outcome.arguments]
                state = valuation.state(one.outcome.initial)
                with faults_of(interface, "complete"):
                    state.complete()
                facts = facts_of(one.context, [*one.context.trail, *one.context.restrictions])
                calls_made = tuple(zip(calls, arguments, strict=True))
                found.append(Example(facts, one.outcome.commutes, state, calls_made, valuation.of_sorts()))
        self._examples = sorted(found, key=lambda example: example.size)

    def of(self, condition: Conjunction, commutes: bool) -> Example | None:
        """A smallest example of the condition; None where no single path implies it (a choice had to be eliminated)."""
        for example in self._examples:
            if example.commutes == commutes and _implies(example.facts, condition):
                return example
        return None


def _implies(facts: Conjunction, condition: Conjunction) -> bool:
    known = set(facts)
    return all(fact in known or contradictory([*facts, fact.negated()]) for fact in condition)


@dataclass(frozen=True, slots=True)
class OrderDifference:
    """What two orders of calls show from one state: per order, the calls' names and what a caller sees."""

    orders: tuple[tuple[str, ...], tuple[str, ...]]
    shown: tuple[str, str]

    def __str__(self) -> str:
        """`open, unlink: unlink returns 0; unlink, open: unlink returns ENOENT`."""
        return "; ".join(f"{', '.join(order)}: {text}" for order, text in zip(self.orders, self.shown, strict=True))


def difference(example: Example) -> OrderDifference | None:
    """Two orders of the example's calls, or of a subset of them, that a caller can tell apart; None if the concrete
    runs show none (another choice of the implementation would)."""
    model = ConcreteModel(type(example.state))
    start = model.start(example.state)
    with faults_of(type(example.state), "observe"):
        observe = list(example.state.observe(example.values))
    everyone = range(len(example.calls))
    for size in range(2, len(example.calls) + 1):
        for subset in combinations(everyone, size):
            calls = [example.calls[index] for index in subset]
            placed = [model.call_under_test(place, *one) for place, one in enumerate(calls)]
            observation = model.observation(observe, repr(observe))
            seen = {order: model.outcomes(start, placed, order, observation) for order in permutations(range(size))}
            for first, second in combinations(seen, 2):
                if not set(seen[first]) & set(seen[second]):
                    names = _told_apart([call for call, _ in calls])
                    texts = _differing(json.loads(seen[first][0]), json.loads(seen[second][0]), names, observe)
                    if texts is not None:
                        orders = tuple(tuple(names[index] for index in order) for order in (first, second))
                        return OrderDifference((orders[0], orders[1]), texts)
    return _difference_of_states(model, start, example)


def commutes_concretely(example: Example) -> bool:
    """Whether some outcome of the example's calls is acceptable in every order of them."""
    model = ConcreteModel(type(example.state))
    start = model.start(example.state)
    with faults_of(type(example.state), "observe"):
        observe = list(example.state.observe(example.values))
    observation = model.observation(observe, repr(observe))
    calls = [model.call_under_test(place, *one) for place, one in enumerate(example.calls)]
    seen = [set(model.outcomes(start, calls, order, observation)) for order in permutations(range(len(calls)))]
    return bool(set.intersection(*seen))


def _difference_of_states(model: ConcreteModel, start: Start, example: Example) -> OrderDifference | None:
    """For a model that observes nothing, or not enough: the states that the orders end in."""
    names = _told_apart([call for call, _ in example.calls])
    placed = [model.call_under_test(place, *one) for place, one in enumerate(example.calls)]
    ends = {order: model.end(start, placed, order) for order in permutations(range(len(names)))}
    for first, second in combinations(ends, 2):
        with faults_of(model.interface, "equivalent"):
            same = ends[first].equivalent(ends[second])
        if not same:
            orders = tuple(tuple(names[index] for index in order) for order in (first, second))
            texts = tuple(f"leaves {state_text(ends[order]) or 'nothing'}" for order in (first, second))
            return OrderDifference((orders[0], orders[1]), (texts[0], texts[1]))
    return None


def _differing(first: Any, second: Any, names: Sequence[str], observe: Sequence[Any]) -> tuple[str, str] | None:
    """The first result that differs between two outcomes, or else the first observation."""
    from commutant.corpus import value_text

    for name, one, other in zip(names, first["results"], second["results"], strict=True):
        if one != other:
            return f"{name} returns {value_text(one)}", f"{name} returns {value_text(other)}"
    for invocation, one, other in zip(observe, first["observation"], second["observation"], strict=True):
        if one != other:
            given = ", ".join(map(shown, invocation.arguments.values()))
            where, one, other = _innermost(one, other)
            where = f"{invocation.call}({given}) then tells {where}"
            return f"{where}{value_text(one)}", f"{where}{value_text(other)}"
    return None


def _innermost(one: Any, other: Any) -> tuple[str, Any, Any]:
    """Where in two values the first difference lies, and what stands there."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        if "struct" in one:
            name = next(name for name in one["struct"] if one["struct"][name] != other["struct"][name])
            where, one, other = _innermost(one["struct"][name], other["struct"][name])
            return f"{name} {where}", one, other
        if "seq" in one and len(one["seq"]) == len(other["seq"]):
            return _innermost(*next((a, b) for a, b in zip(one["seq"], other["seq"], strict=True) if a != b))
    return "", one, other


def _told_apart(calls: Sequence[str]) -> list[str]:
    return [f"{call}.{index}" if calls.count(call) > 1 else call for index, call in enumerate(calls)]


def _call_text(signature: CallSignature, given: Mapping[str, Any], with_process: bool) -> str:
    texts, process = [], ""
    for name, type_ in signature.parameters.items():
        value = given[name]
        if name == signature.process_parameter:
            process = f" in process {value}" if with_process else ""
        elif isinstance(type_, BoolType):
            if value != type_.usual:
                texts.append(name if value else f"not {name}")
        else:
            texts.append(shown(value) if isinstance(type_, SortType) else f"{name} {shown(value)}")
    return f"{signature.name}({', '.join(texts)}){process}"
