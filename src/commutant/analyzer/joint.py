"""Two interfaces over one unknown state: every path through the calls of the first and the calls that correspond to
them in the second.

What both declare alike, attributes of the state and parameters of calls, is one and the same unknown. What only one of
them has is an unknown of its own. So each path has two verdicts, and a state in which one interface commutes and the
other does not shows both at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from commutant.analyzer.commute import CallSet, PathOutcome, both_hold
from commutant.analyzer.oracle import IN_USE, Answers, SymbolicOracle
from commutant.guard import begin_path
from commutant.lang import Interface, MapType, Type
from commutant.support import UsageError
from commutant.symbolic import (
    CallsUnderWay,
    Context,
    EntryHook,
    SymbolicMap,
    clone,
    current,
    shown,
    unknown,
    unknown_record,
)

SECOND = "'"
"""What the names of the second interface's calls end with, where it chooses or has a parameter of its own."""

Given = tuple[Interface, tuple[dict[str, Any], ...]]
"""An unknown state, and the unknown arguments of each call."""


@dataclass(frozen=True, slots=True)
class JointOutcome:
    """What a path showed of both interfaces; `decided` decisions of it are those that the first one's calls made."""

    first: PathOutcome
    second: PathOutcome
    decided: int


class JointCallSets:
    """A set of calls of one interface and the calls of another that correspond to them, ready to be explored."""

    def __init__(
        self,
        first: type[Interface],
        second: type[Interface],
        calls: tuple[str, ...],
        calls_of_second: tuple[str, ...],
    ) -> None:
        """UsageError where both have a parameter or an attribute of one name and of two types."""
        check_correspondence(first, second, dict(zip(calls, calls_of_second, strict=True)))
        self.first = _Half(first, calls, "")
        self.second = _Half(second, calls_of_second, SECOND)
        self._names = frozenset((*calls, *calls_of_second))
        self.shared = shared_attributes(first, second)
        self.second.apart_from = self.first
        self.second.leave_out(first.well_formedness())
        own = zip(self.first.signatures, self.second.signatures, strict=True)
        self.own_parameters: tuple[frozenset[str], ...] = tuple(
            frozenset(mine.parameters.keys() - theirs.parameters.keys()) for theirs, mine in own
        )
        """Of each call, the parameters that only the second interface has."""

    def run(self, context: Context) -> JointOutcome:
        """Runs all orders of both on the path that the context prescribes; see `CallSet.run`."""
        begin_path()
        CallsUnderWay.names = self._names
        self.first.given, self.second.given = context.step(self._begin)
        first = self.first.outcome(context)
        decided = context.step(lambda: context.trail_length)  # as a step: the second's may be kept from a path before
        return JointOutcome(first, self.second.outcome(context), decided)

    def _begin(self) -> tuple[Given, Given]:
        states: list[Interface] = []

        def hook_of(record: Interface, name: str) -> EntryHook | None:
            """Both interfaces' conditions, each of its own view of the state."""
            mine = self.first.hook_of(record, name)
            if name not in self.shared or not self.second.asks_entries(name):
                return mine

            def theirs(key: Any, value: Any) -> Any:
                hook = self.second.hook_of(states[1], name)  # the second state is made after the first one
                return hook is None or hook(key, value)

            return both_hold(mine, theirs)

        states.append(unknown_record(self.first.interface, self.first.interface.state_types(), hook_of=hook_of))
        states.append(self._second_state(states[0]))
        for half, state in zip((self.first, self.second), states, strict=True):
            setattr(state, IN_USE, ())
            half.ask_scalars(state)
        arguments = tuple(
            {name: unknown(type_, f"{label}.{name}") for name, type_ in signature.parameters.items()}
            for label, signature in zip(self.first.labels, self.first.signatures, strict=True)
        )
        return (states[0], arguments), (states[1], self._second_arguments(arguments))

    def _second_state(self, first: Interface) -> Interface:
        """A state of the second interface that holds what the first one's does, and has the rest to itself."""
        types = self.second.interface.state_types()

        def origin(record: Interface, name: str) -> Any:
            if name not in types:
                raise AttributeError(f"{type(record).__name__!r} object has no attribute {name!r}")
            current().undo_pop(record.__dict__, name)
            if name not in self.shared:
                return own(record, name)
            value = getattr(first, name)
            return SymbolicMap(value.content) if isinstance(types[name], MapType) else clone(value)

        def own(record: Interface, name: str) -> Any:
            if isinstance(types[name], MapType):
                return unknown(types[name], name, hook=self.second.hook_of(record, name))
            return unknown(types[name], name)

        return self.second.interface.from_origin(origin)

    def _second_arguments(self, first: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        return tuple(
            {
                name: given[name] if name in given else unknown(type_, f"{label}.{name}")
                for name, type_ in signature.parameters.items()
            }
            for given, label, signature in zip(first, self.second.labels, self.second.signatures, strict=True)
        )


class _Half(CallSet):
    """The calls of one of the two interfaces, from a state and with arguments that come from outside."""

    given: Given
    apart_from: _Half | None = None

    def __init__(self, interface: type[Interface], calls: tuple[str, ...], mark: str) -> None:
        super().__init__(interface, calls)
        self.labels = [f"{label}{mark}" for label in self.labels]
        self._runs_to_verify = 0
        self.answers: Answers = {}

    def begin(self) -> Given:
        """What was given."""
        return self.given

    def oracle(self, index: int, answers: Answers, state: Interface, after: int = 0) -> SymbolicOracle:
        """As of any set of calls, but that nothing new is what the other interface got."""
        self.answers = answers
        foreign = None if self.apart_from is None else self.apart_from.answers
        return SymbolicOracle(self.labels[index], answers, state, after, foreign)

    def ask_scalars(self, state: Interface) -> None:
        """Makes plain attributes before all else, so that sentences begin with the state."""
        for name in self._scalars:
            getattr(state, name)

    def leave_out(self, known: Mapping[str, list[Callable[..., Any]]]) -> None:
        """Leaves out the conditions that the other interface asks for already."""
        for name, hooks in self._hooks.items():
            self._hooks[name] = [hook for hook in hooks if hook not in known.get(name, [])]
        for name in [name for name, hooks in self._hooks.items() if not hooks]:
            del self._hooks[name]
            attribute, _, field = name.partition(".")
            if field:
                self._inner_hooks[attribute].remove(field)
        self._inner_hooks = {name: fields for name, fields in self._inner_hooks.items() if fields}

    def outcome(self, context: Context) -> PathOutcome:
        """What the orders of these calls show."""
        return self._run(context)[0]


def shared_attributes(first: type[Interface], second: type[Interface]) -> frozenset[str]:
    """The attributes of the state that both interfaces have."""
    theirs = second.state_types()
    return frozenset(name for name, type_ in first.state_types().items() if theirs.get(name) == type_)


def check_correspondence(first: type[Interface], second: type[Interface], calls: Mapping[str, str]) -> None:
    """UsageError where an attribute of the states, or a parameter of calls that correspond, has two types."""
    names = f"{first.interface_name} and {second.interface_name}"
    theirs = second.state_types()
    for name, type_ in first.state_types().items():
        if name in theirs and theirs[name] != type_:
            raise UsageError(
                f"{names}: self.{name} has type {shown(type_)} in one and {shown(theirs[name])} in the other"
                f"{_of_two_classes(type_, theirs[name])}: expected one type, or two names"
            )
    for mine, other in calls.items():
        parameters = second.signature(other).parameters
        for name, type_ in first.signature(mine).parameters.items():
            if name in parameters and parameters[name] != type_:
                raise UsageError(
                    f"{names}: {mine} and {other} do not correspond: parameter {name!r} has type {shown(type_)} in one "
                    f"and {shown(parameters[name])} in the other{_of_two_classes(type_, parameters[name])}; expected "
                    "one type, or two names"
                )


def _of_two_classes(one: Type, other: Type) -> str:
    return ", where a class of that name is declared differently" if shown(one) == shown(other) else ""


__all__ = ["JointCallSets", "JointOutcome", "check_correspondence", "shared_attributes"]
