"""Test cases as data: the border between test generation and everything that runs or shows tests.

The layout of a corpus line stands here and nowhere else: its declaration, from which the writer and
docs/schemas/corpus.schema.json come, and next to it the reader of a line in one piece. (`reading` is the fast one, for
lines that are written as `commutant generate` writes them.) docs/reference/test-cases.md describes it for people.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, UnsetType, convert, field

from commutant.corpus.values import (
    MAX_INTEGER,
    MAX_OUTCOMES,
    MAX_TEXT_CHARACTERS,
    Arguments,
    Identifier,
    Malformed,
    Number,
    Value,
    check_arguments,
    check_identifier,
    check_integer,
    check_list,
    check_object,
    check_text,
    check_value,
    show,
)
from commutant.documents import Part, builtins
from commutant.support import MAX_CALLS_PER_SET, Shard

MAX_STEPS = 256
MAX_PROCESSES = 16
MAX_THREADS = 16
MAX_TESTS = 1_000_000
SCHEMA_VERSION = 1

_HASH = re.compile(r"[0-9A-Za-z._:+-]{1,128}", re.ASCII)

T = TypeVar("T")

Level = Literal["path", "cover", "conflict", "full"]
LEVELS: tuple[Level, ...] = ("path", "cover", "conflict", "full")
"""Coverage levels, from few classes to many (docs/reference/models.md)."""

SetOfCalls = Annotated[tuple[str, ...], Meta(min_length=1, max_length=MAX_CALLS_PER_SET)]
"""The names of calls that meet in a test, as documents have them."""

_Process = Annotated[int, Meta(ge=0, lt=MAX_PROCESSES)]
_Thread = Annotated[int, Meta(ge=0, lt=MAX_THREADS)]
_Core = Annotated[int, Meta(ge=0, lt=MAX_CALLS_PER_SET)]


class Step(Part, frozen=True):
    """One call of an observation: its name, its arguments by name, and the process that makes it.

    What it returns differs by order and stands in the outcomes.
    """

    call: Identifier
    args: Arguments
    process: _Process


class SetupStep(Step, frozen=True):
    """One call of a set-up, and what it must return.

    `also` are other results that the specification allows, with which the set-up leads to another state.
    """

    result: Value
    also: Annotated[tuple[Value, ...], Meta(max_length=MAX_OUTCOMES)] | UnsetType = UNSET


class PlacedCall(Part, frozen=True):
    """One of the n calls under test, with the process, its thread of that, and the core it runs on: its index."""

    call: Identifier
    args: Arguments
    process: _Process
    thread: _Thread
    core: _Core


class ExpectedOutcome(Part, frozen=True):
    """One acceptable outcome of one order: results in the order of the test's calls, then those of the observation."""

    results: Annotated[tuple[Value, ...], Meta(max_length=MAX_CALLS_PER_SET)]
    observation: Annotated[tuple[Value, ...], Meta(max_length=MAX_STEPS)]


class Order(Part, frozen=True):
    """The calls' indices in the order of execution, and every outcome that is acceptable for it."""

    order: Annotated[tuple[_Core, ...], Meta(min_length=1, max_length=MAX_CALLS_PER_SET)]
    outcomes: Annotated[tuple[ExpectedOutcome, ...], Meta(min_length=1, max_length=MAX_OUTCOMES)]


class TestCase(Part, frozen=True):
    """One test: a state to build, n calls that commute in it, and all that a caller may see in each order.

    The id is the calls joined by `-`, and 12 digits of the SHA-256 of the content.
    """

    __test__ = False  # not a pytest class, whatever its name says

    id: Annotated[str, Meta(pattern=rf"^([A-Za-z_][A-Za-z0-9_]{{0,63}}-){{1,{MAX_CALLS_PER_SET}}}[0-9a-f]{{12}}$")]
    level: Level
    path: Number
    equivalence_class: Annotated[str, Meta(max_length=MAX_TEXT_CHARACTERS)] = field(name="class")
    calls: Annotated[tuple[PlacedCall, ...], Meta(min_length=1, max_length=MAX_CALLS_PER_SET)]
    setup: Annotated[tuple[SetupStep, ...], Meta(max_length=MAX_STEPS)]
    observe: Annotated[tuple[Step, ...], Meta(max_length=MAX_STEPS)]
    orders: Annotated[tuple[Order, ...], Meta(min_length=1, max_length=math.factorial(MAX_CALLS_PER_SET))]

    @property
    def set_name(self) -> str:
        """The calls' names joined by `-`: the cell of the heat map that the test belongs to."""
        return "-".join([call.call for call in self.calls])

    def to_json(self) -> dict[str, object]:
        """The test as the JSON object of one corpus line."""
        document: dict[str, object] = builtins(self)
        return document

    def content_id(self) -> str:
        """The id that the content calls for, see `id_of`."""
        return id_of(self.set_name, _content(self.to_json()))


class ShardEntry(Part, frozen=True):
    """Which part of a whole a corpus is: of its pieces, every `count`th from `number` on.

    `whole` is a hash of what was cut, and `pieces` has the number of tests of each piece of this part; without it, each
    test is one.
    """

    number: Annotated[int, Meta(ge=1)]
    count: Annotated[int, Meta(ge=1, le=MAX_TESTS)]
    whole: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    pieces: tuple[Number, ...] | UnsetType = UNSET

    @property
    def shard(self) -> Shard:
        """By number alone."""
        return Shard(self.number, self.count)

    def __post_init__(self) -> None:
        """Refuses a number above the count."""
        if self.number > self.count:
            raise ValueError(f"shard {self.number} of {self.count}")


class CorpusHeader(Part, frozen=True, kw_only=True, tag_field="schema_version", tag=SCHEMA_VERSION):
    """The first line of a corpus.

    `model` is a hash of the model that the tests come from; `tests` says how many lines follow. `without_setup` has,
    per set of calls, the classes whose state no calls build. `shard` is there if the corpus is a part of another.
    """

    kind: Literal["corpus"] = "corpus"
    interface: Annotated[str, Meta(min_length=1, max_length=128)]
    level: Level
    model: Annotated[str, Meta(pattern=f"^{_HASH.pattern}$")]
    tests: Annotated[int, Meta(ge=0, le=MAX_TESTS)]
    without_setup: dict[str, Number] | UnsetType = UNSET
    shard: ShardEntry | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Refuses pieces that do not add up."""
        if self.shard is not UNSET and self.shard.pieces is not UNSET and sum(self.shard.pieces) != self.tests:
            raise ValueError(f"the pieces of the shard have {sum(self.shard.pieces)} tests, and tests is {self.tests}")


CORPUS_LINES = (CorpusHeader, TestCase)
"""The declarations of which a line of a corpus is one. What they cannot say is checked below: ids, each order once, and
that a call's core is its index."""


def id_of(set_name: str, content: bytes) -> str:
    """The id of a test: the name of its set and the first 12 digits of the SHA-256 of what it does, in compact JSON.

    That is `calls`, `setup`, `observe` and `orders`, as they stand in the line of a corpus. Level, path and class
    describe how a test was found, not what it is: they stay out, so that the ids of two corpora can be compared.
    """
    return f"{set_name}-{hashlib.sha256(content).hexdigest()[:12]}"


encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False).encode
"""Compact JSON: ASCII, no spaces, keys in their order; what the lines of a corpus are made of."""


def _content(line: Mapping[str, Any]) -> bytes:
    """The part of a line that the id is made of."""
    return encode({key: line[key] for key in ("calls", "setup", "observe", "orders")}).encode()


def _keys(declaration: type[Part]) -> frozenset[str]:
    return frozenset(declaration.__struct_encode_fields__)


_TEST_KEYS, _CALL_KEYS, _OUTCOME_KEYS = _keys(TestCase), _keys(PlacedCall), _keys(ExpectedOutcome)
_STEP_KEYS, _SETUP_KEYS, _ORDER_KEYS = _keys(Step), _keys(SetupStep), _keys(Order)
_HEADER_KEYS = _keys(CorpusHeader) | {"schema_version"}


def _level(value: Any) -> Level:
    for level in LEVELS:
        if value == level:
            return level
    raise Malformed(f"expected one of {', '.join(LEVELS)}, got {show(value)}", "level")


def check_setup_step(raw: Any) -> SetupStep:
    """A step of a set-up; raises Malformed."""
    if "also" not in raw:
        check_object(raw, _SETUP_KEYS - {"also"})
        check_value(raw["result"])
        return SetupStep(*_step(raw), raw["result"])
    check_object(raw, _SETUP_KEYS)
    check_value(raw["result"])
    also = check_list(raw["also"], 0, MAX_OUTCOMES, "also")
    for value in also:
        check_value(value)
    return SetupStep(*_step(raw), raw["result"], tuple(also))


def check_observe_step(raw: Any) -> Step:
    """A step of an observation; raises Malformed."""
    check_object(raw, _STEP_KEYS)
    return Step(*_step(raw))


def _step(raw: Any) -> tuple[str, dict[str, Any], int]:
    process = check_integer(raw["process"], 0, MAX_PROCESSES - 1, "process")
    return check_identifier(raw["call"], "call"), check_arguments(raw["args"]), process


def _steps(value: Any, place: str, check: Callable[[Any], T]) -> tuple[T, ...]:
    steps: list[T] = []
    items = check_list(value, 0, MAX_STEPS, place)
    try:
        for raw in items:
            steps.append(check(raw))  # noqa: PERF401 - an error says how many were read
    except Malformed as error:
        raise error.within(f"{place}[{len(steps)}]") from None
    return tuple(steps)


def check_values(value: Any) -> tuple[Any, ...]:
    """The results of an outcome, or its observation; raises Malformed."""
    items = check_list(value, 0, MAX_STEPS)
    for item in items:
        check_value(item)
    return tuple(items)


def check_call(raw: Any, core: int) -> PlacedCall:
    """The call under test that runs on this core; raises Malformed."""
    check_object(raw, _CALL_KEYS)
    if raw["core"] != core or type(raw["core"]) is not int:
        raise Malformed(f"call {core} runs on core {core}, got {show(raw['core'])}", "core")
    process = check_integer(raw["process"], 0, MAX_PROCESSES - 1, "process")
    thread = check_integer(raw["thread"], 0, MAX_THREADS - 1, "thread")
    call = check_identifier(raw["call"], "call")
    return PlacedCall(call, check_arguments(raw["args"]), process, thread, core)


def check_description(level: Any, path: Any, equivalence_class: Any) -> tuple[Level, int, str]:
    """How a test was found: level, path and class; raises Malformed."""
    return _level(level), check_integer(path, 0, MAX_INTEGER, "path"), check_text(equivalence_class, "class")


def _calls(value: Any) -> tuple[PlacedCall, ...]:
    calls: list[PlacedCall] = []
    items = check_list(value, 1, MAX_CALLS_PER_SET, "calls")
    try:
        for core, raw in enumerate(items):
            calls.append(check_call(raw, core))
    except Malformed as error:
        raise error.within(f"calls[{len(calls)}]") from None
    return tuple(calls)


def _orders(value: Any, calls: int, observed: int) -> tuple[Order, ...]:
    wanted = math.factorial(calls)
    orders: list[Order] = []
    seen = set()
    checked: list[Any] = []
    items = check_list(value, wanted, wanted, "orders")
    try:
        for raw in items:
            check_object(raw, _ORDER_KEYS)
            order = tuple(
                check_integer(item, 0, calls - 1, "order") for item in check_list(raw["order"], calls, calls, "order")
            )
            if len(set(order)) != calls or order in seen:
                raise Malformed(f"expected each of the {wanted} orders once, got {list(order)} again", "order")
            seen.add(order)
            outcomes = check_list(raw["outcomes"], 1, MAX_OUTCOMES, "outcomes")
            for outcome in outcomes:
                if outcome not in checked:  # the orders mostly have the same ones
                    _outcome(outcome, calls, observed)
            checked = outcomes
            acceptable = [ExpectedOutcome(tuple(one["results"]), tuple(one["observation"])) for one in outcomes]
            orders.append(Order(order, tuple(acceptable)))
    except Malformed as error:
        raise error.within(f"orders[{len(orders)}]") from None
    return tuple(orders)


def _outcome(outcome: Any, calls: int, observed: int) -> None:
    check_object(outcome, _OUTCOME_KEYS)
    for item in check_list(outcome["results"], calls, calls, "results"):
        check_value(item)
    for item in check_list(outcome["observation"], observed, observed, "observation"):
        check_value(item)


def read_test(raw: Any, line: bytes = b"") -> TestCase:
    """The test case of one corpus line; raises Malformed. `line` is the text that it was read from."""
    check_object(raw, _TEST_KEYS)
    calls = _calls(raw["calls"])
    setup = _steps(raw["setup"], "setup", check_setup_step)
    observe = _steps(raw["observe"], "observe", check_observe_step)
    orders = _orders(raw["orders"], len(calls), len(observe))
    set_name = "-".join([call.call for call in calls])
    expected = id_of(set_name, _content_in(line))
    if raw["id"] != expected:  # or a line with spaces, or with keys in another order
        expected = id_of(set_name, _content(raw))
    if raw["id"] != expected:
        raise Malformed(
            f"the content gives {expected}, got {show(raw['id'])}: the file was changed, or another version of "
            "commutant made it; make it again with `commutant generate`",
            "id",
        )
    level, path, equivalence_class = check_description(raw["level"], raw["path"], raw["class"])
    return TestCase(
        id=expected,
        level=level,
        path=path,
        equivalence_class=equivalence_class,
        calls=calls,
        setup=setup,
        observe=observe,
        orders=orders,
    )


_DESCRIPTION = re.compile(rb'\{"id":"[^"\\]*","level":"[^"\\]*","path":\d+,"class":"(?:[^"\\]|\\.)*",')


def _content_in(line: bytes) -> bytes:
    """The part of a line that the id is made of, if the line is written as `commutant generate` writes it."""
    description = _DESCRIPTION.match(line)
    return b"{" + line[description.end() :].rstrip(b"\n") if description else b""


def read_header(raw: Any) -> CorpusHeader:
    """The header of a corpus; raises Malformed."""
    if type(raw) is not dict or raw.get("kind") != "corpus":
        raise Malformed('expected the header {"schema_version": ..., "kind": "corpus", ...}')
    version = raw.get("schema_version")
    if version != SCHEMA_VERSION or type(version) is not int:
        raise Malformed(
            f"this version of commutant reads {SCHEMA_VERSION}, got {show(version)}: make the corpus again with "
            "`commutant generate`",
            "schema_version",
        )
    check_object(raw, _HEADER_KEYS - ({"without_setup", "shard"} - raw.keys()))
    model = raw["model"]
    if type(model) is not str or _HASH.fullmatch(model) is None:
        raise Malformed(f"expected a hash, got {show(model)}", "model")
    without_setup = raw.get("without_setup", {})
    if type(without_setup) is not dict:
        raise Malformed(f"expected an object, got {show(without_setup)}", "without_setup")
    for name, count in without_setup.items():
        check_integer(count, 0, MAX_INTEGER, f"without_setup.{show(check_text(name, 'without_setup', 512))}")
    interface = check_text(raw["interface"], "interface", 128)
    if not interface:
        raise Malformed("expected the name of an interface, got ''", "interface")
    tests = check_integer(raw["tests"], 0, MAX_TESTS, "tests")
    try:
        return CorpusHeader(
            interface=interface,
            level=_level(raw["level"]),
            model=model,
            tests=tests,
            without_setup=without_setup or UNSET,
            shard=convert(raw["shard"], ShardEntry) if "shard" in raw else UNSET,
        )
    except Malformed:
        raise
    except ValueError as error:  # msgspec's, and that of a shard that does not fit
        raise Malformed(str(error), "shard") from None
