"""Two versions of one model in two files: what both declare alike is one class.

A sort, record or enumeration of the second file that is declared as in the first one becomes the first one's class, so
that values of one version are values of the other. What is declared differently stays a class of its own.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from types import CodeType, FunctionType
from typing import Any

from commutant.lang.interface import Interface
from commutant.lang.types import Sort, Struct

_NO_MATTER = frozenset({"__dict__", "__doc__", "__firstlineno__", "__module__", "__static_attributes__", "__weakref__"})


def value_classes(interface: type[Interface]) -> dict[str, type]:
    """The sorts, records and enumerations of the file that the model is in, by name."""
    module = sys.modules[interface.__module__]
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Sort | Struct | Enum) and value.__module__ == module.__name__
    }


def building_alike(known: Mapping[str, type]) -> Callable[..., Any]:
    """What makes a module's classes: each that is declared as a known one of its name is that one."""

    def build(body: Any, name: str, *bases: Any, **keywords: Any) -> Any:
        made = builtins.__build_class__(body, name, *bases, **keywords)
        twin = known.get(name)
        return twin if twin is not None and declared_alike(made, twin) else made

    return build


def declared_alike(one: type, other: type) -> bool:
    """Whether two classes have equal bases, annotations, values and methods."""
    if one.__bases__ != other.__bases__:
        return False
    if issubclass(one, Enum) and issubclass(other, Enum):
        return [(member.name, member.value) for member in one] == [(member.name, member.value) for member in other]
    mine, theirs = (
        {name: value for name, value in vars(owner).items() if name not in _NO_MATTER and "_commutant" not in name}
        for owner in (one, other)
    )
    return mine.keys() == theirs.keys() and all(_equal(value, theirs[name]) for name, value in mine.items())


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, FunctionType) and isinstance(other, FunctionType):
        return same_code(one.__code__, other.__code__)
    return bool(one == other)


def same_code(one: CodeType, other: CodeType) -> bool:
    """Whether two functions are compiled from equal text, wherever it stands."""
    if one is other:
        return True
    if (one.co_code, one.co_names, one.co_varnames) != (other.co_code, other.co_names, other.co_varnames):
        return False
    mine, theirs = one.co_consts, other.co_consts
    return len(mine) == len(theirs) and all(
        same_code(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) == (type(b), b)
        for a, b in zip(mine, theirs, strict=True)
    )
