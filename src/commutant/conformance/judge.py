"""Judges what a target returned: is there a way to resolve the choices of the model in which all of it is right?

The model is made to follow the target, step by step, in every way that fits what was seen so far; equal ways are one.
Values that the implementation picks are equal up to a bijection over the whole sequence, in which a value that is in
use no more makes room: it may be picked again, and who still names it then means the new one. A time that is later on
the model must not be earlier on the target, whose clock may be coarse.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from commutant.conformance.script import ModelRun, Script, ScriptStep
from commutant.corpus import Value
from commutant.guard import ChoiceRefused
from commutant.lang import Errno, Interface, OpaqueValue, Signal, Struct, TimeValue, struct_fields

MAX_WAYS = 512
"""With more ways to resolve what a model leaves open than this at once, a sequence is left undecided."""


class Undecided(Exception):
    """There are more ways to resolve the choices of the model than are followed."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first step that no resolution allows: its position in the script, what was acceptable, and what came.

    `where` is the part of the result that does not fit, such as `nlink`, or empty; `acceptable` and `came` are whole
    results as JSON values. In `acceptable` the `id` of an opaque value is that of the target, None for a new one, and a
    time is the pair of the target's times between which it must lie.
    """

    position: int
    where: str
    acceptable: tuple[Value, ...]
    actual: Value


class Pairing:
    """What stands for what: the model's opaque values and times against the target's."""

    def __init__(self) -> None:
        self._forth: dict[OpaqueValue, int] = {}
        self._back: dict[tuple[str, int], OpaqueValue] = {}
        self._times: dict[int, tuple[int, int]] = {}
        self._state: Any = None

    def copy(self) -> Pairing:
        """One that changes alone."""
        other = Pairing()
        other._forth, other._back, other._times = dict(self._forth), dict(self._back), dict(self._times)
        return other

    def key(self, ticks: Iterable[int]) -> object:
        """Equal for pairings that will judge alike, where these are the ticks that the model's state still holds."""
        bounds = [(tick, self._bounds(tick), self._times.get(tick)) for tick in ticks]
        latest = max((latest for _, latest in self._times.values()), default=None)
        return sorted((repr(value), raw) for value, raw in self._forth.items()), bounds, latest

    def meant(self, argument: Any) -> Any:
        """An argument as the target understands it: what stands now for the value that it was given."""
        if isinstance(argument, OpaqueValue) and argument in self._forth:
            return self._back[argument.sort, self._forth[argument]]
        if isinstance(argument, Struct):
            fields = struct_fields(type(argument))
            return type(argument)(**{name: self.meant(getattr(argument, name)) for name in fields})
        if isinstance(argument, tuple | list):
            return type(argument)(self.meant(item) for item in argument)
        return argument

    def accepts(self, expected: Any, actual: Value, state: Interface) -> str | None:
        """As `mismatch`; `state` is the model's after the call, and says which values are in use."""
        self._state = state
        return self.mismatch(expected, actual)

    def mismatch(self, expected: Any, actual: Value) -> str | None:
        """None if a result fits, else where it does not (empty: as a whole)."""
        if isinstance(expected, Errno):
            return None if actual == {"errno": expected.name} else ""
        if isinstance(expected, Signal):
            return None if actual == {"signal": expected.name} else ""
        if isinstance(expected, OpaqueValue):
            fits = (
                isinstance(actual, dict) and actual.get("sort") == expected.sort and self._pairs(expected, actual["id"])
            )
            return None if fits else ""
        if isinstance(expected, TimeValue):
            return (
                None if isinstance(actual, dict) and "time" in actual and self._passes(expected, actual["time"]) else ""
            )
        if isinstance(expected, Struct):
            names = struct_fields(type(expected))
            fields = actual.get("struct") if isinstance(actual, dict) else None
            if not isinstance(fields, dict) or not fields.keys() >= names.keys():  # a runner may tell more
                return ""
            return self._first((name, getattr(expected, name), fields[name]) for name in names)
        if isinstance(expected, tuple | list):
            items = actual.get("seq") if isinstance(actual, dict) else None
            if not isinstance(items, list) or len(items) != len(expected):
                return ""
            return self._first((f"[{index}]", *pair) for index, pair in enumerate(zip(expected, items, strict=True)))
        return None if type(expected) is type(actual) and expected == actual else ""

    def _first(self, parts: Iterator[tuple[str, Any, Value]]) -> str | None:
        for name, expected, actual in parts:
            inner = self.mismatch(expected, actual)
            if inner is not None:
                return f"{name}{'.' if inner and not inner.startswith('[') else ''}{inner}"
        return None

    def _pairs(self, expected: OpaqueValue, raw: int) -> bool:
        if expected in self._forth:
            return self._forth[expected] == raw
        known = self._back.get((expected.sort, raw))
        if known is not None and _is_in_use(known, vars(self._state)):
            return False
        self._forth[expected] = raw
        self._back[expected.sort, raw] = expected
        return True

    def _passes(self, tick: int, raw: int) -> bool:
        low, high = self._bounds(tick)
        if (low is not None and raw < low) or (high is not None and raw > high):
            return False
        earliest, latest = self._times.get(tick, (raw, raw))
        self._times[tick] = (min(earliest, raw), max(latest, raw))
        return True

    def _bounds(self, tick: int) -> tuple[int | None, int | None]:
        before = [latest for other, (_, latest) in self._times.items() if other < tick]
        behind = [earliest for other, (earliest, _) in self._times.items() if other > tick]
        return max(before, default=None), min(behind, default=None)

    def shown(self, expected: Any) -> Value:
        """An acceptable result as `Mismatch` has it."""
        if isinstance(expected, Errno):
            return {"errno": expected.name}
        if isinstance(expected, Signal):
            return {"signal": expected.name}
        if isinstance(expected, OpaqueValue):
            return {"sort": expected.sort, "id": self._forth.get(expected)}
        if isinstance(expected, TimeValue):
            return {"time": list(self._bounds(expected))}
        if isinstance(expected, Struct):
            return {"struct": {name: self.shown(getattr(expected, name)) for name in struct_fields(type(expected))}}
        if isinstance(expected, tuple | list):
            return {"seq": [self.shown(item) for item in expected]}
        value: Value = expected
        return value


@dataclass(slots=True)
class _Way:
    """A resolution of the choices so far that fits what came."""

    run: ModelRun
    pairing: Pairing
    made: tuple[ScriptStep, ...] = ()


def judge(interface: type[Interface], script: Script, actual: Sequence[Value]) -> Mismatch | None:
    """None if `came`, the results of all steps, is right; else the first that is not. Raises Undecided."""
    steps = script.steps
    ways = [_Way(ModelRun(interface), Pairing())]
    for position, value in enumerate(actual):
        going: list[_Way] = []
        acceptable: list[Value] = []
        where = ""
        for way in ways:
            arguments = {name: way.pairing.meant(argument) for name, argument in steps[position].arguments.items()}
            made = (*way.made, dataclasses.replace(steps[position], arguments=arguments))
            for run, result in _results(way.run, made, len(way.run.resolution.limits)):
                before, pairing = way.pairing, way.pairing.copy()
                place = pairing.accepts(result, value, run.state)
                if place is None:
                    going.append(_Way(run, pairing, made))
                else:
                    where = max(where, place, key=len)
                    acceptable.append(before.shown(result))
                if len(going) > MAX_WAYS:
                    raise Undecided
        if not going:
            distinct = {repr(value): value for value in acceptable}
            return Mismatch(position, where, tuple(distinct.values()), value)
        ways = going if len(going) == 1 else list({_key(way): way for way in going}.values())
    assert len(actual) == len(steps), "every step has a result"
    return None


def _results(run: ModelRun, steps: Sequence[ScriptStep], first: int) -> Iterator[tuple[ModelRun, Any]]:
    """The results that the last of the steps can have, each with the run that has it: `run`, which has made the others,
    and one more for each other pick of the choices that the step makes, from choice number `first` on."""
    try:
        result = run.make(steps[-1])
        allowed = True
    except ChoiceRefused:  # an earlier choice of this step leaves a later one nothing
        result, allowed = None, False
    picks, limits = tuple(run.resolution.picks), tuple(run.resolution.limits)
    if allowed:
        yield run, result
    for choice in range(first, len(limits)):
        for pick in range(1, limits[choice]):
            other = ModelRun(run.interface, (*picks[:choice], pick))
            for step in steps[:-1]:
                other.make(step)
            yield from _results(other, steps, choice + 1)


def _is_in_use(wanted: OpaqueValue, part: Any) -> bool:
    """Whether a value occurs in a part of a state."""
    if isinstance(part, dict):
        return any(_is_in_use(wanted, key) or _is_in_use(wanted, value) for key, value in part.items())
    if isinstance(part, Struct):
        return any(_is_in_use(wanted, getattr(part, name)) for name in struct_fields(type(part)))
    if isinstance(part, tuple | list):
        return any(_is_in_use(wanted, item) for item in part)
    return bool(part == wanted)


def _key(way: _Way) -> str:
    """Equal for ways that will go on alike."""
    ticks: set[int] = set()
    state = _frozen(vars(way.run.state), ticks)
    return repr((state, way.pairing.key(sorted(ticks))))


def _frozen(value: Any, ticks: set[int]) -> Any:
    """A part of a state as lists whose text is equal for equal parts; adds the times in it to `ticks`."""
    if isinstance(value, TimeValue):
        ticks.add(int(value))
    if isinstance(value, dict):
        return sorted((repr(key), _frozen(item, ticks)) for key, item in value.items())
    if isinstance(value, Struct):
        return [(name, _frozen(getattr(value, name), ticks)) for name in struct_fields(type(value))]
    if isinstance(value, tuple | list):
        return [_frozen(item, ticks) for item in value]
    return value
