"""Concrete runs of a model: ordinary values, the state that its own set-up reaches, every order of the calls.

Expected results are never taken from the symbolic engine: the model itself runs, once per order of the calls and per
choice that the specification leaves open. Runs are many and alike, so what two of them have in common is done once: a
set-up that was replayed before, and an observation of a state that was observed before.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from commutant.analyzer.faults import ChoiceRefused, ModelFault, placed
from commutant.lang.errno import Errno, Signal
from commutant.lang.interface import Interface, Invocation
from commutant.lang.nondeterminism import answered_by, finite_values
from commutant.lang.types import OpaqueValue, SortType, Struct, TimeValue, Type
from commutant.testgen.canonical import Anything, Canonical
from commutant.testgen.testcase import Value

TICK_OF_CALLS = 1_000_000
"""The time at which all calls under test run; set-up steps run before, at 1, 2, ..."""

Observation = tuple[Value, ...]


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


@dataclass(frozen=True, slots=True)
class Start:
    """A state that a set-up has reached, what its calls returned, and how these number opaque values."""

    state: Interface
    results: tuple[Value, ...]
    canonical: Canonical
    observed: dict[object, Observation] = field(default_factory=dict)
    """Observations made of states that were reached from here, by state and observing calls."""


class ConcreteModel:
    """A model that runs on ordinary values."""

    def __init__(self, interface: type[Interface]) -> None:
        self.interface = interface
        self._functions: dict[str, Callable[..., Any]] = {}
        self._starts: dict[str, Start] = {}

    def perform(self, state: Interface, call: str, arguments: Mapping[str, Any]) -> Any:
        """Runs one call; ModelFault if the model raises. Arguments are copied, for the call may store them."""
        function = self._functions.get(call)
        if function is None:
            self.interface.signature(call)  # UsageError where there is no such call
            function = self._functions[call] = getattr(self.interface, call)
        try:
            return function(state, **{name: copied(value) for name, value in arguments.items()})
        except (Exception, SystemExit) as error:
            raise placed(error, self.interface, call) from None

    def replay(self, invocations: Sequence[Invocation]) -> Start:
        """Where a set-up leads from the empty state."""
        key = repr([(invocation.call, invocation.arguments) for invocation in invocations])
        start = self._starts.get(key)
        if start is None:
            start = self._starts[key] = self._replay(invocations)
        return start

    def _replay(self, invocations: Sequence[Invocation]) -> Start:
        try:
            state = self.interface()
        except (Exception, SystemExit) as error:
            raise placed(error, self.interface, "__init__") from None
        oracle, canonical = ReplayedOracle(), Canonical()
        results = []
        with answered_by(oracle):
            for number, invocation in enumerate(invocations):
                oracle.begin(f"setup.{number}", 1 + number)
                try:
                    results.append(canonical.json(self.perform(state, invocation.call, invocation.arguments)))
                except ChoiceRefused:
                    raise ModelFault(
                        f"{self.interface.__name__}.{invocation.call}: choose() allows no value here"
                    ) from None
        return Start(state, tuple(results), canonical)

    def outcomes(
        self,
        start: Start,
        calls: Sequence[tuple[str, Mapping[str, Any]]],
        order: Sequence[int],
        observe: Sequence[Invocation],
    ) -> Iterator[tuple[tuple[Value, ...], Observation]]:
        """Every acceptable outcome of the calls in this order: results in the order of `calls`, and the observation."""
        oracle = ReplayedOracle()
        seen: list[tuple[tuple[Value, ...], Observation]] = []
        while True:
            # A run on which an earlier choice leaves a later one nothing is no run that the specification allows.
            with contextlib.suppress(ChoiceRefused):
                outcome = self._outcome(start, calls, order, observe, oracle)
                if outcome not in seen:
                    seen.append(outcome)
                    yield outcome
            if not oracle.step():
                return

    def _outcome(
        self,
        start: Start,
        calls: Sequence[tuple[str, Mapping[str, Any]]],
        order: Sequence[int],
        observe: Sequence[Invocation],
        oracle: ReplayedOracle,
    ) -> tuple[tuple[Value, ...], Observation]:
        state = copied(start.state)
        results: dict[int, Any] = {}
        with answered_by(oracle):
            for index in order:
                oracle.begin(f"call.{index}", TICK_OF_CALLS)
                results[index] = copied(self.perform(state, *calls[index]))
            canonical = Canonical(start.canonical)
            told = tuple([canonical.json(results[index]) for index in range(len(calls))])
            return told, self._observation(start, state, canonical, observe, oracle)

    def _observation(
        self,
        start: Start,
        state: Interface,
        canonical: Canonical,
        observe: Sequence[Invocation],
        oracle: ReplayedOracle,
    ) -> Observation:
        """What the observing calls return; looked up if they were made of the same state before, values in the same
        order included: a model could tell."""
        key = (frozen(state), canonical.numbered, frozen([(i.call, i.arguments) for i in observe]))
        known = start.observed.get(key)
        if known is None:
            told = []
            for number, invocation in enumerate(observe):
                oracle.begin(f"observe.{number}", TICK_OF_CALLS + 1)
                told.append(canonical.json(self.perform(state, invocation.call, invocation.arguments)))
            known = start.observed[key] = tuple(told)
        return known


_UNCHANGING = frozenset((int, bool, str, type(None), Anything, OpaqueValue, TimeValue, Errno, Signal))


def copied(value: Any) -> Any:
    """A copy of a state, an argument or a result that changes alone; aliases between its parts stay aliases."""
    return value if value.__class__ in _UNCHANGING else _copied(value, {})


def _copied(value: Any, copies: dict[int, Any]) -> Any:
    kind = value.__class__
    if kind is tuple:
        return tuple([part if part.__class__ in _UNCHANGING else _copied(part, copies) for part in value])
    known = copies.get(id(value))
    if known is not None:
        return known
    copy_: Any
    if isinstance(value, dict):
        copy_ = copies[id(value)] = kind()
        for key, part in value.items():
            copy_[key] = part if part.__class__ in _UNCHANGING else _copied(part, copies)
    elif isinstance(value, list):
        copy_ = copies[id(value)] = kind()
        copy_ += [part if part.__class__ in _UNCHANGING else _copied(part, copies) for part in value]
    elif isinstance(value, Struct | Interface):
        copy_ = copies[id(value)] = object.__new__(kind)
        fields = vars(copy_)
        for name, part in vars(value).items():
            fields[name] = part if part.__class__ in _UNCHANGING else _copied(part, copies)
    else:
        copy_ = copies[id(value)] = copy.deepcopy(value)
    return copy_


def frozen(value: Any) -> Any:
    """A state or a part of one as a value that can be looked up: equal only if nothing tells the two apart."""
    kind = value.__class__
    if kind in _UNCHANGING:
        return value if kind is str or kind is OpaqueValue else (kind, value)
    if isinstance(value, dict):
        return kind, tuple([(frozen(key), frozen(part)) for key, part in value.items()])
    if isinstance(value, tuple | list):
        return kind, tuple([frozen(part) for part in value])
    if isinstance(value, Struct | Interface):
        return kind, tuple([(name, frozen(part)) for name, part in vars(value).items()])
    return object()  # of a kind that no model holds: equal to nothing else
