"""A model of an interface: a class whose annotated attributes are the state and whose `@call` methods are the calls.

The class runs on ordinary values like any Python class, and symbolically under `commutant.analyzer`. What it may also
define: `@well_formed` conditions on initial states, `equivalent` for states that no caller can tell apart, `setup` and
`observe` that say how a test builds a state and reads it back.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, TypeVar, overload

from commutant.lang.errno import Errno
from commutant.lang.source_lines import errors_at, place_of_annotation, place_of_function, placed_error
from commutant.lang.types import (
    Process,
    Record,
    SortType,
    Type,
    annotated_types,
    check_type,
    describe_type,
    held_as,
    resolve_hints,
)
from commutant.support import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def call(function: F) -> F:
    """Marks a method as a call of the interface. Its parameters are annotated; it returns a value or an `Errno`."""
    function._commutant_role = "call"  # type: ignore[attr-defined]
    return function


def setup_call(function: F) -> F:
    """Marks a method as a call that only set-ups and observations use; it is never analysed."""
    function._commutant_role = "setup"  # type: ignore[attr-defined]
    return function


@overload
def well_formed(about: str) -> Callable[[F], F]: ...


@overload
def well_formed(about: F) -> F: ...


def well_formed(about: Any) -> Any:
    """Marks a method that must hold in every initial state: `@well_formed` for the state as a whole, without arguments,
    or `@well_formed("attribute")` for each entry (key, value) of a map.

    The latter is asked for the entries that calls touch, with `self` being the initial state. A map that is a field of
    such values is named too, `"inodes.pages"`: then the method takes (key, value, key in that map, value in that map).
    The former sees of maps what `touched()` tells.
    """

    def mark(function: F) -> F:
        function._commutant_well_formed = WHOLE_STATE if function is about else about  # type: ignore[attr-defined]
        return function

    return mark(about) if callable(about) else mark


WHOLE_STATE = ""
"""What a `@well_formed` method is about that is about no single map."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a set-up or an observation: name, arguments, and the process that makes it (a value or 0)."""

    call: str
    arguments: Mapping[str, Any]


def invoke(call_name: str, **arguments: Any) -> Invocation:
    """An invocation, to be yielded by `setup` and `observe`: `invoke("link", old=first, new=name)`."""
    return Invocation(call_name, arguments)


class StepResult:
    """What a step of a set-up will have returned, to be an argument of a later one: `block = yield invoke("alloc")`.

    Parts of it are had like those of the result itself: `block.address`, `pair[0]`.
    """

    __slots__ = ("_path", "_step")

    def __init__(self, step: int, path: tuple[int | str, ...] = ()) -> None:
        self._step = step
        self._path = path

    def __getitem__(self, position: int) -> StepResult:
        return StepResult(self._step, (*self._path, position))

    def __getattr__(self, field: str) -> StepResult:
        if field.startswith("_"):
            raise AttributeError(field)
        return StepResult(self._step, (*self._path, field))

    def __repr__(self) -> str:
        parts = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self._path)
        return f"<result of step {self._step}{parts}>"

    def _of(self, results: Sequence[Any]) -> Any:
        """The value, given what the steps before have returned; UsageError if there is none."""
        value: Any = results[self._step] if self._step < len(results) else None
        if isinstance(value, Errno):
            raise UsageError(
                f"{self!r} was used as a handle, and that step failed with {value!r}: expected a step that succeeds"
            )
        try:
            for part in self._path:
                value = value[part] if isinstance(part, int) else getattr(value, part)
        except (TypeError, LookupError, AttributeError):
            raise UsageError(f"{self!r} was used, and that step returned {results[self._step]!r}") from None
        return value


@dataclass(frozen=True, slots=True)
class CallSignature:
    """A call's name and its parameters with their types, in the order of the text."""

    name: str
    parameters: Mapping[str, Type]

    @property
    def process_parameter(self) -> str | None:
        """The parameter that places the call in a process, if it has one."""
        for name, type_ in self.parameters.items():
            if isinstance(type_, SortType) and type_.sort is Process:
                return name
        return None


class Interface(Record):
    """Base class of models."""

    interface_name: ClassVar[str] = ""
    """The name on the command line; the class's name in lower case unless given."""

    stands_for: ClassVar[Mapping[str, str]] = {}
    """Calls that do the work of another interface's call of another name: `{"fstatx": "fstat"}` (`compare`)."""

    def __init__(self) -> None:
        for name, type_ in type(self).state_types().items():
            given = hasattr(type(self), name)
            setattr(self, name, held_as(copy.deepcopy(getattr(type(self), name)), type_) if given else type_.zero())

    @classmethod
    def from_origin(cls, origin: Callable[[Self, str], Any], eager: tuple[str, ...] | None = None) -> Self:
        """As for any record; an attribute that the class gives a value for would not be asked for, and is set now."""
        return super().from_origin(origin, (*(eager or ()), *cls._given()))

    @classmethod
    def _given(cls) -> tuple[str, ...]:
        """The attributes of the state for which the class gives a value."""
        names = cls.__dict__.get("_commutant_given")
        if names is None:
            names = tuple(name for name in cls.state_types() if hasattr(cls, name))
            cls._commutant_given = names  # type: ignore[attr-defined]
        return names

    def __delattr__(self, name: str) -> None:
        raise UsageError(f"self.{name} was deleted: expected every attribute of the state to stay")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "interface_name" not in cls.__dict__:
            cls.interface_name = cls.__name__.lower()

    @classmethod
    def state_types(cls) -> dict[str, Type]:
        """The annotated attributes, in the order of the text, with their types."""
        cached = cls.__dict__.get("_commutant_state")
        if cached is None:
            cached = annotated_types(cls, left_out=Interface.__annotations__)
            for name, type_ in cached.items():
                with errors_at(partial(place_of_annotation, cls, name)):
                    check_type(type_, f"{cls.__name__}.{name}")
            cls._commutant_state = cached  # type: ignore[attr-defined]
        return dict(cached)

    @classmethod
    def call_names(cls) -> tuple[str, ...]:
        """The names of the calls, in the order of the text."""
        return tuple(signature.name for signature in cls._signatures("call"))

    @classmethod
    def signature(cls, name: str) -> CallSignature:
        """The signature of a call or set-up call; UsageError if there is none of this name."""
        for role in ("call", "setup"):
            for signature in cls._signatures(role):
                if signature.name == name:
                    return signature
        raise UsageError(
            f"{cls.interface_name} has no call {name!r}; it has {', '.join(cls.call_names()) or 'no calls at all'}"
        )

    @classmethod
    def signatures(cls) -> Iterable[CallSignature]:
        """Of all calls, those of set-ups after the others."""
        return (*cls._signatures("call"), *cls._signatures("setup"))

    @classmethod
    def _signatures(cls, role: str) -> Sequence[CallSignature]:
        cache: dict[str, tuple[CallSignature, ...]] = cls.__dict__.get("_commutant_signatures") or {}
        if role not in cache:
            functions = {
                name: function
                for base in reversed(cls.__mro__)
                for name, function in base.__dict__.items()
                if getattr(function, "_commutant_role", None) == role
            }
            for name, function in functions.items():
                if hasattr(Interface, name):
                    raise placed_error(
                        place_of_function(function), f"{cls.__name__}.{name}: this name is taken by Interface itself"
                    )
            cache[role] = tuple(_signature(cls, name, function) for name, function in functions.items())
            cls._commutant_signatures = cache  # type: ignore[attr-defined]
        return cache[role]

    @classmethod
    def well_formedness(cls) -> dict[str, list[Callable[..., Any]]]:
        """The `@well_formed` methods by the map that they are about (or `WHOLE_STATE`), to be called as
        `method(initial_state, ...)`."""
        functions = {name: function for base in reversed(cls.__mro__) for name, function in base.__dict__.items()}
        methods: dict[str, list[Callable[..., Any]]] = {}
        for function in functions.values():
            attribute = getattr(function, "_commutant_well_formed", None)
            if attribute is not None:
                methods.setdefault(attribute, []).append(function)
        return methods

    def equivalent(self, other: Any) -> Any:
        """Whether no caller can tell the two states apart; unless overridden, whether all attributes are equal."""
        return all(getattr(self, name) == getattr(other, name) for name in type(self).state_types())

    def touch(self, arguments: Mapping[str, Any]) -> None:
        """Looks at what a call's arguments name: on the initial state, for each call of a set, before any of them runs.

        A model needs it where a call depends on entries that only other calls' arguments name ("is any writer open?").
        """

    def complete(self) -> None:
        """Adds to this (concrete) state what no call of a test looks at and yet has to be there; asked before `setup`.

        Such as what lies between the first and the last item of a queue. What is there stays as it is.
        """

    def setup(self) -> Iterable[Invocation] | None:
        """The calls that build this (concrete) state from the empty one, or None if they cannot build it.

        A generator is sent what stands for each call's result (`StepResult`): `block = yield invoke("alloc")`. Where a
        model has no `setup`, a search over its calls looks for one.
        """
        return None

    def begin(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """The calls that bring the empty state to one in which any call may be made: random sequences begin with them.

        `values` holds, per sort, the values that the sequence may use.
        """
        return ()

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """The calls that read back all that a caller could tell; `values` holds, per sort, the values of the test."""
        return ()


def _signature(cls: type[Interface], name: str, function: Any) -> CallSignature:
    if not inspect.isfunction(function):
        raise UsageError(f"{cls.__name__}.{name}: expected a plain method marked with @call, got {function!r}")
    with errors_at(partial(place_of_function, function)):
        return CallSignature(name, _parameters(f"{cls.__name__}.{name}", function))


def _parameters(call: str, function: Callable[..., Any]) -> dict[str, Type]:
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{call} is async: expected a method that returns its result")
    hints = resolve_hints(function)
    parameters: dict[str, Type] = {}
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        where = f"{call}, parameter {parameter.name!r}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UsageError(f"{where}: a call takes named parameters only, not *args or **kwargs")
        if parameter.name not in hints:
            raise UsageError(f"{where}: expected a type annotation, got none")
        parameters[parameter.name] = describe_type(hints[parameter.name], where)
        check_type(parameters[parameter.name], where, maps=False)
    return parameters
