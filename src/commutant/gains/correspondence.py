"""Which calls of two interfaces correspond, and which of them do the same, so that comparing them shows nothing.

Calls correspond by name, or because the second interface declares it (`Interface.stands_for`), or anyone who compares
does. Two calls do the same if their code is equal, and so is all code of their interfaces that it names.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from types import FunctionType
from typing import Any, NamedTuple

from commutant.analyzer import shared_attributes
from commutant.lang import Interface, SameValues, assuming_same, names_in
from commutant.support import UsageError, did_you_mean

_ALWAYS = ("equivalent", "touch")
"""Methods that the exploration asks besides the calls."""

_ENGINE = "commutant.lang."
"""Where `Interface` is defined."""


def corresponding_calls(
    first: type[Interface], second: type[Interface], declared: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The calls of the first interface, each with the call of the second that it corresponds to.

    `declared` says of calls of the second which ones of the first they stand for, besides those that the class says
    itself. UsageError for an unknown call, for two calls that stand for one, and where nothing corresponds.
    """
    known, theirs = first.call_names(), second.call_names()
    stands_for = {**second.stands_for, **(declared or {})}
    for name, other in stands_for.items():
        for call, names, interface in ((name, theirs, second), (other, known, first)):
            if call not in names and (call == name or other in (declared or {}).values()):
                raise UsageError(
                    f"{interface.interface_name} has no call {call!r}, of which {name}={other} speaks; "
                    f"it has {', '.join(names)}{did_you_mean(call, names)}"
                )
    found: dict[str, str] = {}
    for name in theirs:
        other = stands_for.get(name, name)
        if other in known:
            if other in found:
                raise UsageError(
                    f"{found[other]} and {name} of {second.interface_name} both stand for {other} of "
                    f"{first.interface_name}: expected one"
                )
            found[other] = name
    if not found:
        raise UsageError(
            f"{first.interface_name} and {second.interface_name} have no call in common ({', '.join(known)}; "
            f"{', '.join(theirs)}): expected calls of one name, or --call NEW=OLD for those that correspond"
        )
    return {name: found[name] for name in known if name in found}


class SameCode:
    """Whether calls of two interfaces do the same."""

    def __init__(self, first: type[Interface], second: type[Interface]) -> None:
        self._first = first
        self._second = second
        shared = shared_attributes(first, second)
        self._state_is_shared = shared == first.state_types().keys()
        self._same = SameValues()
        self._known: dict[tuple[str, str], bool] = {}
        self._conditions = self._same_conditions(_conditions(first, shared), _conditions(second, shared))

    def of(self, call: str, other: str) -> bool:
        """Whether the first interface's call and the other's do the same, whatever the state."""
        return (
            self._state_is_shared
            and self._conditions
            and _parameters(self._first, call) == _parameters(self._second, other)
            and all(self._methods(name, name) for name in _ALWAYS)
            and self._methods(call, other)
        )

    def _same_conditions(self, mine: Mapping[str, list[Any]], theirs: Mapping[str, list[Any]]) -> bool:
        return mine.keys() == theirs.keys() and all(
            len(mine[about]) == len(theirs[about]) and all(map(self._values, mine[about], theirs[about]))
            for about in mine
        )

    def _methods(self, name: str, other: str) -> bool:
        known = self._known.get((name, other))
        if known is not None:
            return known
        mine, theirs = (inspect.getattr_static(owner, one, None) for owner, one in self._sides(name, other))
        return assuming_same(self._known, (name, other), lambda: self._values(mine, theirs))

    def _sides(self, name: str, other: str) -> tuple[tuple[type[Interface], str], tuple[type[Interface], str]]:
        return (self._first, name), (self._second, other)

    def _values(self, mine: Any, theirs: Any) -> bool:
        """Whether two attributes of the interfaces are the same; of methods, also what they ask of `self`."""
        if not self._same.of(mine, theirs):
            return False
        if not isinstance(mine, FunctionType):
            return True
        names = names_of_self(mine)
        return (
            names is not None
            and all(self._methods(name, name) for name in names.of_self if not name.startswith("__"))
            and all(
                self._values(_above(self._first, mine, name), _above(self._second, theirs, name))
                for name in names.of_super
            )
        )


def _above(interface: type[Interface], method: FunctionType, name: str) -> Any:
    """What `super()` in a method finds by a name."""
    bases = iter(interface.__mro__)
    for base in bases:
        if any(value is method for value in vars(base).values()):
            break
    return next((vars(base)[name] for base in bases if name in vars(base)), None)


def _parameters(interface: type[Interface], call: str) -> list[tuple[str, Any]]:
    """The parameters of a call with their types."""
    return list(interface.signature(call).parameters.items())


def _conditions(interface: type[Interface], shared: frozenset[str]) -> dict[str, list[Any]]:
    return {
        about: functions
        for about, functions in interface.well_formedness().items()
        if not about or about.partition(".")[0] in shared
    }


class NamesOfSelf(NamedTuple):
    """The names that a method asks of its first argument, and those that it asks of `super()`."""

    of_self: frozenset[str]
    of_super: frozenset[str]


def names_of_self(function: FunctionType) -> NamesOfSelf | None:
    """What a method asks of its first argument; None where that cannot be said, since it does something else with it,
    as to hand it to a function. What the engine itself defines asks for no more than it names, and what `equivalent`
    asks by `getattr` are attributes of the state, which are compared as such."""
    if function.__module__.startswith(_ENGINE):
        return NamesOfSelf(frozenset(names_in(function.__code__)), frozenset())
    if not function.__code__.co_argcount:
        return NamesOfSelf(frozenset(), frozenset())
    itself = function.__code__.co_varnames[0]
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return None
    uses = sum(isinstance(node, ast.Name) and node.id in (itself, "super") for node in ast.walk(tree))
    of_self, of_super, of_state = [], [], 0
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=asked) if name == itself:
                of_self.append(asked)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[], keywords=[]), attr=asked):
                of_super.append(asked)
            case ast.Call(func=ast.Name(id="getattr" | "type"), args=[ast.Name(id=name), *_]) if name == itself:
                of_state += function.__name__ == "equivalent"
    if len(of_self) + len(of_super) + of_state != uses:
        return None
    return NamesOfSelf(frozenset(of_self), frozenset(of_super))
