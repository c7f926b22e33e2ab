"""A random sequence of calls, as it is drawn and shrunk: what is called with what, by whom, and where.

An argument may stand for what an earlier call of the sequence returned (`Returned`): so a call can be dropped, and a
descriptor that has another number then is still the one that the later call means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from commutant.lang import OpaqueValue, Seq, Sort, Struct, TimeValue, struct_fields


@dataclass(frozen=True, slots=True)
class Returned:
    """What an earlier call returned: value number `index` (see `reusable`) of the result of the call `call_number`."""

    call_number: int
    index: int


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its number in the sequence as drawn, which it keeps when others are dropped, and all that makes it up.

    `arguments` are values of the model, or `Returned` in their place, for all parameters but the one that names the
    process. `core` is the core on which the process makes the call, None where the target chooses.
    """

    number: int
    name: str
    arguments: Mapping[str, Any]
    process: int
    core: int | None


@dataclass(frozen=True, slots=True)
class CallSequence:
    """Calls, one after the other, and per sort the values that they may use (as for `Interface.begin`)."""

    pools: Mapping[type[Sort], tuple[Any, ...]]
    calls: tuple[Call, ...]


def reusable(result: Any) -> Iterator[Any]:
    """The numbers and opaque values in a result, in the order of the text: what later calls can be given."""
    if isinstance(result, OpaqueValue) or (isinstance(result, int) and not isinstance(result, bool | TimeValue)):
        yield result
    elif isinstance(result, Struct):
        for name in struct_fields(type(result)):
            yield from reusable(getattr(result, name))
    elif isinstance(result, tuple | list):
        for item in result:
            yield from reusable(item)


class Unresolved(Exception):
    """An argument stands for something that no call before has returned to this process."""


class Results:
    """What the calls of a sequence have returned so far, for later ones."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int | None, tuple[Any, ...]]] = {}

    def add(self, call_number: int, process: int | None, result: Any) -> tuple[Any, ...]:
        """Notes the result of a call of a process (None if processes mean nothing to it); gives what is reusable."""
        values = tuple(reusable(result))
        self._known[call_number] = (process, values)
        return values

    def find(self, wanted: Returned, process: int | None) -> Any:
        """What `Returned` stands for in a call of a process; raises Unresolved.

        A value that the implementation has picked for a process, such as an address, is no value of another process.
        """
        owner, values = self._known.get(wanted.call_number, (None, ()))
        if wanted.index >= len(values):
            raise Unresolved
        value = values[wanted.index]
        if isinstance(value, OpaqueValue) and None not in (owner, process) and owner != process:
            raise Unresolved
        return value


def resolve(argument: Any, results: Results, process: int | None) -> Any:
    """The argument with what `Returned` stands for put in, as a value of its own; raises Unresolved."""
    if isinstance(argument, Returned):
        return results.find(argument, process)
    if isinstance(argument, Struct):
        fields = struct_fields(type(argument))
        return type(argument)(**{name: resolve(getattr(argument, name), results, process) for name in fields})
    if isinstance(argument, Seq):
        return Seq(resolve(item, results, process) for item in argument)
    if isinstance(argument, tuple):
        return tuple(resolve(item, results, process) for item in argument)
    return argument
