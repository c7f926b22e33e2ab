"""The states that set-ups reach: how the model builds a state, and whether its own replay gets there.

Classes that differ in what calls do, in one set of calls or in several, mostly begin in few states. So each is built
once, and with it stands how a test tells of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from commutant.corpus import Value, encode
from commutant.guard import faults_of
from commutant.lang import CallSignature, Interface, Invocation, OpaqueValue, Struct, struct_fields
from commutant.support import UsageError
from commutant.testgen.canonical import Anything, agree
from commutant.testgen.concrete import ConcreteModel, Observation, Start
from commutant.testgen.frozen import Frozen, NotFrozen, freeze, thaw
from commutant.testgen.valuation import Valuation

MAX_STATES = 1 << 13
MAX_KEPT = 1 << 16
"""So many states, and so much that calls and observations do in states, are kept; then that begins anew."""


class NoSetup(Exception):
    """The model has no set-up for this state."""


class Built:
    """A state that a set-up has reached, and the set-up's steps as JSON."""

    def __init__(self, setups: Setups, start: Start, text: str) -> None:
        self.start = start
        self.text = text
        self._setups = setups
        self._observations: dict[tuple[tuple[Any, ...], ...], Observation] = {}

    def observation(self, valuation: Valuation) -> Observation:
        """The calls that read the state back, where a test uses these values."""
        key = valuation.handed_out()
        known = self._observations.get(key)
        if known is None:
            with faults_of(self._setups.model.interface, "observe"):
                invocations = _invocations(self.start.state.observe(valuation.of_sorts()))
            texts = [self._setups.step(invocation).text for invocation in invocations]
            known = self._observations[key] = self._setups.model.observation(invocations, f"[{','.join(texts)}]")
        return known


@dataclass(frozen=True, slots=True, eq=False)
class StepText:
    """A call of a set-up or an observation as a JSON object; one object for equal ones."""

    text: str

    def with_result(self, result: Value) -> str:
        """The same with what the call returned."""
        return f'{self.text[:-1]},"result":{"null" if result is None else encode(result)}}}'


class Setups:
    """The states of one model that have been asked for, and those that were reached."""

    def __init__(self, interface: type[Interface]) -> None:
        self.model = ConcreteModel(interface)
        self._built: dict[Frozen, Built | None] = {}
        self._reached: dict[tuple[StepText, ...], Built] = {}
        self._steps: dict[Frozen, StepText] = {}

        @cache
        def signature(call: str) -> tuple[CallSignature, str | None]:
            found = interface.signature(call)
            return found, found.process_parameter

        self._signature = signature

    def of(self, wanted: Frozen) -> Built:
        """What builds a state; NoSetup if nothing does."""
        known = self._built.get(wanted)
        if known is None and wanted not in self._built:
            if len(self._built) >= MAX_STATES or self.model.kept >= MAX_KEPT:
                self._built.clear()
                self._reached.clear()
                self._steps.clear()
                self.model.forget()
            known = self._built[wanted] = self._build(thaw(wanted))
        if known is None:
            raise NoSetup
        return known

    def _build(self, wanted: Interface) -> Built | None:
        """None where there is no set-up, or one that leads elsewhere, up to the values an implementation picks."""
        interface = self.model.interface
        with faults_of(interface, "complete"):
            wanted.complete()
        with faults_of(interface, "setup"):
            given = wanted.setup()
            invocations = None if given is None else [_with_plain_integers(i) for i in _invocations(given)]
        if invocations is None:
            return None
        built = self._replay(invocations)
        return built if agree(wanted, built.start.state) else None

    def _replay(self, invocations: Sequence[Invocation]) -> Built:
        """What the calls build; states that differ in what no call looks at are built by the same ones."""
        steps = tuple([self.step(invocation) for invocation in invocations])
        known = self._reached.get(steps)
        if known is None:
            start = self.model.replay(invocations)
            texts = [step.with_result(result) for step, result in zip(steps, start.results, strict=True)]
            known = self._reached[steps] = Built(self, start, f"[{','.join(texts)}]")
        return known

    def step(self, invocation: Invocation) -> StepText:
        """A call of a set-up or an observation as it stands in a test."""
        names, values = tuple(invocation.arguments), tuple(invocation.arguments.values())
        try:
            key = (invocation.call, names, freeze(values))
        except (NotFrozen, RecursionError):
            return self._new_step(invocation)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._new_step(invocation)
        return known

    def _new_step(self, invocation: Invocation) -> StepText:
        signature, parameter = self._signature(invocation.call)
        process = int(invocation.arguments[parameter]) if parameter else 0
        arguments = self.arguments(signature, parameter, invocation.arguments)
        return StepText(encode({"call": invocation.call, "args": arguments, "process": process}))

    def arguments(
        self, signature: CallSignature, process_parameter: str | None, given: Mapping[str, Any]
    ) -> dict[str, Value]:
        """Arguments as JSON values; UsageError for one that only the implementation knows."""
        plain = {}
        for name, value in given.items():
            if name != process_parameter:
                plain[name] = argument = _json_argument(value)
                if argument is _OPAQUE:
                    raise UsageError(
                        f"{self.model.interface.__name__}: {signature.name} was given a value of the state as "
                        f"{name!r} that the implementation picks: expected calls, set-up and observation to use "
                        "values that the test picks"
                    )
        return plain


@lru_cache(maxsize=1)
def setups_of(interface: type[Interface]) -> Setups:
    """The states of a model that this process has built; sets of calls share them."""
    return Setups(interface)


def _invocations(given: Iterable[Any]) -> list[Invocation]:
    """UsageError for what is no invocation."""
    invocations = list(given)
    for item in invocations:
        if not isinstance(item, Invocation):
            raise UsageError(f"expected invoke(...) of calls, got {type(item).__name__} {item!r}")
    return invocations


def _with_plain_integers(invocation: Invocation) -> Invocation:
    """Whatever value does is this one from here on."""
    arguments = {name: int(v) if v.__class__ is Anything else v for name, v in invocation.arguments.items()}
    return Invocation(invocation.call, arguments)


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
