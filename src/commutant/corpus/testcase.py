"""Test cases as data: the border between test generation and everything that runs or shows tests.

The JSON form is described in docs/reference/test-cases.md and docs/schemas/corpus.schema.json.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from commutant.support import MAX_CALLS_PER_SET

Level = Literal["path", "conflict", "full"]
LEVELS: tuple[Level, ...] = ("path", "conflict", "full")
"""Coverage levels, from few classes to many (docs/reference/models.md)."""

SetOfCalls = Annotated[tuple[str, ...], Meta(min_length=1, max_length=MAX_CALLS_PER_SET)]
"""The names of calls that meet in a test, as documents have them."""

Value = object
"""A JSON value of "Values" in docs/reference/test-cases.md."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a set-up or an observation: its name, its arguments by name, and the process that makes it.

    `result` is what a set-up step must return; it is None for the steps of an observation, whose results differ by
    order and stand in the outcomes.
    """

    call: str
    args: Mapping[str, Value]
    process: int
    result: Value = None


@dataclass(frozen=True, slots=True)
class PlacedCall:
    """One of the n calls under test, with the process, the thread of that process, and the core it runs on."""

    call: str
    args: Mapping[str, Value]
    process: int
    thread: int
    core: int


@dataclass(frozen=True, slots=True)
class ExpectedOutcome:
    """One acceptable outcome of one order: results in the order of `TestCase.calls`, then those of the observation."""

    results: tuple[Value, ...]
    observation: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """The calls' indices in the order of execution, and every outcome that is acceptable for it."""

    order: tuple[int, ...]
    outcomes: tuple[ExpectedOutcome, ...]


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test: a state to build, n calls that commute in it, and all that a caller may see in each order."""

    __test__ = False  # not a pytest class, whatever its name says

    id: str
    level: str
    path: int
    equivalence_class: str
    calls: tuple[PlacedCall, ...]
    setup: tuple[Step, ...]
    observe: tuple[Step, ...]
    orders: tuple[Order, ...]

    @property
    def set_name(self) -> str:
        """The calls' names joined by `-`: the cell of the heat map that the test belongs to."""
        return "-".join(call.call for call in self.calls)

    def to_json(self) -> dict[str, object]:
        """The test as the JSON object of one corpus line."""
        return {
            "id": self.id,
            "level": self.level,
            "path": self.path,
            "class": self.equivalence_class,
            **self._content(),
        }

    def _content(self) -> dict[str, object]:
        return {
            "calls": calls_json(self.calls),
            "setup": setup_json(self.setup),
            "observe": observe_json(self.observe),
            "orders": orders_json(self.orders),
        }

    def content_id(self) -> str:
        """The id that the content calls for, see `id_of`."""
        return id_of(self.set_name, encode(self._content()).encode())


def call_json(call: PlacedCall) -> dict[str, object]:
    """A call under test as a JSON object."""
    return {
        "call": call.call,
        "args": dict(call.args),
        "process": call.process,
        "thread": call.thread,
        "core": call.core,
    }


def calls_json(calls: Iterable[PlacedCall]) -> list[dict[str, object]]:
    """The calls of a test as JSON."""
    return [call_json(call) for call in calls]


def setup_json(setup: Iterable[Step]) -> list[dict[str, object]]:
    """A set-up as JSON: steps with their results."""
    return [{"call": one.call, "args": dict(one.args), "process": one.process, "result": one.result} for one in setup]


def observe_json(observe: Iterable[Step]) -> list[dict[str, object]]:
    """The steps of an observation as JSON."""
    return [{"call": one.call, "args": dict(one.args), "process": one.process} for one in observe]


def orders_json(orders: Iterable[Order]) -> list[dict[str, object]]:
    """The orders of a test with their outcomes as JSON."""
    return [
        {
            "order": list(one.order),
            "outcomes": [
                {"results": list(outcome.results), "observation": list(outcome.observation)} for outcome in one.outcomes
            ],
        }
        for one in orders
    ]


def id_of(set_name: str, content: bytes) -> str:
    """The id of a test: the name of its set and the first 12 digits of the SHA-256 of what it does, in compact JSON.

    That is `calls`, `setup`, `observe` and `orders`, as they stand in the line of a corpus. Level, path and class
    describe how a test was found, not what it is: they stay out, so that the ids of two corpora can be compared.
    """
    return f"{set_name}-{hashlib.sha256(content).hexdigest()[:12]}"


encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False).encode
"""Compact JSON: ASCII, no spaces, keys in their order; what the lines of a corpus are made of."""
