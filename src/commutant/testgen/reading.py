"""Reads the lines of a corpus: what many of them share is parsed, checked and kept once.

Tests repeat each other: of 32,000 tests of `posix18` fewer than 5,000 have a set-up of their own, and 6,000 an
observation. So a line that is written as `commutant generate` writes it is taken apart as text, and a part that was met
before is the checked value that it gave then. Every part is a whole JSON value and what stands between them is fixed,
so nothing can be read otherwise than in one piece. Any other line, and any with a mistake in it, is read in one piece
(`read_test`), which says what is wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache, partial
from itertools import permutations
from typing import Any, NoReturn, TypeVar

from commutant.testgen.corpus_checks import (
    MAX_CALLS,
    MAX_OUTCOMES,
    MAX_STEPS,
    Malformed,
    check_call,
    check_description,
    check_observe_step,
    check_setup_step,
    check_values,
    read_test,
)
from commutant.testgen.equal_objects import EqualObjects
from commutant.testgen.testcase import Order, Outcome, TestCase, encode, id_of

T = TypeVar("T")

MAX_KEPT_CHARACTERS = 1 << 25
"""So much text of each kind of part is kept with its value, whatever a file holds."""

_DESCRIPTION = re.compile(
    r'\{"id":"([A-Za-z0-9_-]+)","level":"(path|conflict|full)","path":(0|[1-9][0-9]{0,18}),'
    r'"class":("[^"\\]*(?:\\.[^"\\]*)*"),',
    re.ASCII,
)

_CALLS = '"calls":['
_NEXT = ',{"call":'
_END = "]}]}"


class _Parts(dict[str, T]):
    """Parts of one kind by their text; what is no such part raises ValueError or RecursionError."""

    def __init__(self, decode: Callable[[str], Any], check: Callable[[Any], T]) -> None:
        super().__init__()
        self._decode = decode
        self._check = check
        self._left_characters = MAX_KEPT_CHARACTERS

    def __missing__(self, text: str) -> T:
        value = self._check(self._decode(text))
        self._left_characters -= len(text)
        if self._left_characters > 0:
            self[text] = value
        return value


class TestReader:
    """Reads the tests of one corpus; equal parts of them are one object."""

    __test__ = False  # not a pytest class, whatever its name says

    def __init__(self) -> None:
        self._decode = json.JSONDecoder(
            parse_float=_no_float, parse_constant=_no_float, object_pairs_hook=EqualObjects().one
        ).decode
        self._calls = [_Parts(self._decode, partial(check_call, core=core)) for core in range(MAX_CALLS)]
        self._setup = _Parts(self._decode, check_setup_step)
        self._observe = _Parts(self._decode, check_observe_step)
        self._values = _Parts(self._decode, check_values)

    def decode(self, line: bytes) -> Any:
        """The JSON value of a line; ValueError or RecursionError if it is none."""
        return self._decode(line.decode())

    def read(self, line: bytes) -> TestCase:
        """The test of a line; Malformed, or another ValueError or RecursionError where it is no JSON."""
        try:
            test = self._in_parts(line.decode("ascii").removesuffix("\n"))
        except (ValueError, RecursionError):  # what is wrong is said of the line as a whole
            test = None
        return read_test(self.decode(line), line) if test is None else test

    def _in_parts(self, line: str) -> TestCase | None:
        """The test of a line that is written as `commutant generate` does; None for another one."""
        description = _DESCRIPTION.match(line)
        if description is None:
            return None
        test_id, level, path, class_text = description.groups()
        content = line[description.end() :]
        calls_text, _, rest = content.partition('],"setup":[')
        setup_text, _, rest = rest.partition('],"observe":[')
        observe_text, after_observe, orders_text = rest.partition('],"orders":[')
        if not (after_observe and calls_text.startswith(_CALLS) and orders_text.endswith(_END)):
            return None
        call_texts = _texts_of(calls_text[len(_CALLS) :])
        setup_texts, observe_texts = _texts_of(setup_text), _texts_of(observe_text)
        if not 1 <= len(call_texts) <= MAX_CALLS or max(len(setup_texts), len(observe_texts)) > MAX_STEPS:
            return None
        calls = tuple([parts[text] for parts, text in zip(self._calls, call_texts, strict=False)])
        orders = self._orders(orders_text[: -len(_END)], len(calls), len(observe_texts))
        if orders is None or test_id != id_of("-".join([call.call for call in calls]), f"{{{content}".encode()):
            return None
        return TestCase(
            test_id,
            *check_description(level, int(path), self._decode(class_text)),
            calls,
            tuple(map(self._setup.__getitem__, setup_texts)),
            tuple(map(self._observe.__getitem__, observe_texts)),
            orders,
        )

    def _orders(self, text: str, calls: int, observed: int) -> tuple[Order, ...] | None:
        """`text` leaves out what ends the last order."""
        expected = _orders_by_text(calls)
        before, *texts = text.split('{"order":')
        orders: dict[tuple[int, ...], Order] = {}
        known = ""
        outcomes: tuple[Outcome, ...] = ()
        for position, one in enumerate(texts, 1):
            order_text, found, outcomes_text = one.partition(',"outcomes":[')
            if position < len(texts):
                if not outcomes_text.endswith("]},"):
                    return None
                outcomes_text = outcomes_text[:-3]
            order = expected.get(order_text)
            if order is None or not found:
                return None
            if outcomes_text != known or not outcomes:  # the orders mostly have the same ones
                known, outcomes = outcomes_text, self._outcomes(outcomes_text, calls, observed)
            orders[order] = Order(order, outcomes)
        return tuple(orders.values()) if not before and len(orders) == len(texts) == len(expected) else None

    def _outcomes(self, text: str, calls: int, observed: int) -> tuple[Outcome, ...]:
        """Malformed where the text is not that of outcomes, each of as many results and observations."""
        first, last = '{"results":', "}"
        if not (text.startswith(first) and text.endswith(last)):
            raise Malformed("expected outcomes")
        texts = text[len(first) : -len(last)].split("},{" + first[1:])
        outcomes = []
        for one in texts:
            results_text, found, observation_text = one.partition(',"observation":')
            results, observation = self._values[results_text], self._values[observation_text]
            if not found or len(results) != calls or len(observation) != observed or len(texts) > MAX_OUTCOMES:
                raise Malformed("expected outcomes")
            outcomes.append(Outcome(results, observation))
        return tuple(outcomes)


def _texts_of(text: str) -> list[str]:
    """The objects of a list of calls or steps, of which each begins with the name of its call."""
    first, *others = text.split(_NEXT)
    return [first, *[_NEXT[1:] + other for other in others]] if text else []


@cache
def _orders_by_text(count: int) -> dict[str, tuple[int, ...]]:
    return {encode(order): order for order in permutations(range(count))}


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"numbers are integers, got {text[:40]}")
