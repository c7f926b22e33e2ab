"""Two versions of one model in two files: what both declare alike is one class.

A sort, record or enumeration of the second file that is declared as in the first one becomes the first one's class, so
that values of one version are values of the other. What is declared differently stays a class of its own, and so does
what names something else by the same word: a constant of its file, say, that has another value there.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import CodeType, FunctionType
from typing import Any, TypeVar

from commutant.lang.interface import Interface
from commutant.lang.types import Sort, Struct

_NO_MATTER = frozenset({"__dict__", "__doc__", "__firstlineno__", "__module__", "__static_attributes__", "__weakref__"})

K = TypeVar("K", bound=Hashable)

_PARTS_OF_CODE = ("co_code", "co_names", "co_varnames", "co_freevars", "co_argcount", "co_kwonlyargcount", "co_flags")


def value_classes(interface: type[Interface]) -> dict[str, type]:
    """The sorts, records and enumerations of the file that the model is in, by name."""
    module = sys.modules[interface.__module__]
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Sort | Struct | Enum) and value.__module__ == module.__name__
    }


class AlikeClasses:
    """Makes a module's classes: each that is declared as a known one of its name is that one."""

    def __init__(self, known: Mapping[str, type]) -> None:
        self._known = known
        self._replaced: list[tuple[type, type]] = []

    def build(self, body: Any, name: str, *bases: Any, **keywords: Any) -> Any:
        """A class, as `__build_class__` makes it."""
        made = builtins.__build_class__(body, name, *bases, **keywords)
        twin = self._known.get(name)
        if twin is None or not declared_alike(made, twin, SameValues([(made, twin)], with_names=False)):
            return made
        self._replaced.append((made, twin))
        return twin

    def mistaken(self) -> set[str]:
        """The known classes that stand for one of another meaning, by name. This shows when the module is complete:
        methods may name what is defined below them."""
        same = SameValues(self._replaced)
        return {twin.__name__ for made, twin in self._replaced if not declared_alike(made, twin, same)}


class SameValues:
    """Whether values of two modules are the same; of functions, whether their code is, and all that it names.

    `pairs` are classes that are the same although there are two of them. Without `with_names` it does not matter what
    the names in the code of functions stand for.
    """

    def __init__(self, pairs: Sequence[tuple[type, type]] = (), *, with_names: bool = True) -> None:
        self._pairs = pairs
        self._with_names = with_names
        self._known: dict[tuple[FunctionType, FunctionType], bool] = {}

    def of(self, one: Any, other: Any) -> bool:
        """Whether both are the same."""
        if one is other or any(one is mine and other is twin for mine, twin in self._pairs):
            return True
        if type(one) is not type(other):
            return False
        if isinstance(one, FunctionType):
            known = self._known.get((one, other))
            return (
                assuming_same(self._known, (one, other), lambda: self._functions(one, other))
                if known is None
                else known
            )
        if isinstance(one, staticmethod | classmethod):
            return self.of(one.__func__, other.__func__)
        if isinstance(one, property):
            return all(self.of(getattr(one, part), getattr(other, part)) for part in ("fget", "fset", "fdel"))
        return not callable(one) and bool(one == other)

    def names(self, names: Iterable[str], mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
        """Whether the names stand for the same in both modules."""
        return not self._with_names or all(self.of(mine.get(name), theirs.get(name)) for name in names)

    def _functions(self, one: FunctionType, other: FunctionType) -> bool:
        return (
            one.__name__ == other.__name__
            and same_code(one.__code__, other.__code__)
            and (one.__defaults__, one.__kwdefaults__) == (other.__defaults__, other.__kwdefaults__)
            and self._closures(one, other)
            and self.names(names_in(one.__code__), one.__globals__, other.__globals__)
        )

    def _closures(self, one: FunctionType, other: FunctionType) -> bool:
        mine, theirs = one.__closure__ or (), other.__closure__ or ()
        return len(mine) == len(theirs) and all(
            self.of(a.cell_contents, b.cell_contents) for a, b in zip(mine, theirs, strict=True)
        )


def assuming_same(known: dict[K, bool], pair: K, ask: Callable[[], bool]) -> bool:
    """What `ask` says of a pair, which counts as the same until then, for functions may call each other. What was found
    to be the same in the meantime is forgotten if this one is not: it may have relied on it."""
    before = len(known)
    known[pair] = True
    same = ask()
    if not same:
        for later in list(known)[before:]:
            if known[later]:
                del known[later]
        known[pair] = False
    return same


def declared_alike(one: type, other: type, same: SameValues) -> bool:
    """Whether two classes have equal bases, annotations, values and methods."""
    if one.__bases__ != other.__bases__:
        return False
    if issubclass(one, Enum) and issubclass(other, Enum):
        if [(member.name, member.value) for member in one] != [(member.name, member.value) for member in other]:
            return False
        mine, theirs = _methods(one), _methods(other)
    else:
        mine, theirs = (
            {name: value for name, value in vars(owner).items() if name not in _NO_MATTER and "_commutant" not in name}
            for owner in (one, other)
        )
    names = set(_names_in_annotations(one))
    return (
        mine.keys() == theirs.keys()
        and all(same.of(value, theirs[name]) for name, value in mine.items())
        and same.names(names, *(vars(sys.modules[owner.__module__]) for owner in (one, other)))
    )


def _methods(owner: type) -> dict[str, Any]:
    kinds = (FunctionType, staticmethod, classmethod, property)
    return {name: value for name, value in vars(owner).items() if isinstance(value, kinds)}


def _names_in_annotations(owner: type) -> Iterator[str]:
    """The names in annotations that are text, as all are after `from __future__ import annotations`."""
    for text in vars(owner).get("__annotations__", {}).values():
        if isinstance(text, str):
            yield from (node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name))


def names_in(code: CodeType) -> set[str]:
    """The names of globals and attributes that a function speaks of, functions within it included."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names_in(constant)
    return found


def same_code(one: CodeType, other: CodeType) -> bool:
    """Whether two functions are compiled from equal text, wherever it stands."""
    if one is other:
        return True
    if any(getattr(one, part) != getattr(other, part) for part in _PARTS_OF_CODE):
        return False
    mine, theirs = one.co_consts, other.co_consts
    return len(mine) == len(theirs) and all(
        same_code(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) == (type(b), b)
        for a, b in zip(mine, theirs, strict=True)
    )
