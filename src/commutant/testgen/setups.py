"""The states that set-ups reach: how the model builds a state, and whether its own replay gets there.

Classes that differ in what calls do, in one set of calls or in several, mostly begin in few states. So each is built
once, and with it stands how a test tells of it.
"""

from __future__ import annotations

import contextlib
import types
import typing
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from typing import Any

from commutant.corpus import Value, encode
from commutant.guard import CHANGES_STATE, Endless, ModelFault, at_method, faults_of
from commutant.lang import (
    WHOLE_STATE,
    CallSignature,
    ConcreteOracle,
    Interface,
    Invocation,
    OpaqueValue,
    Sort,
    SortType,
    StepResult,
    Struct,
    Type,
    answered_by,
    describe_type,
    struct_fields,
    types_within,
)
from commutant.support import UsageError
from commutant.testgen.canonical import Anything, Canonical, agree
from commutant.testgen.concrete import ConcreteModel, Observed, Start
from commutant.testgen.frozen import Frozen, NotFrozen, freeze, thaw
from commutant.testgen.search import SetupSearch, values_gone
from commutant.testgen.state_text import state_text
from commutant.testgen.valuation import Valuation

MAX_STATES = 1 << 14
MAX_KEPT = 1 << 18
"""This many states, and so much that calls and observations do in states, are kept; then that begins again."""

MAX_STEPS = 10_000
"""A set-up of more calls is taken to have no end."""


class Untestable(Exception):
    """A class for which no test can be made: why, and the state that was wanted, in words."""

    def __init__(self, reason: str, example: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.example = example


class Built:
    """A state that a set-up has reached, and the set-up's steps as JSON. `is_found`: by search, not by the model."""

    def __init__(self, setups: Setups, start: Start, text: str, *, is_found: bool) -> None:
        self.start = start
        self.text = text
        self.is_found = is_found
        self._setups = setups
        self._observations: dict[tuple[tuple[Any, ...], ...], Observed] = {}

    def observation(self, valuation: Valuation, names: Mapping[OpaqueValue, OpaqueValue]) -> Observed:
        """The calls that read the state back, where a test uses these values; `names` tells of opaque values of the
        state that was wanted which they are here."""
        with_handles = self._setups.takes_handles
        values = valuation.of_sorts()
        if with_handles:
            values = {sort: _here(of_sort, names) for sort, of_sort in values.items()}
        key = tuple(map(tuple, values.values())) if with_handles else valuation.handed_out()
        known = self._observations.get(key)
        if known is None:
            with faults_of(self._setups.model.interface, "observe"):
                invocations = invocations_of(self.start.state.observe(values))
            steps = [self._setups.step(invocation, self.start.numbered.values) for invocation in invocations]
            text = f"[{','.join([step.text for step in steps])}]"
            known = self._observations[key] = self._setups.model.observation(invocations, text)
        return known


def _here(values: Iterable[Any], names: Mapping[OpaqueValue, OpaqueValue]) -> list[Any]:
    """Values of a sort as they are called in the state that was reached; opaque ones that it has not are left out."""
    return [names.get(v, v) for v in values if not isinstance(v, OpaqueValue) or v in names]


@dataclass(frozen=True, slots=True, eq=False)
class StepText:
    """A call of a set-up or an observation as a JSON object; one object for equal ones."""

    text: str

    def with_result(self, result: Value, also: Sequence[Value]) -> str:
        """The same with what the call returned, and what else it may return."""
        others = f',"also":{encode(also)}' if also else ""
        return f'{self.text[:-1]},"result":{"null" if result is None else encode(result)}{others}}}'


Found = tuple[Built, Mapping[OpaqueValue, OpaqueValue]]
"""What builds a state, and which opaque values of the wanted state are which of the one that was reached."""


class Setups:
    """The states of one model that have been asked for, and those that were reached."""

    def __init__(self, interface: type[Interface]) -> None:
        self.model = ConcreteModel(interface)
        self.takes_handles = takes_handles(interface)
        self._found: dict[Frozen, Found | Untestable] = {}
        self._reached: dict[tuple[Any, ...], Built] = {}
        self._steps: dict[Frozen, StepText] = {}
        self._has_setup = interface.setup is not Interface.setup
        self._of_whole_state = interface.well_formedness().get(WHOLE_STATE, [])
        self._search = SetupSearch(self.model, with_handles=self.takes_handles)

        @cache
        def signature(call: str) -> tuple[CallSignature, str | None]:
            found = interface.signature(call)
            return found, found.process_parameter

        self._signature = signature

    def of(self, wanted: Frozen, gone: tuple[OpaqueValue, ...] = ()) -> Found:
        """What builds a state; Untestable if nothing does. `gone`: opaque values that calls shall have returned and
        that the state has no more."""
        key = (wanted, gone) if gone else wanted
        known = self._found.get(key)
        if known is None:
            if len(self._found) >= MAX_STATES or self.model.kept >= MAX_KEPT:
                self._found.clear()
                self._reached.clear()
                self._steps.clear()
                self.model.forget()
            try:
                known = self._build(thaw(wanted), gone)
            except Endless:
                raise
            except ModelFault as fault:
                known = Untestable(str(fault), state_text(thaw(wanted), zeros=True))
            except Untestable as untestable:
                known = untestable
            self._found[key] = known
        if isinstance(known, Untestable):
            raise known
        return known

    def _build(self, wanted: Interface, gone: tuple[OpaqueValue, ...]) -> Found:
        """Untestable where there is no set-up, or one that leads elsewhere but for values an implementation picks."""
        interface = self.model.interface
        with faults_of(interface, "complete"), answered_by(_AnyTime()):
            wanted.complete()
        self._check_well_formed(wanted)
        if not self._has_setup:
            found = self._search.of(wanted, gone)
            if found is None:
                why = f"{interface.__name__} has no setup(), and no calls were found that build the state"
                raise Untestable(why + _with_gone(gone), state_text(wanted, zeros=True))
            built = self._replay(found, is_found=True)
        else:
            with faults_of(interface, "setup"):
                given = wanted.setup()
                invocations = None if given is None else [_with_plain_integers(i) for i in invocations_of(given)]
            if invocations is None:
                where = at_method(interface, "setup")
                raise Untestable(f"{where} returned None: no calls build the state", state_text(wanted, zeros=True))
            built = self._replay(invocations, is_found=False)
            if gone:
                found = self._search.of(wanted, gone, built.start.invocations)
                if found is None:
                    raise Untestable(
                        f"no calls were found that build the state{_with_gone(gone)}", state_text(wanted, zeros=True)
                    )
                built = self._replay(found, is_found=False)
        with faults_of(interface, "equivalent"):
            names = agree(wanted, built.start.state, with_handles=self.takes_handles)
        if names is None:
            reached = state_text(built.start.state) or "the empty state"
            where = at_method(interface, "setup")
            raise Untestable(f"{where}: its calls lead to another state", f"{state_text(wanted)}; reached: {reached}")
        with faults_of(interface, "equivalent"):
            start = built.start
            if any(agree(start.state, one, with_handles=self.takes_handles) is None for one in start.others):
                raise Untestable(
                    "the calls that build the state may lead to another one, by a choice that no result tells",
                    state_text(wanted),
                )
        return built, {**names, **(values_gone(gone, names, built.start.numbered.values) or {})}

    def _check_well_formed(self, wanted: Interface) -> None:
        """Untestable where what no one asked for makes the state ill-formed."""
        if not self._of_whole_state:
            return
        before = _frozen(wanted)
        for method in self._of_whole_state:
            with faults_of(self.model.interface, method.__name__):
                holds = method(wanted)
                if _frozen(wanted) != before:
                    raise UsageError(CHANGES_STATE)
            if not holds:
                raise Untestable(
                    f"the state that stands for the class is not well-formed: {method.__name__}()", state_text(wanted)
                )

    def _replay(self, invocations: Sequence[Invocation], *, is_found: bool) -> Built:
        """What the calls build; states that differ in what no call looks at are built by the same ones."""
        key: tuple[Any, ...] = tuple([self._key(invocation) for invocation in invocations])
        known = self._reached.get(key)
        if known is None:
            with faults_of(self.model.interface, "setup"):
                start = self.model.replay(invocations)
            steps = [self.step(invocation, start.numbered.values) for invocation in start.invocations]
            also = start.also or ((),) * len(steps)
            known_of = zip(steps, start.results, also, strict=True)
            texts = [step.with_result(result, others) for step, result, others in known_of]
            known = self._reached[key] = Built(self, start, f"[{','.join(texts)}]", is_found=is_found)
        return known

    def _key(self, invocation: Invocation) -> object:
        """Something that is equal for equal invocations."""
        refers_back = any(isinstance(value, StepResult) for value in invocation.arguments.values())
        return repr(invocation) if self.takes_handles or refers_back else self.step(invocation)

    def step(self, invocation: Invocation, numbered: Sequence[OpaqueValue] = ()) -> StepText:
        """A call of a set-up or an observation as it stands in a test. `numbered`: the opaque values that the set-up's
        results tell, by which an argument names one."""
        names, values = tuple(invocation.arguments), tuple(invocation.arguments.values())
        try:
            key = (invocation.call, names, freeze(values), tuple(numbered) if self.takes_handles else ())
        except (NotFrozen, RecursionError):
            return self._new_step(invocation, numbered)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._new_step(invocation, numbered)
        return known

    def _new_step(self, invocation: Invocation, numbered: Sequence[OpaqueValue]) -> StepText:
        signature, parameter = self._signature(invocation.call)
        process = int(invocation.arguments[parameter]) if parameter else 0
        arguments = self.arguments(signature, parameter, invocation.arguments, numbered)
        return StepText(encode({"call": invocation.call, "args": arguments, "process": process}))

    def arguments(
        self,
        signature: CallSignature,
        process_parameter: str | None,
        given: Mapping[str, Any],
        numbered: Sequence[OpaqueValue] = (),
    ) -> dict[str, Value]:
        """Arguments as JSON values; Untestable for one that only the implementation knows."""
        canonical = Canonical(numbered) if self.takes_handles else None
        plain = {}
        for name, value in given.items():
            if name != process_parameter:
                plain[name] = argument = _json_argument(value, canonical)
                if argument is _OPAQUE:
                    raise Untestable(
                        f"{signature.name} needs a {_opaque_sort(value)} as {name!r} that no step of the set-up returns"
                    )
        return plain


@lru_cache(maxsize=1)
def setups_of(interface: type[Interface]) -> Setups:
    """The states of a model that this process has built; sets of calls share them."""
    return Setups(interface)


def takes_handles(interface: type[Interface]) -> bool:
    """Whether a call takes values that the implementation picks."""
    return any(
        isinstance(part, SortType) and part.sort.opaque
        for signature in interface.signatures()
        for type_ in signature.parameters.values()
        for part in types_within(type_)
    )


def untestable_beforehand(interface: type[Interface]) -> list[str]:
    """What of a model cannot be tested whatever its states, a sentence for each: handles that no call hands out."""
    handed_out = {
        part.sort
        for signature in interface.signatures()
        for part in _result_types(getattr(interface, signature.name))
        if isinstance(part, SortType)
    }
    taken = {
        (signature.name, part.sort)
        for signature in interface.signatures()
        for type_ in signature.parameters.values()
        for part in types_within(type_)
        if isinstance(part, SortType) and part.sort.opaque
    }
    return [
        f"{call} takes a {sort.__name__}, which the implementation picks and no call returns: it will have no tests"
        for call, sort in sorted(taken, key=str)
        if sort not in handed_out
    ]


def _result_types(function: Any) -> Iterator[Type]:
    """The types that a call is annotated to return, and those that they are made of."""
    pending = [typing.get_type_hints(function, include_extras=True).get("return")]
    while pending:
        hint = pending.pop()
        if typing.get_origin(hint) in (typing.Union, types.UnionType):
            pending += typing.get_args(hint)
            continue
        with contextlib.suppress(UsageError):  # an Errno, or nothing
            yield from types_within(describe_type(hint, "the result"))


def invocations_of(given: Iterable[Any]) -> list[Invocation]:
    """The invocations that a set-up or an observation consists of; UsageError for what is none, and for no end.

    A generator is sent what stands for the result of each.
    """
    invocations: list[Invocation] = []
    items = iter(given)
    while True:
        try:
            if isinstance(items, Generator) and invocations:
                item = items.send(StepResult(len(invocations) - 1))
            else:
                item = next(items)
        except StopIteration:
            return invocations
        if not isinstance(item, Invocation):
            raise UsageError(f"expected invoke(...) of calls, got {type(item).__name__} {item!r}")
        if len(invocations) >= MAX_STEPS:
            raise UsageError(f"more calls than {MAX_STEPS:,}: expected a list that ends")
        invocations.append(item)


class _AnyTime(ConcreteOracle):
    """Answers a model that completes a state: what no call looks at may have any time."""

    def now(self) -> Any:
        """A time that the set-up need not reach."""
        return Anything(int(super().now()))


def _with_plain_integers(invocation: Invocation) -> Invocation:
    """Whatever value does is this one from here on."""
    arguments = {name: int(v) if v.__class__ is Anything else v for name, v in invocation.arguments.items()}
    return Invocation(invocation.call, arguments)


def _frozen(state: Interface) -> Frozen | None:
    try:
        return freeze(state)
    except (NotFrozen, RecursionError):
        return None


def _with_gone(gone: Sequence[OpaqueValue]) -> str:
    """What is asked for in addition to a state, in words."""
    return f", and return a {gone[0].sort} that it has no more" if gone else ""


_OPAQUE = object()


def _json_argument(value: Any, canonical: Canonical | None) -> Value:
    """An argument as the JSON value of docs/reference/test-cases.md; `_OPAQUE` if a part of it has none."""
    if isinstance(value, OpaqueValue):
        return canonical.json(value) if canonical is not None and canonical.knows(value) else _OPAQUE
    if isinstance(value, Struct):
        fields = {name: _json_argument(getattr(value, name), canonical) for name in struct_fields(type(value))}
        return _OPAQUE if _OPAQUE in fields.values() else {"struct": fields}
    if isinstance(value, tuple | list):
        items = [_json_argument(item, canonical) for item in value]
        return _OPAQUE if _OPAQUE in items else {"seq": items}
    if isinstance(value, Enum):
        return value.name
    return value


def _opaque_sort(value: Any) -> str:
    """The sort of the first opaque value in an argument."""
    return value.sort if isinstance(value, OpaqueValue) else Sort.__name__
