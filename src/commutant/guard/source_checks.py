"""Reads a model's text for what cannot be analysed and does not show when it runs.

`is` between unknown values cannot be intercepted: it would quietly answer "different" where `==` asks. A model that
draws random numbers or reads a clock gives another answer each time. What a model starts goes on concurrently with its
calls, and where it ends its process no one is left to say so. All these are refused by line, before anything runs. What
only concrete runs use (`setup`, `observe`, set-up calls) may do as it likes.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import weakref
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from commutant.guard.faults import ModelFault
from commutant.lang import Interface, MapType, SeqType, Struct, StructType, TupleType, Type, struct_fields
from commutant.symbolic import length

_NOT_DETERMINISTIC = frozenset({"random", "secrets", "time", "uuid"})
_ACTING = frozenset({"_thread", "asyncio", "concurrent", "multiprocessing", "subprocess", "threading"})
_SYSTEM = frozenset({"os", "posix"})
"""Their functions act on what is outside of the model, or tell of it; their constants a model may use."""
_ONLY_CONCRETE = frozenset({"setup", "observe"})


_checked: weakref.WeakSet[type[Interface]] = weakref.WeakSet()


def check_source(interface: type[Interface]) -> None:
    """ModelFault for the first line of the model that compares by `is`, is not deterministic, or acts by itself."""
    if interface in _checked:
        return
    for function in _functions_of(interface):
        if "len" in function.__code__.co_names:
            function.__globals__.setdefault("len", length)  # the builtin's answer must be a number
        tree = _tree(function)
        if tree is None:
            continue
        first = function.__code__.co_firstlineno
        for node in ast.walk(tree):
            fault = _fault(node, function)
            if fault:
                line = first + getattr(node, "lineno", 1) - 1
                raise ModelFault(f"{function.__code__.co_filename}:{line}: {function.__qualname__}: {fault}")
    _checked.add(interface)


def _fault(node: ast.AST, function: FunctionType) -> str:
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        for position, operator in enumerate(node.ops):
            if isinstance(operator, ast.Is | ast.IsNot) and not any(map(_is_known, operands[position : position + 2])):
                return "`is` compares identities, which unknown values do not have: expected == or !="
    used = _used(node, function)
    source = _origin(used)
    if source in _NOT_DETERMINISTIC:
        return (
            f"{ast.unparse(node)} comes from {source}, so the model is not deterministic: "
            "expected choose() for what the specification leaves open, and now() for the time"
        )
    if source.partition(".")[0] in _ACTING or (source in _SYSTEM and callable(used)):
        return f"{ast.unparse(node)} acts outside of the model: expected calls that only work out their result"
    return ""


def _used(node: ast.AST, function: FunctionType) -> Any:
    """The global, or what is in a module that is a global, that an expression names; None for any other."""
    if isinstance(node, ast.Attribute):
        module = _used(node.value, function)
        return getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
    return function.__globals__.get(node.id) if isinstance(node, ast.Name) else None


def _is_known(operand: ast.expr) -> bool:
    """Whether an operand of `is` is no unknown for certain: None, an Errno, a type."""
    if isinstance(operand, ast.Constant):
        return operand.value is None or operand.value is Ellipsis
    if isinstance(operand, ast.Attribute) and isinstance(operand.value, ast.Name):
        return operand.value.id in ("Errno", "Signal")
    return isinstance(operand, ast.Call) and isinstance(operand.func, ast.Name) and operand.func.id == "type"


def _origin(value: Any) -> str:
    """The module that a global of the model comes from."""
    if isinstance(value, ModuleType):
        return value.__name__
    bound_to = getattr(value, "__self__", None)
    if bound_to is not None and not isinstance(bound_to, ModuleType):
        return type(bound_to).__module__
    return str(getattr(value, "__module__", "") or "")


def _functions_of(interface: type[Interface]) -> Iterator[FunctionType]:
    """The functions that symbolic runs may reach: the model's methods, those of its structs, and helpers by name."""
    owners: list[type] = [base for base in interface.__mro__ if issubclass(base, Interface) and base is not Interface]
    for type_ in interface.state_types().values():
        owners += _structs(type_)
    pending = [
        function
        for owner in dict.fromkeys(owners)
        for name, function in vars(owner).items()
        if isinstance(function, FunctionType)
        and name not in _ONLY_CONCRETE
        and getattr(function, "_commutant_role", "call") == "call"
    ]
    seen = set(pending)
    while pending:
        function = pending.pop(0)
        yield function
        for name in function.__code__.co_names:
            helper = function.__globals__.get(name)
            if isinstance(helper, FunctionType) and helper not in seen and not _is_ours(helper):
                seen.add(helper)
                pending.append(helper)


def _is_ours(function: FunctionType) -> bool:
    return function.__module__.startswith("commutant.") and not function.__module__.startswith("commutant.interfaces")


def _structs(type_: Type) -> Iterator[type[Struct]]:
    if isinstance(type_, StructType):
        yield type_.struct
        for field in struct_fields(type_.struct).values():
            yield from _structs(field)
    elif isinstance(type_, MapType):
        yield from _structs(type_.key)
        yield from _structs(type_.value)
    elif isinstance(type_, SeqType):
        yield from _structs(type_.item)
    elif isinstance(type_, TupleType):
        for item in type_.items:
            yield from _structs(item)


def _tree(function: FunctionType) -> ast.AST | None:
    """The function's text as a tree, lines counted from its first; None where there is no text to read."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
