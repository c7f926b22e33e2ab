"""Concrete runs of a model: ordinary values, the state that its own set-up reaches, every order of the calls.

Expected results are never taken from the symbolic engine: the model itself runs, once per order of the calls and per
choice that the specification leaves open. Runs are many and alike, so what was done before is not done again: a call
from a state from which it ran before, an observation of a state that was observed before, whatever led there.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from commutant.corpus import MAX_OUTCOMES, Value, encode
from commutant.guard import ChoiceRefused, ModelFault, placed
from commutant.lang import (
    ESCAPES,
    Errno,
    Interface,
    Invocation,
    OpaqueValue,
    SortType,
    StepResult,
    Struct,
    TimeValue,
    Type,
    answered_by,
    finite_values,
)
from commutant.testgen.canonical import Canonical
from commutant.testgen.frozen import Frozen, NotFrozen, complete, freeze, freeze_again, thaw, thaw_on_demand

T = TypeVar("T")

MAX_WAYS = 512
"""In this many ways the choices of a set-up are gone through."""

TICK_OF_CALLS = 1_000_000
"""The time at which all calls under test run; set-up steps run before, at 1, 2, ..."""


class ReplayedOracle:
    """Answers on concrete runs: unused values are new, and all combinations of choices are gone through, one per run.

    A call's answers depend on the call alone, so they are the same in every order.
    """

    def __init__(self) -> None:
        self._label = ""
        self._answers = 0
        self._tick = 0
        self._state: Interface | None = None
        self._picked: dict[str, int] = {}
        self._limits: dict[str, int] = {}
        self.had_choices = False

    def begin(self, label: str, tick: int, state: Interface | None = None) -> None:
        """The answers from here on belong to the call with this label, which runs at this tick of the clock, from this
        state."""
        self._label, self._answers, self._tick, self._state = label, 0, tick, state

    def choose(self, type_: Type, allowed: Callable[[Any], Any]) -> Any:
        """The value that this run picks among the allowed ones; ChoiceRefused if there is none."""
        name = self._name()
        values = [value for value in finite_values(type_, self._state) if allowed(value)]
        if not values:
            raise ChoiceRefused
        self._limits[name] = len(values)
        self.had_choices |= len(values) > 1
        return values[self._picked.setdefault(name, 0)]

    def unused(self, type_: SortType) -> OpaqueValue:
        """A value named after the call."""
        return _opaque(type_.sort.__name__, self._name())

    def now(self) -> TimeValue:
        """A tick per set-up call, then one tick for all calls under test."""
        return TimeValue(self._tick)

    def step(self) -> bool:
        """Moves on to the next combination of choices, the last choice first; False after the last combination.

        What later choices may be can depend on earlier ones, so those after the one that moves are asked again.
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
        self._answers += 1
        return f"{self._label}.{self._answers - 1}"


@lru_cache(maxsize=1 << 12)
def _opaque(sort: str, label: str) -> OpaqueValue:
    """One object each, so that equal states are soon found to be equal."""
    return OpaqueValue(sort, label)


class Reached:
    """A concrete state, and what is known of it: where each call leads from here, and what observing it shows.

    Equal states are one object for as long as the model keeps them. One without a frozen form stands for itself.
    """

    __slots__ = ("_state", "frozen", "moves", "observed")

    def __init__(self, frozen: Frozen | None, state: Interface) -> None:
        self.frozen = frozen
        self._state = state if frozen is None else None
        self.moves: dict[CallUnderTest, tuple[Move, ...]] = {}
        self.observed: dict[tuple[Observed, Numbered], tuple[str, ...]] = {}

    def copy(self) -> Interface:
        """The state, to be changed."""
        if self.frozen is None:
            assert self._state is not None
            return copy.deepcopy(self._state)
        state: Interface = thaw_on_demand(self.frozen)
        return state


@dataclass(frozen=True, slots=True, eq=False)
class CallUnderTest:
    """A call with its arguments, at its place among the calls under test; one object each."""

    call: str
    arguments: Mapping[str, Any]
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class CallResult:
    """What a call returned; one object for equal results, unless they have no frozen form."""

    result: Any


class Move(NamedTuple):
    """What a call does in a state, by one choice of what the specification leaves open."""

    result: CallResult
    end: Reached


@dataclass(frozen=True, slots=True, eq=False)
class Numbered:
    """The opaque values that results have returned so far, in order; one object for each such list."""

    values: tuple[OpaqueValue, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """A state to run calls from: one that a set-up has reached, with what its calls returned and which opaque values
    those returned."""

    state: Interface
    reached: Reached
    invocations: tuple[Invocation, ...]
    results: tuple[Value, ...]
    numbered: Numbered
    also: tuple[tuple[Value, ...], ...] = ()
    """Of each step of the set-up what else it may return, with which it leads elsewhere; empty where none is open."""
    others: tuple[Interface, ...] = ()
    """States that the set-up may lead to by choices that none of its results tells."""


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """A state that steps of a set-up may lead to, what they returned, and the opaque values that these results tell."""

    state: Interface
    returned: tuple[Any, ...]
    numbered: tuple[OpaqueValue, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Calls that observe a state, and their JSON; one object for equal ones (`ConcreteModel.observation`)."""

    invocations: Sequence[Invocation]
    text: str


class ConcreteModel:
    """A model that runs on ordinary values."""

    def __init__(self, interface: type[Interface]) -> None:
        self.interface = interface
        self._functions: dict[str, Callable[..., Any]] = {}
        self._reached: dict[Frozen, Reached] = {}
        self._calls_under_test: dict[Frozen, CallUnderTest] = {}
        self._call_results: dict[Frozen, CallResult] = {}
        self._numbered: dict[tuple[OpaqueValue, ...], Numbered] = {}
        self._observations: dict[str, Observed] = {}
        self._texts: dict[tuple[object, ...], tuple[str, Numbered]] = {}
        self.kept = 0

    def forget(self) -> None:
        """Drops what is kept, for memory's sake. What was handed out stays valid."""
        for kept in (
            self._reached,
            self._calls_under_test,
            self._call_results,
            self._numbered,
            self._observations,
            self._texts,
        ):
            kept.clear()
        self.kept = 0

    def call_under_test(self, place: int, call: str, arguments: Mapping[str, Any]) -> CallUnderTest:
        """The call under test at this place."""
        new = CallUnderTest(call, arguments, f"call.{place}")
        frozen = _frozen(tuple(arguments.items()))
        return new if frozen is None else self._calls_under_test.setdefault((place, call, frozen), new)

    def observation(self, invocations: Sequence[Invocation], text: str) -> Observed:
        """The calls that observe a state; `text` is different for different ones."""
        return self._observations.setdefault(text, Observed(invocations, text))

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
        except ESCAPES as error:
            raise placed(error, self.interface, call) from None

    def start(self, state: Interface) -> Start:
        """A state that is there."""
        return Start(state, self._state(state, _frozen(state)), (), (), self._numbering(()))

    def replay(self, invocations: Sequence[Invocation]) -> Start:
        """Where a set-up leads from the empty state; in `Start.invocations` results of its steps are themselves."""
        try:
            state = self.interface()
        except ESCAPES as error:
            raise placed(error, self.interface, "__init__") from None
        oracle, canonical = ReplayedOracle(), Canonical()
        made: list[Invocation] = []
        returned: list[Any] = []
        results = []
        with answered_by(oracle):
            for number, given in enumerate(invocations):
                oracle.begin(f"setup.{number}", 1 + number, state)
                invocation = _with_results(given, returned)
                try:
                    result = self.perform(state, invocation.call, invocation.arguments)
                except ChoiceRefused:
                    raise ModelFault(
                        f"{self.interface.__name__}.{invocation.call}: choose() allows no value here"
                    ) from None
                made.append(invocation)
                returned.append(_own(result))
                results.append(canonical.json(result))
        reached = self._state(state, _frozen(state))
        also, others = self._elsewhere(invocations, results) if oracle.had_choices else ((), ())
        return Start(state, reached, tuple(made), tuple(results), self._numbering(canonical.numbered), also, others)

    def _elsewhere(
        self, invocations: Sequence[Invocation], expected: Sequence[Value]
    ) -> tuple[tuple[tuple[Value, ...], ...], tuple[Interface, ...]]:
        """What else each step may return, where those before it returned what is expected; and where the set-up may
        lead if all of them do."""
        ways = [_Way(self.interface(), (), ())]
        also: list[tuple[Value, ...]] = []
        for number, (given, result) in enumerate(zip(invocations, expected, strict=True)):
            others: dict[str, Value] = {}
            going: dict[object, _Way] = {}
            for way in ways:
                for value, led in _by_every_choice(partial(self._step_of, way, number, given)):
                    if encode(value) == encode(result):
                        going.setdefault(_frozen((led.state, led.returned)) or id(led), led)
                    else:
                        others[encode(value)] = value
            ways = list(going.values())[:MAX_WAYS]
            also.append(tuple(others.values())[:MAX_OUTCOMES])
        return tuple(also), tuple([way.state for way in ways])

    def _step_of(self, way: _Way, number: int, given: Invocation, oracle: ReplayedOracle) -> tuple[Value, _Way]:
        state, canonical = copy.deepcopy(way.state), Canonical(way.numbered)
        oracle.begin(f"setup.{number}", 1 + number, state)
        invocation = _with_results(given, way.returned)
        result = _own(self.perform(state, invocation.call, invocation.arguments))
        value = canonical.json(result)
        return value, _Way(state, (*way.returned, result), tuple(canonical.numbered))

    def outcomes(
        self, start: Start, calls: Sequence[CallUnderTest], order: Sequence[int], observe: Observed
    ) -> list[str]:
        """Every acceptable outcome of the calls in this order, as JSON: results in the order of `calls`, and the
        observation."""
        runs: list[tuple[tuple[CallResult, ...], Reached]] = [((), start.reached)]
        for index in order:
            call = calls[index]
            runs = [((*returned, one), end) for returned, state in runs for one, end in self._moves(state, call)]
        outcomes: dict[str, None] = {}
        for returned, end in runs:
            results, numbered = self._results(
                start.numbered, [returned[order.index(index)] for index in range(len(order))]
            )
            for observation in self._observed(end, observe, numbered):
                outcomes[f'{{"results":{results},"observation":{observation}}}'] = None
        return list(outcomes)

    def end(self, start: Start, calls: Sequence[CallUnderTest], order: Sequence[int]) -> Interface:
        """The state that the calls end in, by the first choices."""
        reached = start.reached
        for index in order:
            moves = self._moves(reached, calls[index])
            if not moves:
                raise ChoiceRefused
            reached = moves[0].end
        return reached.copy()

    def _moves(self, start: Reached, call: CallUnderTest) -> tuple[Move, ...]:
        """What a call does in a state, one move for each combination of choices that the specification allows."""
        known = start.moves.get(call)
        if known is None:

            def move(oracle: ReplayedOracle) -> Move:
                state = start.copy()
                oracle.begin(call.label, TICK_OF_CALLS, state)
                returned = self._result_of(_own(self.perform(state, call.call, call.arguments)))
                return Move(returned, self._state(state, _frozen_again(state, start.frozen)))

            known = start.moves[call] = _by_every_choice(move)
            self.kept += 1
        return known

    def _state(self, state: Interface, frozen: Frozen | None) -> Reached:
        return _one(self._reached, frozen, lambda: Reached(frozen, state))

    def _result_of(self, result: Any) -> CallResult:
        return _one(self._call_results, _frozen((result,)), lambda: CallResult(result))

    def _numbering(self, values: tuple[OpaqueValue, ...]) -> Numbered:
        return _one(self._numbered, values, lambda: Numbered(values))

    def _results(self, numbered: Numbered, returned: Sequence[CallResult]) -> tuple[str, Numbered]:
        """Results as JSON, and the opaque values that are known behind them."""
        key = (numbered, *returned)
        known = self._texts.get(key)
        if known is None:
            canonical = Canonical(numbered.values)
            text = encode([canonical.json(one.result) for one in returned])
            known = self._texts[key] = text, self._numbering(canonical.numbered)
            self.kept += 1
        return known

    def _observed(self, state: Reached, observe: Observed, numbered: Numbered) -> tuple[str, ...]:
        """What the observing calls return, as JSON, for each combination of choices; the calls may destroy what they
        observe."""
        key = observe, numbered
        known = state.observed.get(key)
        if known is None:

            def observation(oracle: ReplayedOracle) -> str:
                copied, canonical = state.copy(), Canonical(numbered.values)
                returned = []
                for number, invocation in enumerate(observe.invocations):
                    oracle.begin(f"observe.{number}", TICK_OF_CALLS + 1, copied)
                    returned.append(canonical.json(self.perform(copied, invocation.call, invocation.arguments)))
                return encode(returned)

            known = state.observed[key] = _by_every_choice(observation)
            self.kept += 1
        return known


def _with_results(invocation: Invocation, returned: Sequence[Any]) -> Invocation:
    """The invocation with what the steps before it returned in the place of what stands for that."""
    if not any(value.__class__ is StepResult for value in invocation.arguments.values()):
        return invocation
    return Invocation(
        invocation.call,
        {name: v._of(returned) if v.__class__ is StepResult else v for name, v in invocation.arguments.items()},
    )


def _by_every_choice(run: Callable[[ReplayedOracle], T]) -> tuple[T, ...]:
    """What a run gives for each combination of choices that the specification allows."""
    oracle, found = ReplayedOracle(), []
    with answered_by(oracle):
        while True:
            with contextlib.suppress(ChoiceRefused):  # by an earlier choice
                found.append(run(oracle))
            if not oracle.step():
                return tuple(found)


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


def _frozen_again(state: Interface, before: Frozen | None) -> Frozen | None:
    """The frozen form of a changed copy of a state, if both have one."""
    if before is None:
        return None
    try:
        return freeze_again(state, before)
    except (NotFrozen, RecursionError):
        complete(state, before)  # it is kept itself, and copied attribute by attribute
        return None


def _one(kept: dict[Frozen, T], key: Frozen | None, make: Callable[[], T]) -> T:
    """The one object for a frozen form; a new one where there is no such form."""
    known = None if key is None else kept.get(key)
    if known is None:
        known = make()
        if key is not None:
            kept[key] = known
    return known
