"""Values up to those that an implementation picks: as JSON, as states to compare, and as a state that was asked for.

Opaque values have no meaning but which of them are the same. So they are numbered by their first occurrence, and two
states agree if a bijection between their opaque values makes them equal.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from commutant.corpus import Value
from commutant.lang import Errno, Interface, MapType, OpaqueValue, Record, Signal, Struct, TimeValue, struct_fields


class Anything(int):
    """An integer of the initial state on which nothing depends: any value that the set-up gives it will do."""


_PLAIN = frozenset((int, bool, str, type(None)))


class Canonical:
    """Writes values with opaque ones numbered by their first occurrence, so that equal text means equal up to a
    bijection."""

    def __init__(self, numbered: Iterable[OpaqueValue] = ()) -> None:
        """`numbered`: goes on where another one stood, of which these were the values with a number."""
        self._numbers: dict[OpaqueValue, int] = {}
        self._count: dict[str, int] = {}
        for value in numbered:
            self.number(value)

    @property
    def numbered(self) -> tuple[OpaqueValue, ...]:
        """The values that have a number, in the order of their first occurrence."""
        return tuple(self._numbers)

    def number(self, value: OpaqueValue) -> int:
        """The number of an opaque value within its sort."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = self._count.get(value.sort, 0)
            self._count[value.sort] = known + 1
        return known

    def knows(self, value: object) -> bool:
        """Whether the value has a number (is no opaque value, or was reached before)."""
        if isinstance(value, tuple):
            return all(self.knows(item) for item in value)
        return not isinstance(value, OpaqueValue) or value in self._numbers

    def json(self, value: Any) -> Value:
        """A result as the JSON value of docs/reference/test-cases.md."""
        if value.__class__ in _PLAIN:
            return value
        if isinstance(value, OpaqueValue):
            return {"sort": value.sort, "id": self.number(value)}
        if isinstance(value, Struct):
            held = vars(value)
            return {"struct": {name: self.json(held[name]) for name in struct_fields(type(value))}}
        if isinstance(value, tuple | list):
            return {"seq": [self.json(item) for item in value]}
        if isinstance(value, TimeValue):
            return {"time": int(value)}
        if isinstance(value, Anything):
            return int(value)
        if isinstance(value, Errno):
            return {"errno": value.name}
        if isinstance(value, Signal):
            return {"signal": value.name}
        if isinstance(value, Enum):
            return value.name
        return value

    def state(self, state: Interface) -> list[Any]:
        """What can be reached in a state, in an order that does not depend on opaque values."""
        reached: list[Any] = []
        pending = [(getattr(state, name), type_) for name, type_ in type(state).state_types().items()]
        maps: list[tuple[Mapping[Any, Any], set[Any], list[Any]]] = []
        for value, type_ in pending:
            if isinstance(type_, MapType):
                entry: list[Any] = []
                maps.append((value, set(), entry))
                reached.append(entry)
            else:
                reached.append(self._plain(value))
        progress = True
        while progress:
            progress = False
            for content, done, entry in maps:
                ready = [key for key in content if key not in done and self.knows(key)]
                for key in sorted(ready, key=lambda k: repr(self._plain(k))):
                    done.add(key)
                    entry.append((self._plain(key), self._plain(content[key])))
                    progress = True
        return reached

    def _plain(self, value: Any) -> Any:
        if value.__class__ in _PLAIN:
            return value
        if isinstance(value, OpaqueValue):
            return (value.sort, self.number(value))
        if isinstance(value, Struct):
            return tuple([(name, self._plain(getattr(value, name))) for name in value.relevant()])
        if isinstance(value, dict):
            known = sorted((repr(self._plain(k)), k) for k in value if self.knows(k))
            return tuple([(self._plain(k), self._plain(value[k])) for _, k in known])
        if isinstance(value, tuple | list):
            return tuple([self._plain(item) for item in value])
        return value


def agree(wanted: Interface, reached: Interface, *, with_handles: bool) -> Mapping[OpaqueValue, OpaqueValue] | None:
    """If a state is the one that was asked for, which of its opaque values are which of that one's; else None.

    It is if what can be reached is equal up to a bijection between the opaque values, `Anything` standing for any
    integer, or if the model itself takes the two for `equivalent` then. Where calls take opaque values
    (`with_handles`), whatever is under one can be reached.
    """
    agreement = _Agreement()
    if agreement.of_states(wanted, reached):
        if not with_handles:
            return agreement.there
        agreement = agreement.with_handles() or agreement
        if agreement.covers_all():
            return agreement.there
    if type(wanted).equivalent is Interface.equivalent:
        return None
    renamed = {there: back for back, there in agreement.there.items()}
    there = _renamed(reached, renamed)
    return agreement.there if _without_anything(wanted, there).equivalent(there) else None


def _renamed(value: Any, names: Mapping[OpaqueValue, OpaqueValue]) -> Any:
    """A copy of a value or state with opaque values under other names."""
    if isinstance(value, OpaqueValue):
        return names.get(value, value)
    if isinstance(value, Record):
        copied = copy.copy(value)
        for name, part in vars(value).items():
            setattr(copied, name, _renamed(part, names))
        return copied
    if isinstance(value, dict):
        return type(value)((_renamed(key, names), _renamed(item, names)) for key, item in value.items())
    if isinstance(value, tuple | list):
        return type(value)([_renamed(item, names) for item in value])
    return value


def _without_anything(wanted: Any, reached: Any) -> Any:
    """What was asked for with what stands there in the other for each integer that may be anything."""
    if isinstance(wanted, Anything):
        return reached if isinstance(reached, int) else int(wanted)
    if isinstance(wanted, Record) and isinstance(reached, Record):
        copied = copy.copy(wanted)
        for name, part in vars(wanted).items():
            setattr(copied, name, _without_anything(part, getattr(reached, name, None)))
        return copied
    if isinstance(wanted, dict):
        others = reached if isinstance(reached, dict) else {}
        return type(wanted)((key, _without_anything(item, others.get(key))) for key, item in wanted.items())
    if isinstance(wanted, tuple | list):
        items = [*reached] if isinstance(reached, tuple | list) else []
        items += [None] * (len(wanted) - len(items))
        return type(wanted)([_without_anything(*both) for both in zip(wanted, items, strict=False)])
    return wanted


class _Agreement:
    """A bijection under construction. Entries under keys that it does not cover yet wait until it does."""

    def __init__(self) -> None:
        self.there: dict[OpaqueValue, OpaqueValue] = {}
        self._back: dict[OpaqueValue, OpaqueValue] = {}
        self._maps: list[tuple[Mapping[Any, Any], Mapping[Any, Any], set[Any]]] = []

    def of_states(self, wanted: Interface, reached: Interface) -> bool:
        names = type(wanted).state_types()
        return all(self._same(getattr(wanted, name), getattr(reached, name)) for name in names) and self._entries()

    def with_handles(self) -> _Agreement | None:
        """This one, made to cover every key of the maps; None if it cannot be."""
        for number, (wanted, reached, done) in enumerate(self._maps):
            key = next((key for key in wanted if key not in done), None)
            if key is None:
                continue
            for other in reached:
                trial = _Agreement()
                trial.there, trial._back = dict(self.there), dict(self._back)
                trial._maps = [(mine, theirs, set(known)) for mine, theirs, known in self._maps]
                if trial._same(key, other) and trial._entries() and key in trial._maps[number][2]:
                    found = trial.with_handles()
                    if found is not None:
                        return found
            return None
        return self if self.covers_all() else None

    def covers_all(self) -> bool:
        """Whether no map holds a key that the other's does not."""
        return all(len(done) == len(wanted) == len(reached) for wanted, reached, done in self._maps)

    def _entries(self) -> bool:
        progress = True
        while progress:
            progress = False
            for wanted, reached, done in self._maps:  # grows while read: values hold maps too
                for key, value in wanted.items():
                    if key not in done and (image := _image(key, self.there)) is not None:
                        done.add(key)
                        progress = True
                        if image not in reached or not self._same(value, reached[image]):
                            return False
        return all(
            len(done) == sum(_image(key, self._back) is not None for key in reached) for _, reached, done in self._maps
        )

    def _same(self, wanted: Any, reached: Any) -> bool:
        kind = wanted.__class__
        if kind is Anything:
            return isinstance(reached, int)
        if kind is not (int if reached.__class__ is Anything else reached.__class__):
            return False
        if kind in _PLAIN or kind is TimeValue:
            return bool(wanted == reached)
        if kind is OpaqueValue:
            if wanted not in self.there and reached not in self._back:
                self.there[wanted], self._back[reached] = reached, wanted
            return bool(self.there.get(wanted) == reached)
        if isinstance(wanted, Struct):
            return all(self._same(getattr(wanted, name), getattr(reached, name)) for name in wanted.relevant())
        if isinstance(wanted, dict):
            self._maps.append((wanted, reached, set()))
            return True
        if isinstance(wanted, tuple | list):
            return len(wanted) == len(reached) and all(map(self._same, wanted, reached))
        return bool(wanted == reached)


def _image(key: Any, bijection: Mapping[OpaqueValue, OpaqueValue]) -> Any:
    """What a key becomes under the bijection; None if it does not cover a part of the key."""
    if key.__class__ is OpaqueValue:
        return bijection.get(key)
    if isinstance(key, tuple):
        parts = tuple([_image(part, bijection) for part in key])
        return None if None in parts else parts
    return key
