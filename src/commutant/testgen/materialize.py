"""From one class of states to a test: concrete values, the set-up that builds them, and what each order must show.

The state is made of ordinary values, the model's `setup` says how to build it, and the model itself replays that. Only
if the replay reaches the wanted state, up to the values an implementation picks, is there a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import permutations
from typing import Any

from commutant.analyzer.commute import Outcome
from commutant.analyzer.faults import faults_of
from commutant.errors import UsageError
from commutant.lang.interface import CallSignature, Interface, Invocation
from commutant.lang.types import OpaqueValue, Struct, struct_fields
from commutant.symbolic import Context
from commutant.testgen.canonical import Canonical, agree
from commutant.testgen.concrete import ConcreteModel, Observation, Start
from commutant.testgen.testcase import PlacedCall, Value, call_json, encode, id_of
from commutant.testgen.valuation import Valuation, sorts_of


class NoSetup(Exception):
    """The model has no set-up for this state."""


class Materializer:
    """Makes tests of one set of calls."""

    def __init__(self, interface: type[Interface], calls: tuple[str, ...], level: str) -> None:
        self.interface = interface
        self.calls = calls
        self.level = level
        self.signatures: tuple[CallSignature, ...] = tuple(interface.signature(call) for call in calls)
        self.sorts = sorts_of(interface)
        indices = range(len(calls))
        self._symmetries = [o for o in permutations(indices) if all(calls[o[i]] == calls[i] for i in indices)]
        self._seen: set[str] = set()
        self._model = ConcreteModel(interface)

        @cache
        def signature(call: str) -> tuple[CallSignature, str | None]:
            found = interface.signature(call)
            return found, found.process_parameter

        self._signature = signature

    def lines(self, context: Context, outcome: Outcome, path: int, description: str) -> list[str]:
        """The tests for a class as lines of a corpus, one per placement in processes; NoSetup if there is none."""
        valuation = Valuation(context, self.sorts)
        arguments = [{name: valuation(value) for name, value in given.items()} for given in outcome.arguments]
        wanted = valuation.state(outcome.initial)
        placements = [
            processes
            for processes in self._placements(arguments)
            if not self._is_mirror_image(context, outcome, processes)
        ]
        if not placements:
            return []
        invocations = self._setup_of(wanted)
        start = self._model.replay(invocations)
        if not agree(wanted, start.state):
            raise NoSetup
        with faults_of(self.interface, "observe"):
            observe = _invocations(start.state.observe(valuation.of_sorts()))
        observation = encode([self._step(invocation) for invocation in observe])
        orders = ",".join(self._orders(start, arguments, Observation(observe, observation)))
        setup = encode(
            [{**self._step(i), "result": result} for i, result in zip(invocations, start.results, strict=True)]
        )
        lines = []
        for processes in placements:
            calls = encode([call_json(call) for call in self._place(arguments, processes)])
            content = f'"calls":{calls},"setup":{setup},"observe":{observation},"orders":[{orders}]}}'
            test_id = id_of("-".join(self.calls), f"{{{content}".encode())
            lines.append(
                f'{{"id":"{test_id}","level":"{self.level}","path":{path},"class":{encode(description)},{content}'
            )
        return lines

    def _is_mirror_image(self, context: Context, outcome: Outcome, processes: Sequence[int]) -> bool:
        """Whether exchanging calls of the same name gives a class that has been seen (values renamed in its order)."""
        if len(self._symmetries) == 1:
            return False
        keys = set()
        for order in self._symmetries:
            valuation = Valuation(context, self.sorts)
            arguments = [valuation(tuple(outcome.arguments[index].values())) for index in order]
            renamed: dict[int, int] = {}
            places = [renamed.setdefault(processes[index], len(renamed)) for index in order]
            keys.add(repr((arguments, places, Canonical().state(valuation.state(outcome.initial)))))
        if keys & self._seen:
            return True
        self._seen |= keys
        return False

    def _setup_of(self, wanted: Interface) -> list[Invocation]:
        with faults_of(self.interface, "complete"):
            wanted.complete()
        with faults_of(self.interface, "setup"):
            given = wanted.setup()
            invocations = None if given is None else _invocations(given)
        if invocations is None:
            raise NoSetup
        return invocations

    def _orders(self, start: Start, arguments: Sequence[Mapping[str, Any]], observe: Observation) -> Iterator[str]:
        """Each order of the calls with its acceptable outcomes, as JSON; UsageError if no outcome is common to all."""
        calls = list(zip(self.calls, arguments, strict=True))
        common: set[str] | None = None
        for order in permutations(range(len(calls))):
            acceptable = self._model.outcomes(start, calls, order, observe)
            common = set(acceptable) if common is None else common.intersection(acceptable)
            yield f'{{"order":{encode(order)},"outcomes":[{",".join(acceptable)}]}}'
        if not common:
            shown = ", ".join(f"{call}({', '.join(f'{k}={v!r}' for k, v in given.items())})" for call, given in calls)
            raise UsageError(
                f"{self.interface.__name__}: {shown} was found to commute, but concrete runs of the model differ by "
                "order: does a call depend on something outside the state, or does `equivalent` hide what `observe` "
                "shows?"
            )

    def _placements(self, arguments: Sequence[Mapping[str, Any]]) -> list[tuple[int, ...]]:
        """The process of each call: what the model says, or else every way to share processes."""
        parameters = [signature.process_parameter for signature in self.signatures]
        if all(parameter is None for parameter in parameters):
            return _growth_strings(len(self.calls))
        return [tuple(int(a[p]) if p else 0 for a, p in zip(arguments, parameters, strict=True))]

    def _place(self, arguments: Sequence[Mapping[str, Any]], processes: Sequence[int]) -> tuple[PlacedCall, ...]:
        placed = []
        for core, (signature, given, process) in enumerate(zip(self.signatures, arguments, processes, strict=True)):
            shown = self._arguments(signature, signature.process_parameter, given)
            placed.append(PlacedCall(signature.name, shown, process, list(processes[:core]).count(process), core))
        return tuple(placed)

    def _step(self, invocation: Invocation) -> dict[str, Value]:
        signature, parameter = self._signature(invocation.call)
        process = int(invocation.arguments[parameter]) if parameter else 0
        return {
            "call": invocation.call,
            "args": self._arguments(signature, parameter, invocation.arguments),
            "process": process,
        }

    def _arguments(
        self, signature: CallSignature, process_parameter: str | None, given: Mapping[str, Any]
    ) -> dict[str, Value]:
        """Arguments as JSON values; UsageError for one that only the implementation knows."""
        plain = {}
        for name, value in given.items():
            if name != process_parameter:
                plain[name] = argument = _json_argument(value)
                if argument is _OPAQUE:
                    raise UsageError(
                        f"{self.interface.__name__}: {signature.name} was given a value of the state as {name!r} that "
                        "the implementation picks: expected calls, set-up and observation to use values that the test "
                        "picks"
                    )
        return plain


def _invocations(given: Iterable[Any]) -> list[Invocation]:
    """UsageError for what is no invocation."""
    invocations = list(given)
    for item in invocations:
        if not isinstance(item, Invocation):
            raise UsageError(f"expected invoke(...) of calls, got {type(item).__name__} {item!r}")
    return invocations


_OPAQUE = object()


def _json_argument(value: Any) -> Value:
    """An argument as the JSON value of docs/ARCHITECTURE.md ("Values"); `_OPAQUE` if a part of it has none."""
    if isinstance(value, OpaqueValue):
        return _OPAQUE
    if isinstance(value, Struct):
        fields = {name: _json_argument(getattr(value, name)) for name in struct_fields(type(value))}
        return _OPAQUE if _OPAQUE in fields.values() else {"struct": fields}
    if isinstance(value, tuple | list):
        items = [_json_argument(item) for item in value]
        return _OPAQUE if _OPAQUE in items else {"seq": items}
    return value


def _growth_strings(length: int) -> list[tuple[int, ...]]:
    """Every way to put `length` calls into processes, processes numbered by first use."""
    strings: list[tuple[int, ...]] = [(0,)]
    for _ in range(length - 1):
        strings = [(*s, process) for s in strings for process in range(max(s) + 2)]
    return strings
