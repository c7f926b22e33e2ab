"""Concrete runs of a model: ordinary values, the state that its own set-up reaches, every order of the calls.

Expected results are never taken from the symbolic engine: the model itself runs, once per order of the calls and per
choice that the specification leaves open. Runs are many and alike, so what was done before is not done again: an
observation of a state that was observed before, whatever led there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from commutant.analyzer.faults import ChoiceRefused, ModelFault, placed
from commutant.lang.errno import Errno
from commutant.lang.interface import Interface, Invocation
from commutant.lang.nondeterminism import answered_by, finite_values
from commutant.lang.types import OpaqueValue, SortType, Struct, TimeValue, Type
from commutant.testgen.canonical import Canonical
from commutant.testgen.frozen import Frozen, NotFrozen, freeze, freeze_again, thaw, thaw_as_asked
from commutant.testgen.testcase import Value, encode

T = TypeVar("T")

TICK_OF_CALLS = 1_000_000
"""The time at which all calls under test run; set-up steps run before, at 1, 2, ..."""


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
        return _opaque(type_.sort.__name__, self._name())

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


@lru_cache(maxsize=1 << 12)
def _opaque(sort: str, label: str) -> OpaqueValue:
    """One object each, so that equal states are soon found to be equal."""
    return OpaqueValue(sort, label)


@dataclass(frozen=True, slots=True)
class Start:
    """A state that a set-up has reached, what its calls returned, and which opaque values those told, in order."""

    state: Interface
    results: tuple[Value, ...]
    numbered: tuple[OpaqueValue, ...]
    frozen: Frozen | None

    @classmethod
    def of(cls, state: Interface, results: tuple[Value, ...] = (), numbered: tuple[OpaqueValue, ...] = ()) -> Start:
        """A state that is there, or that calls with these results have led to."""
        return cls(state, results, numbered, _frozen(state))

    def copy(self) -> Interface:
        """The state, to be changed."""
        if self.frozen is None:
            return copy.deepcopy(self.state)
        state: Interface = thaw_as_asked(self.frozen)
        return state

    def frozen_copy(self, state: Interface) -> Frozen | None:
        """The frozen form of a copy that was changed, if it has one."""
        if self.frozen is None:
            return None
        try:
            return freeze_again(state, self.frozen)
        except (NotFrozen, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Observation:
    """Calls that observe a state; `text` is different for different ones."""

    invocations: Sequence[Invocation]
    text: str


class ConcreteModel:
    """A model that runs on ordinary values."""

    def __init__(self, interface: type[Interface]) -> None:
        self.interface = interface
        self._functions: dict[str, Callable[..., Any]] = {}
        self._told: dict[Frozen, tuple[str, tuple[OpaqueValue, ...]]] = {}
        self._observed: dict[Frozen, str] = {}

    def perform(self, state: Interface, call: str, arguments: Mapping[str, Any]) -> Any:
        """Runs one call; ModelFault if the model raises. Arguments are copied, for the call may store them."""
        function = self._functions.get(call)
        if function is None:
            self.interface.signature(call)  # UsageError where there is no such call
            function = self._functions[call] = getattr(self.interface, call)
        try:
            return function(
                state, **{n: value if value.__class__ in _PLAIN else _own(value) for n, value in arguments.items()}
            )
        except (Exception, SystemExit) as error:
            raise placed(error, self.interface, call) from None

    def replay(self, invocations: Sequence[Invocation]) -> Start:
        """Where a set-up leads from the empty state."""
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
        return Start.of(state, tuple(results), canonical.numbered)

    def outcomes(
        self,
        start: Start,
        calls: Sequence[tuple[str, Mapping[str, Any]]],
        order: Sequence[int],
        observe: Observation,
    ) -> list[str]:
        """Every acceptable outcome of the calls in this order, as JSON: results in the order of `calls`, and the
        observation."""
        oracle = ReplayedOracle()
        outcomes: dict[str, None] = {}
        with answered_by(oracle):
            while True:
                outcome: str | None
                try:
                    outcome = self._outcome(start, calls, order, observe, oracle)
                except ChoiceRefused:  # by an earlier choice: no run that the specification allows
                    outcome = None
                if outcome is not None:
                    outcomes[outcome] = None
                if not oracle.step():
                    return list(outcomes)

    def end(self, start: Start, calls: Sequence[tuple[str, Mapping[str, Any]]], order: Sequence[int]) -> Interface:
        """The state that the calls end in, by the first choices."""
        state, oracle = start.copy(), ReplayedOracle()
        with answered_by(oracle):
            for index in order:
                oracle.begin(f"call.{index}", TICK_OF_CALLS)
                self.perform(state, *calls[index])
        return state

    def _outcome(
        self,
        start: Start,
        calls: Sequence[tuple[str, Mapping[str, Any]]],
        order: Sequence[int],
        observe: Observation,
        oracle: ReplayedOracle,
    ) -> str:
        state = start.copy()
        results: list[Any] = [None] * len(calls)
        for index in order:
            oracle.begin(f"call.{index}", TICK_OF_CALLS)
            results[index] = _own(self.perform(state, *calls[index]))
        told, numbered = self._results(start.numbered, results)
        frozen = start.frozen_copy(state)
        return f'{{"results":{told},"observation":{self._observation(state, frozen, numbered, observe, oracle)}}}'

    def _results(
        self, numbered: tuple[OpaqueValue, ...], results: Sequence[Any]
    ) -> tuple[str, tuple[OpaqueValue, ...]]:
        """Results as JSON, and the opaque values that are known behind them; looked up if they were told before."""
        key = _frozen((numbered, results))
        known = self._told.get(key)
        if known is None or key is None:
            canonical = Canonical(numbered)
            known = encode([canonical.json(result) for result in results]), canonical.numbered
            _keep(self._told, key, known)
        return known

    def _observation(
        self,
        state: Interface,
        frozen: Frozen | None,
        numbered: tuple[OpaqueValue, ...],
        observe: Observation,
        oracle: ReplayedOracle,
    ) -> str:
        """What the observing calls return, as JSON; looked up if they were made of the very same state before."""
        key = None if frozen is None else (frozen, numbered, observe.text)
        known = self._observed.get(key)
        if known is None or key is None:
            canonical = Canonical(numbered)
            told = []
            for number, invocation in enumerate(observe.invocations):
                oracle.begin(f"observe.{number}", TICK_OF_CALLS + 1)
                told.append(canonical.json(self.perform(state, invocation.call, invocation.arguments)))
            known = encode(told)
            _keep(self._observed, key, known)
        return known


MAX_KEPT = 1 << 14
"""So many texts of each kind are kept to be looked up; then that begins anew."""


def _keep(known: dict[Frozen, T], key: Frozen | None, value: T) -> None:
    if key is not None:
        if len(known) >= MAX_KEPT:
            known.clear()
        known[key] = value


_PLAIN = frozenset((int, bool, str, OpaqueValue, Errno, type(None)))


def _own(value: Any) -> Any:
    """An argument or a result that changes no more: what may be part of a state is copied."""
    if value.__class__ in _PLAIN or not isinstance(value, Struct | list | tuple | dict):
        return value
    frozen = _frozen(value)
    return copy.deepcopy(value) if frozen is None else thaw(frozen)


def _frozen(value: Any) -> Frozen | None:
    """The frozen form of a value, if it has one."""
    try:
        return freeze(value)
    except (NotFrozen, RecursionError):
        return None
