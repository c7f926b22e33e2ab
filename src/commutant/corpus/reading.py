"""Reads the lines of a corpus: what many of them share is parsed, checked and kept once.

Tests repeat each other: of 32,000 tests of `posix18` fewer than 5,000 have a set-up of their own, 6,000 an observation,
and 11,000 outcomes that no other test has. So a line that is written as `commutant generate` writes it is taken apart
as text, and a part that was met before is the checked value that it gave then: the calls, the set-up, the steps of the
observation, the orders, and the parts of these. Tests with an equal part hold one object, so who makes something of a
part can tell by its identity that it has been made (`IdentityCache`). Every part is a whole JSON value and what
stands between them is fixed, so nothing can be read otherwise than in one piece. Any other line, and any with a mistake
in it, is read in one piece (`read_test`), which says what is wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache, partial
from itertools import permutations
from typing import Any, NoReturn, TypeVar

from commutant.corpus.equal_objects import EqualObjects
from commutant.corpus.testcase import (
    MAX_STEPS,
    ExpectedOutcome,
    Order,
    PlacedCall,
    TestCase,
    check_call,
    check_description,
    check_observe_step,
    check_setup_step,
    check_values,
    encode,
    id_of,
    read_test,
)
from commutant.corpus.values import MAX_OUTCOMES, Malformed
from commutant.support import MAX_CALLS_PER_SET

T = TypeVar("T")

MAX_NEW_CHARACTERS = 3 << 24
"""So much text may be read that no test before had: steps, results and observations that are not alike. They take up to
20 bytes of memory for each character; the 32,275 tests of `posix18` have 8 million."""

MAX_KEPT_CHARACTERS = 1 << 25
"""So much text of each kind of part is kept with its value, whatever a file holds."""

_DESCRIPTION = re.compile(
    r'\{"id":"([A-Za-z0-9_-]+)","level":"(path|cover|conflict|full)","path":(0|[1-9][0-9]{0,18}),'
    r'"class":("[^"\\]*(?:\\.[^"\\]*)*"),',
    re.ASCII,
)

_CALLS = '"calls":['
_NEXT = ',{"call":'
_END = "]}]}"


class _Parts(dict[str, T]):
    """Parts of one kind by their text; what is no such part raises ValueError or RecursionError."""

    def __init__(
        self, decode: Callable[[str], Any], check: Callable[[Any], T], spend: Callable[[str | bytes], object] = len
    ) -> None:
        super().__init__()
        self._decode = decode
        self._check = check
        self._spend = spend
        self._left_characters = MAX_KEPT_CHARACTERS

    def __missing__(self, text: str) -> T:
        self._spend(text)
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
        self._left_characters = MAX_NEW_CHARACTERS
        spend = self._spend
        self._call = [_Parts(self._decode, partial(check_call, core=core), spend) for core in range(MAX_CALLS_PER_SET)]
        self._setup_step = _Parts(self._decode, check_setup_step, spend)
        self._observe_step = _Parts(self._decode, check_observe_step, spend)
        self._values = _Parts(self._decode, check_values, spend)
        self._class = _Parts(self._decode, _text, spend)
        self._calls = _Parts(_texts_of, self._placed)
        self._setup = _Parts(_texts_of, partial(_steps, self._setup_step))
        self._observe = _Parts(_texts_of, partial(_steps, self._observe_step))
        self._orders = _Parts(_order_texts, self._checked_orders)

    def decode(self, line: bytes) -> Any:
        """The JSON value of a line; ValueError or RecursionError if it is none."""
        return self._decode(line.decode())

    def read(self, line: bytes) -> TestCase:
        """The test of a line; Malformed, or another ValueError or RecursionError where it is no JSON."""
        try:
            test = self._in_parts(line.decode("ascii").removesuffix("\n"))
        except (ValueError, RecursionError):  # what is wrong is said of the line as a whole
            test = None
        if test is not None:
            return test
        self._spend(line)
        return read_test(self.decode(line), line)

    def _spend(self, text: str | bytes) -> None:
        """Pays for text that is read again, whatever kind of part it is; Malformed if that is too much."""
        self._left_characters -= len(text)
        if self._left_characters < 0:
            raise Malformed(f"more than {MAX_NEW_CHARACTERS:,} characters that no test before it has")

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
        calls, setup = self._calls[calls_text[len(_CALLS) :]], self._setup[setup_text]
        observe, orders = self._observe[observe_text], self._orders[orders_text[: -len(_END)]]
        outcome = orders[0].outcomes[0]
        if len(outcome.results) != len(calls) or len(outcome.observation) != len(observe):
            return None
        if test_id != id_of("-".join([call.call for call in calls]), f"{{{content}".encode()):
            return None
        described = check_description(level, int(path), self._class[class_text])
        return TestCase(test_id, *described, calls, setup, observe, orders)

    def _placed(self, texts: list[str]) -> tuple[PlacedCall, ...]:
        if not 1 <= len(texts) <= MAX_CALLS_PER_SET:
            raise Malformed("expected calls")
        return tuple([parts[text] for parts, text in zip(self._call, texts, strict=False)])

    def _checked_orders(self, texts: list[tuple[str, str]]) -> tuple[Order, ...]:
        """All orders of some number of calls, whose outcomes have as many results and observations each."""
        calls = texts[0][0].count(",") + 1
        expected = _orders_by_text(calls) if calls <= MAX_CALLS_PER_SET else {}
        orders: dict[tuple[int, ...], Order] = {}
        known: str | None = None
        outcomes: tuple[ExpectedOutcome, ...] = ()
        for order_text, outcomes_text in texts:
            if outcomes_text != known:  # the orders mostly have the same ones
                known, outcomes = outcomes_text, self._outcomes(outcomes_text)
            if order_text not in expected:
                raise Malformed("expected an order of the calls")
            orders[expected[order_text]] = Order(expected[order_text], outcomes)
        sizes = {(len(one.results), len(one.observation)) for order in orders.values() for one in order.outcomes}
        if not len(orders) == len(texts) == len(expected) or len(sizes) != 1 or sizes.pop()[0] != calls:
            raise Malformed("expected every order once, and as many results in each")
        return tuple(orders.values())

    def _outcomes(self, text: str) -> tuple[ExpectedOutcome, ...]:
        first, last = '{"results":', "}"
        if not (text.startswith(first) and text.endswith(last)):
            raise Malformed("expected outcomes")
        texts = text[len(first) : -len(last)].split("},{" + first[1:])
        outcomes = []
        for one in texts:
            results_text, found, observation_text = one.partition(',"observation":')
            if not found or len(texts) > MAX_OUTCOMES:
                raise Malformed("expected outcomes")
            outcomes.append(ExpectedOutcome(self._values[results_text], self._values[observation_text]))
        return tuple(outcomes)


def _steps(parts: _Parts[T], texts: list[str]) -> tuple[T, ...]:
    if len(texts) > MAX_STEPS:
        raise Malformed("expected fewer steps")
    return tuple([parts[text] for text in texts])


def _text(value: Any) -> str:
    assert type(value) is str, "the pattern of a description leaves nothing else"
    return value


def _texts_of(text: str) -> list[str]:
    """The objects of a list of calls or steps, of which each begins with the name of its call."""
    first, *others = text.split(_NEXT)
    return [first, *[_NEXT[1:] + other for other in others]] if text else []


def _order_texts(text: str) -> list[tuple[str, str]]:
    """The orders of a list of them, each with its outcomes; `text` leaves out what ends the last one."""
    before, *texts = text.split('{"order":')
    orders = []
    for position, one in enumerate(texts, 1):
        order_text, found, outcomes_text = one.partition(',"outcomes":[')
        end = "]}," if position < len(texts) else ""
        if not found or not outcomes_text.endswith(end):
            raise Malformed("expected outcomes of an order")
        orders.append((order_text, outcomes_text.removesuffix(end)))
    if before or not orders:
        raise Malformed("expected orders")
    return orders


@cache
def _orders_by_text(count: int) -> dict[str, tuple[int, ...]]:
    return {encode(order): order for order in permutations(range(count))}


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"numbers are integers, got {text[:40]}")
