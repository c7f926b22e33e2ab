"""What a program prints when it runs: the results of its steps as text, as the acceptable outcomes stand in it.

Values of the kernel's own choice are numbered by first appearance, each sort by itself; times, which are compared
apart, stand there without their numbers. The text is made group by group (set-up, calls, observation): what a group
reads like depends on its steps, on what they return, and on the values that were numbered before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from commutant.corpus import ExpectedOutcome, PlacedCall, Step, TestCase, Value, value_text
from commutant.report.cprogram.literal import file_name
from commutant.support import IdentityCache

Chosen = tuple[str, object]
"""A value of the kernel's choice: its sort, and which one it is among those of the test."""


@dataclass(frozen=True, slots=True)
class Group:
    """One of the three groups of steps: what its steps are called in what a program prints, and as functions in C."""

    word: str
    function: str

    def names(self, steps: Iterable[Step | PlacedCall]) -> list[str]:
        """What a program calls the steps: `call 0 open`."""
        return [f"{self.word} {index} {step.call}" for index, step in enumerate(steps)]

    def functions(self, steps: Sequence[Step | PlacedCall]) -> list[str]:
        """The names of the functions that make the steps: `call_0`."""
        return [f"{self.function}_{index}" for index in range(len(steps))]


SETUP, CALLS, OBSERVE = Group("set-up", "setup"), Group("call", "call"), Group("observe", "observe")


@dataclass(frozen=True, slots=True)
class Printed:
    """What a program prints for a group of steps: a text per step, each a line; the times that they hold, in their
    order; and all values of the kernel's choice that were met up to here, in the order in which they were."""

    lines: tuple[str, ...]
    times: tuple[int, ...]
    chosen: tuple[Chosen, ...]


class Printer:
    """Says what is printed; results that tests share are put into words once."""

    def __init__(self) -> None:
        self._words = IdentityCache(_words)

    def printed(self, names: Iterable[str], results: Iterable[Value], chosen: Iterable[Chosen] = ()) -> Printed:
        """What steps of these names print that return these results; `chosen` are the values met before."""
        numbers: dict[Chosen, int] = {}
        for one in chosen:
            _number(one, numbers)
        lines: list[str] = []
        times: tuple[int, ...] = ()
        for name, result in zip(names, results, strict=True):
            words = self._words(result)
            shown = [
                piece if isinstance(piece, str) else value_text({"sort": piece[0], "id": _number(piece, numbers)})
                for piece in words.pieces
            ]
            lines.append(f"{name}: {''.join(shown)}\n")
            times += words.times
        return Printed(tuple(lines), times, tuple(numbers))


def expected_text(test: TestCase, outcome: ExpectedOutcome) -> str:
    """What the program prints, but for its last line, if this outcome comes about, in whatever order."""
    printer = Printer()
    lines: list[str] = []
    chosen: tuple[Chosen, ...] = ()
    for group, steps, results in (
        (SETUP, test.setup, [step.result for step in test.setup]),
        (CALLS, test.calls, outcome.results),
        (OBSERVE, test.observe, outcome.observation),
    ):
        one = printer.printed(group.names(steps), results, chosen)
        lines.extend(one.lines)
        chosen = one.chosen
    return "".join(lines)


@dataclass(frozen=True, slots=True)
class _Words:
    """A result as a program prints it: texts and, between them, values that the kernel chose; and the times in it."""

    pieces: tuple[str | Chosen, ...]
    times: tuple[int, ...]


def _number(one: Chosen, numbers: dict[Chosen, int]) -> int:
    """The number of a value among those of its sort, which it gets when it is first met."""
    number = numbers.get(one)
    if number is None:
        number = numbers[one] = sum(1 for sort, _ in numbers if sort == one[0])
    return number


def _words(value: Value) -> _Words:
    times: list[int] = []
    pieces: list[str | Chosen] = []
    for is_text, group in itertools.groupby(_pieces(value, times), key=lambda piece: isinstance(piece, str)):
        if is_text:
            pieces.append("".join(cast(Iterable[str], group)))
        else:
            pieces.extend(group)
    return _Words(tuple(pieces), tuple(times))


def _pieces(value: Value, times: list[int]) -> Iterator[str | Chosen]:
    match value:
        case {"sort": str() as sort, "id": which}:
            yield sort, which
        case {"struct": Mapping() as fields}:
            for index, (name, field) in enumerate(fields.items()):
                yield f"{' ' if index else ''}{value_text(name)}="
                yield from _pieces(field, times)
        case {"seq": list() as items}:
            for index, item in enumerate(items):
                yield ", " if index else "["
                yield from _pieces(item, times)
            yield "]" if items else "[]"
        case {"time": int(point)}:
            times.append(point)
            yield "time"
        case str():
            yield value_text(file_name(value))
        case _:
            yield value_text(value)
