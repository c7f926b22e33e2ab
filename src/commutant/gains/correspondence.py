"""Which calls of two interfaces correspond, and which of them do the same, so that comparing them shows nothing.

Calls correspond by name, or because the second interface declares it (`Interface.stands_for`), or whoever compares
does. Two calls do the same if their code is equal, and so is all code of their interfaces that it names.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any

from commutant.analyzer import shared_attributes
from commutant.lang import Interface, same_code
from commutant.support import UsageError, did_you_mean

_ALWAYS = ("equivalent", "touch")
"""Methods that the exploration asks besides the calls."""


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
        self._conditions = _conditions(first, shared) == _conditions(second, shared)
        self._known: dict[tuple[str, str], bool] = {}
        self._functions: dict[tuple[int, int], bool] = {}

    def of(self, call: str, other: str) -> bool:
        """Whether the first interface's call and the other's do the same, whatever the state."""
        return (
            self._state_is_shared
            and self._conditions
            and _parameters(self._first, call) == _parameters(self._second, other)
            and all(self._methods(name, name) for name in _ALWAYS)
            and self._methods(call, other)
        )

    def _methods(self, name: str, other: str) -> bool:
        known = self._known.get((name, other))
        if known is not None:
            return known
        self._known[name, other] = True  # while it is being looked at: calls may call each other
        mine, theirs = (inspect.getattr_static(owner, one, None) for owner, one in self._sides(name, other))
        same = self._values(mine, theirs)
        self._known[name, other] = same
        return same

    def _sides(self, name: str, other: str) -> tuple[tuple[type[Interface], str], tuple[type[Interface], str]]:
        return (self._first, name), (self._second, other)

    def _values(self, mine: Any, theirs: Any) -> bool:
        if not isinstance(mine, FunctionType) or not isinstance(theirs, FunctionType):
            return mine is theirs or (type(mine) is type(theirs) and not callable(mine) and bool(mine == theirs))
        if mine.__name__ != theirs.__name__ or not same_code(mine.__code__, theirs.__code__):
            return False
        if (mine.__defaults__, mine.__kwdefaults__) != (theirs.__defaults__, theirs.__kwdefaults__):
            return False
        if mine is not theirs and (mine.__closure__ or theirs.__closure__):
            return False  # what it closes over is not looked at
        if not all(self._globals(name, mine, theirs) for name in names_in(mine.__code__)):
            return False
        return all(self._methods(name, name) for name in names_of_self(mine) if not name.startswith("__"))

    def _globals(self, name: str, mine: FunctionType, theirs: FunctionType) -> bool:
        one, other = mine.__globals__.get(name), theirs.__globals__.get(name)
        if isinstance(one, FunctionType) and isinstance(other, FunctionType):
            pair = (id(one), id(other))
            if one is not other and pair not in self._functions:
                self._functions[pair] = True  # while it is being looked at: functions may call each other
                self._functions[pair] = self._values(one, other)
            return one is other or self._functions[pair]
        return one is other or (not callable(one) and bool(one == other))


def _parameters(interface: type[Interface], call: str) -> list[tuple[str, Any]]:
    """The parameters of a call with their types."""
    return list(interface.signature(call).parameters.items())


def _conditions(interface: type[Interface], shared: frozenset[str]) -> list[tuple[str, list[Any]]]:
    return [
        (about, [_Code(function.__code__) for function in functions])
        for about, functions in sorted(interface.well_formedness().items())
        if not about or about.partition(".")[0] in shared
    ]


class _Code:
    """A function's code, equal to any that is compiled from equal text."""

    def __init__(self, code: CodeType) -> None:
        self._code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and same_code(self._code, other._code)

    __hash__ = None  # type: ignore[assignment]


def names_of_self(function: FunctionType) -> set[str]:
    """The names that a method asks of its first argument; all that it speaks of where that cannot be said."""
    if not function.__code__.co_argcount:
        return set()
    itself = function.__code__.co_varnames[0]
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return names_in(function.__code__)
    uses = sum(isinstance(node, ast.Name) and node.id in (itself, "super") for node in ast.walk(tree))
    asked = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == itself
    ]
    return set(asked) if len(asked) == uses else names_in(function.__code__)


def names_in(code: CodeType) -> set[str]:
    """The names of globals and attributes that a function speaks of, functions within it included."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names_in(constant)
    return found
