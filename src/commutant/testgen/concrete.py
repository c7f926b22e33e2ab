"""Concrete runs of a model: states compared up to the values that an implementation picks, and results as JSON.

Expected results are never taken from the symbolic engine: the model itself runs on ordinary values, from the state that
its own set-up reaches, once per order of the calls and per choice that the specification leaves open.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from commutant.analyzer.faults import ChoiceRefused, ModelFault, faults_of
from commutant.lang.errno import Errno, Signal
from commutant.lang.interface import Interface, Invocation
from commutant.lang.nondeterminism import answered_by, finite_values
from commutant.lang.types import MapType, OpaqueValue, SortType, Struct, TimeValue, Type, struct_fields
from commutant.testgen.testcase import Value

TICK_OF_CALLS = 1_000_000
"""The time at which all calls under test run; set-up steps run before, at 1, 2, ..."""


class Anything(int):
    """An integer of the initial state on which nothing depends: any value that the set-up gives it will do."""


class ReplayedOracle:
    """Answers on concrete runs: unused values are new, and all combinations of choices are gone through, one per run.

    A call's answers depend on the call alone, so they are the same in every order.
    """

    def __init__(self) -> None:
        self._label = ""
        self._asked = 0
        self._tick = 0
        self._picked: dict[str, int] = {}
        self._limits: dict[str, int] = {}

    def begin(self, label: str, tick: int) -> None:
        """The answers from here on belong to the call with this label, which runs at this tick of the clock."""
        self._label, self._asked, self._tick = label, 0, tick

    def choose(self, type_: Type, allowed: Callable[[Any], Any]) -> Any:
        """The value that this run picks among the allowed ones; ChoiceRefused if there is none."""
        name = self._name()
        values = [value for value in finite_values(type_) if allowed(value)]
        if not values:
            raise ChoiceRefused
        self._limits[name] = len(values)
        return values[self._picked.setdefault(name, 0)]

    def unused(self, type_: SortType) -> OpaqueValue:
        """A value named after the call."""
        return OpaqueValue(type_.sort.__name__, self._name())

    def now(self) -> TimeValue:
        """A tick per set-up call, then one tick for all calls under test."""
        return TimeValue(self._tick)

    def step(self) -> bool:
        """Moves on to the next combination of choices, the last choice first; False after the last combination.

        What later choices may be can depend on earlier ones, so those behind the one that moves are asked anew.
        """
        while self._limits:
            name, limit = self._limits.popitem()
            picked = self._picked.pop(name)
            if picked + 1 < limit:
                self._picked[name] = picked + 1
                self._limits.clear()
                return True
        return False

    def _name(self) -> str:
        self._asked += 1
        return f"{self._label}.{self._asked - 1}"


def copy_concrete(state: Interface) -> Interface:
    """A copy of a concrete state that changes alone; aliases between its parts stay aliases."""
    return copy.deepcopy(state)


def perform(interface: type[Interface], state: Interface, call: str, arguments: Mapping[str, Any]) -> Any:
    """Runs one call on a concrete state; ModelFault if the model raises. What it returns changes no more: a result that
    is part of the state is copied, and so are arguments, which the call may store."""
    interface.signature(call)
    with faults_of(interface, call):
        return _own(getattr(state, call)(**{name: _own(value) for name, value in arguments.items()}))


def _own(value: Any) -> Any:
    return copy.deepcopy(value) if isinstance(value, Struct | list | tuple | dict) else value


def replay(interface: type[Interface], invocations: Sequence[Invocation]) -> tuple[Interface, list[Any]]:
    """The state that a set-up reaches from the empty one, and what its calls return."""
    with faults_of(interface, "__init__"):
        state = interface()
    oracle = ReplayedOracle()
    results = []
    with answered_by(oracle):
        for number, invocation in enumerate(invocations):
            oracle.begin(f"setup.{number}", 1 + number)
            try:
                results.append(perform(interface, state, invocation.call, invocation.arguments))
            except ChoiceRefused:
                raise ModelFault(f"{interface.__name__}.{invocation.call}: choose() allows no value here") from None
    return state, results


class Canonical:
    """Writes values with opaque ones numbered by their first occurrence, so that equal text means equal up to a
    bijection."""

    def __init__(self) -> None:
        self._numbers: dict[OpaqueValue, int] = {}
        self._count: dict[str, int] = {}

    def number(self, value: OpaqueValue) -> int:
        """The number of an opaque value within its sort."""
        if value not in self._numbers:
            self._numbers[value] = self._count.get(value.sort, 0)
            self._count[value.sort] = self._numbers[value] + 1
        return self._numbers[value]

    def knows(self, value: object) -> bool:
        """Whether the value has a number (is no opaque value, or was reached before)."""
        if isinstance(value, tuple):
            return all(self.knows(item) for item in value)
        return not isinstance(value, OpaqueValue) or value in self._numbers

    def json(self, value: Any) -> Value:
        """A result as the JSON value of docs/ARCHITECTURE.md ("Values")."""
        if isinstance(value, Errno):
            return {"errno": value.name}
        if isinstance(value, Signal):
            return {"signal": value.name}
        if isinstance(value, TimeValue):
            return {"time": int(value)}
        if isinstance(value, OpaqueValue):
            return {"sort": value.sort, "id": self.number(value)}
        if isinstance(value, Struct):
            return {"struct": {name: self.json(getattr(value, name)) for name in struct_fields(type(value))}}
        if isinstance(value, tuple | list):
            return {"seq": [self.json(item) for item in value]}
        return value

    def state(self, state: Interface) -> list[Any]:
        """What can be reached in a state, in an order that does not depend on opaque values."""
        reached: list[Any] = []
        pending = [(getattr(state, name), type_) for name, type_ in type(state).state_types().items()]
        maps: list[tuple[Mapping[Any, Any], set[Any], list[Any]]] = []
        for value, type_ in pending:
            if isinstance(type_, MapType):
                entry: list[Any] = []
                maps.append((value, set(), entry))
                reached.append(entry)
            else:
                reached.append(self._plain(value))
        progress = True
        while progress:
            progress = False
            for content, done, entry in maps:
                ready = [key for key in content if key not in done and self.knows(key)]
                for key in sorted(ready, key=lambda k: repr(self._plain(k))):
                    done.add(key)
                    entry.append((self._plain(key), self._plain(content[key])))
                    progress = True
        return reached

    def _plain(self, value: Any) -> Any:
        if isinstance(value, OpaqueValue):
            return (value.sort, self.number(value))
        if isinstance(value, Struct):
            return tuple((name, self._plain(getattr(value, name))) for name in value.relevant())
        if isinstance(value, dict):
            known = sorted((repr(self._plain(k)), k) for k in value if self.knows(k))
            return tuple((self._plain(k), self._plain(value[k])) for _, k in known)
        if isinstance(value, tuple | list):
            return tuple(self._plain(item) for item in value)
        return value


def agree(wanted: Any, reached: Any) -> bool:
    """Whether two canonical states agree, `Anything` standing for any integer."""
    if isinstance(wanted, Anything):
        return isinstance(reached, int)
    if isinstance(wanted, list | tuple) and isinstance(reached, list | tuple):
        return len(wanted) == len(reached) and all(agree(a, b) for a, b in zip(wanted, reached, strict=True))
    return type(wanted) is type(reached) and bool(wanted == reached)


def outcomes(
    interface: type[Interface],
    start: Interface,
    setup_results: Sequence[Any],
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    order: Sequence[int],
    observe: Sequence[Invocation],
) -> Iterator[tuple[tuple[Value, ...], tuple[Value, ...]]]:
    """Every acceptable outcome of the calls in this order: results in the order of `calls`, and the observation."""
    oracle = ReplayedOracle()
    seen: set[str] = set()
    while True:
        # A run on which an earlier choice leaves a later one nothing is no run that the specification allows.
        with contextlib.suppress(ChoiceRefused):
            outcome = _outcome(interface, start, setup_results, calls, order, observe, oracle)
            if repr(outcome) not in seen:
                seen.add(repr(outcome))
                yield outcome
        if not oracle.step():
            return


def _outcome(
    interface: type[Interface],
    start: Interface,
    setup_results: Sequence[Any],
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    order: Sequence[int],
    observe: Sequence[Invocation],
    oracle: ReplayedOracle,
) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    state = copy_concrete(start)
    results: dict[int, Any] = {}
    with answered_by(oracle):
        for index in order:
            oracle.begin(f"call.{index}", TICK_OF_CALLS)
            results[index] = perform(interface, state, *calls[index])
        observed = []
        for number, invocation in enumerate(observe):
            oracle.begin(f"observe.{number}", TICK_OF_CALLS + 1)
            observed.append(perform(interface, state, invocation.call, invocation.arguments))
    canonical = Canonical()
    for result in setup_results:
        canonical.json(result)
    return (
        tuple(canonical.json(results[index]) for index in range(len(calls))),
        tuple(canonical.json(value) for value in observed),
    )
