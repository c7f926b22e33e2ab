"""What is wrong with a model, in one line: which call, on which line of the model, and what was expected.

A model is its author's program and may do anything. Whatever escapes from it while it is explored or run becomes one
`ModelFault`; what it returns is checked; and a watch ends calls that do not end by themselves.
"""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

from commutant.lang import ESCAPES, Errno, Interface, Map, OpaqueValue, Signal, Struct, TimeValue, struct_fields
from commutant.support import UsageError, text_of
from commutant.symbolic import BoolValue, Infeasible, IntValue, SortValue, SymbolicMap

SECONDS_PER_PATH = 10.0
"""How long one path may take before the model counts as looping, of the processor's time: others may need it, too."""

_SHARE_OF_A_RING = 0.9
"""A process that has the processor for itself uses nearly all of the time."""

_PATIENCE = 60
"""How many times as long counts as waiting without end, if the processor is not used."""

CHANGES_STATE = "it changes the state: expected a condition that only looks"
"""Of a `@well_formed` method."""

_PACKAGE = Path(__file__).parents[1]
_MODELS = _PACKAGE / "interfaces"


class ModelFault(UsageError):
    """A model cannot be analysed; says where it is wrong."""

    is_placed = True
    """Whether it says where."""


class Endless(ModelFault):
    """A model runs on and on; whatever else is asked of it would, too."""


class ChoiceRefused(Exception):
    """The value chosen in one order is not allowed in another, so no common choice exists on this path."""


@contextmanager
def faults_of(interface: type[Interface], what: str) -> Iterator[None]:
    """Turns whatever escapes from the model in the `with` block into a ModelFault; `what` names the method."""
    try:
        yield
    except ESCAPES as error:
        raise placed(error, interface, what) from None


def placed(error: BaseException, interface: type[Interface], what: str) -> BaseException:
    """What to raise for an exception that escaped from the model: the engine's own as it is, others as a ModelFault."""
    if isinstance(error, Infeasible | ChoiceRefused) or (isinstance(error, UsageError) and error.is_placed):
        return error
    where = f"{_place(error) or _place_of(interface, what)}{interface.__name__}.{what}"
    if isinstance(error, UsageError):
        return (Endless if isinstance(error, Endless) else ModelFault)(f"{where}: {error}")
    if isinstance(error, RecursionError):
        return ModelFault(f"{where} recurses without bound: expected calls that end")
    text = text_of(error) or "no message"
    return ModelFault(f"{where} raised {type(error).__name__}: {text}{_hint(error)}")


def _place(error: BaseException) -> str:
    """`FILE:LINE: ` of the innermost line of the model that led to the error; empty if no line of the model did."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_model(Path(frame.filename)):
            return f"{frame.filename}:{frame.lineno}: "
    return ""


def _place_of(interface: type[Interface], method: str) -> str:
    """`FILE:LINE: ` of the method itself."""
    code = getattr(getattr(interface, method, None), "__code__", None)
    if code is None or not _is_model(Path(code.co_filename)):
        return ""
    return f"{code.co_filename}:{code.co_firstlineno}: "


def at_method(interface: type[Interface], method: str) -> str:
    """`FILE:LINE: Class.method`, as messages begin that speak of a method as a whole."""
    return f"{_place_of(interface, method)}{interface.__name__}.{method}"


def _is_model(file: Path) -> bool:
    return _MODELS in file.parents or (_PACKAGE not in file.parents and file.name != "contextlib.py")


def _hint(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return " (test with `in` before reading, or declare the state @well_formed)"
    if isinstance(error, AttributeError):
        return " (annotate every attribute of the state in the class body)"
    return ""


class Kinds:
    """The kinds of results that calls have returned so far: apart from errors, each call returns one kind on every
    path."""

    def __init__(self, interface: type[Interface]) -> None:
        self._interface = interface
        self._kinds: dict[str, str] = {}

    def check(self, call: str, result: Any) -> None:
        """ModelFault if no call can return this, or if the call has returned another kind before."""
        kind = _kind(result)
        if kind is None:
            shown = "a map of the state" if isinstance(result, SymbolicMap | Map) else _shown(result)
            raise self._fault(
                call,
                f"returned {shown}: expected an Errno, a number, a bool, a value of a sort, a Struct or a sequence of "
                "these",
            )
        if kind == "error":
            return
        before = self._kinds.setdefault(call, kind)
        if before == "an empty sequence" and kind.startswith("a sequence"):
            self._kinds[call] = kind
        elif before != kind and not (kind == "an empty sequence" and before.startswith("a sequence")):
            raise self._fault(
                call,
                f"returns {before} on one path and {kind} on another: expected one kind of result, or an error",
            )

    def _fault(self, call: str, text: str) -> ModelFault:
        return ModelFault(f"{at_method(self._interface, call)} {text}")


_KINDS = {
    Errno: "error",
    Signal: "error",
    type(None): "nothing",
    bool: "a bool",
    BoolValue: "a bool",
    TimeValue: "a Time",
    int: "an int",
    IntValue: "an int",
}


def _kind(result: Any) -> str | None:
    """The kind of a result in words; None for what no call can return."""
    simple = _KINDS.get(result.__class__)
    if simple is not None:
        return simple
    if isinstance(result, SortValue | OpaqueValue):
        return f"a {result.sort}"
    if isinstance(result, int):
        return "an int"
    if isinstance(result, Struct):
        parts = [_kind(getattr(result, field)) for field in struct_fields(type(result))]
        return None if None in parts else f"a {type(result).__name__}"
    if isinstance(result, tuple):
        items = [_kind(item) for item in result]
        return None if None in items else f"({', '.join(map(str, items))})"
    if isinstance(result, Enum):
        return f"a {type(result).__name__}"
    if isinstance(result, list):
        kinds = {_kind(item) for item in result}
        if None in kinds or len(kinds) > 1:
            return None
        return f"a sequence of {kinds.pop()}" if kinds else "an empty sequence"
    return None


def _shown(result: Any) -> str:
    if isinstance(result, list):
        return "a sequence of several kinds"
    return f"{type(result).__name__} {' '.join(repr(result).split())[:80]}"


def no_state(interface: type[Interface], calls: tuple[str, ...]) -> ModelFault:
    """The fault of a model none of whose states is well-formed."""
    methods = [method.__name__ for about in interface.well_formedness().values() for method in about]
    where = at_method(interface, methods[0]) if methods else interface.__name__
    return ModelFault(
        f"{where}: no initial state is well-formed for {', '.join(calls)}: "
        "expected @well_formed conditions that some state satisfies"
    )


@contextmanager
def time_limit(interface: type[Interface], calls: tuple[str, ...]) -> Iterator[None]:
    """Ends calls that do not end by themselves: a watch ends them when no path has been finished for SECONDS_PER_PATH.

    Only a process's main thread can be interrupted so; elsewhere the limit on decisions per path has to do.
    """

    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return
    watched = _Watched()

    def ring(*_: object) -> None:
        if _begun.paths != watched.paths:
            watched.begin()
            return
        watched.rings += 1
        used_seconds = time.process_time() - watched.processor_seconds
        if used_seconds < _SHARE_OF_A_RING * SECONDS_PER_PATH and watched.rings < _PATIENCE:
            return
        endless = Endless(
            f"{', '.join(calls)} ran for {SECONDS_PER_PATH:g} s without returning: expected calls that end"
        )
        endless.is_placed = False
        raise endless

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_PER_PATH, SECONDS_PER_PATH)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Watched:
    """What the watch saw when it found that another path had begun: how many were begun, and how much processor time
    was used before; and how often it has rung since."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Looks."""
        self.paths, self.rings, self.processor_seconds = _begun.paths, 0, time.process_time()


class _Begun:
    """How many paths were begun in this process."""

    paths = 0


_begun = _Begun()


def begin_path() -> None:
    """Tells the watch that another path begins."""
    _begun.paths += 1
