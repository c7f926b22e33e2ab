"""The checks of one corpus line: from JSON that anybody may have written to a `TestCase` that can be trusted.

Written by hand rather than with a schema library, because 30,000 tests have to be read in about a second; a test
compares what is accepted here with docs/schemas/corpus.schema.json. The limits keep a hostile file from making a huge
set-up, a file name that leaves the test's directory, or a text that plays with the terminal. For speed, the place of a
mistake is put together only when there is one, on the way out (`Malformed.within`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from commutant.corpus.testcase import LEVELS, ExpectedOutcome, Level, Order, PlacedCall, Step, TestCase, encode, id_of
from commutant.support import MAX_CALLS_PER_SET

MAX_STEPS = 256
MAX_OUTCOMES = 1024
MAX_PROCESSES = 16
MAX_THREADS = 16
MAX_NAME_BYTES = 255
MAX_TEXT_CHARACTERS = 4096
MAX_VALUE_DEPTH = 8
MAX_ARGUMENTS = 32

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_ERRNO = re.compile(r"E[A-Z0-9]{1,30}", re.ASCII)
_SIGNAL = re.compile(r"SIG[A-Z0-9]{1,28}", re.ASCII)
_HASH = re.compile(r"[0-9A-Za-z._:+-]{1,128}", re.ASCII)
_MIN_INTEGER = -(1 << 63)
_MAX_INTEGER = (1 << 64) - 1

_TEST_KEYS = frozenset(("id", "level", "path", "class", "calls", "setup", "observe", "orders"))
_CALL_KEYS = frozenset(("call", "args", "process", "thread", "core"))
_SETUP_KEYS = frozenset(("call", "args", "process", "result"))
_OBSERVE_KEYS = frozenset(("call", "args", "process"))
_ORDER_KEYS = frozenset(("order", "outcomes"))
_OUTCOME_KEYS = frozenset(("results", "observation"))


class Malformed(ValueError):
    """What in a line is not as it must be: the place within the line, what was expected and what stands there."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(problem)
        self._problem = problem
        self._place = place

    def within(self, place: str) -> Malformed:
        """The same mistake, seen from the object around it."""
        between = "." if self._place and not self._place.startswith("[") else ""
        return Malformed(self._problem, f"{place}{between}{self._place}")

    def __str__(self) -> str:
        return f"{self._place}: {self._problem}" if self._place else self._problem


def _show(value: object) -> str:
    """A foreign value in a message: short, on one line and in plain characters."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _object(value: Any, keys: frozenset[str]) -> dict[str, Any]:
    if type(value) is not dict:
        raise Malformed(f"expected an object, got {_show(value)}")
    if value.keys() != keys:
        missing, unknown = sorted(keys - value.keys()), sorted(value.keys() - keys)
        raise Malformed(
            f"the key {missing[0]!r} is missing" if missing else f"the key {_show(unknown[0])} is not known"
        )
    return value


def _list(value: Any, low: int, high: int, place: str = "") -> list[Any]:
    if type(value) is not list or not low <= len(value) <= high:
        got = f"{len(value)} items" if type(value) is list else _show(value)
        wanted = f"{low}" if low == high else f"{low} to {high}"
        raise Malformed(f"expected a list of {wanted} items, got {got}", place)
    return value


def _integer(value: Any, low: int, high: int, place: str = "") -> int:
    if type(value) is not int or not low <= value <= high:
        raise Malformed(f"expected an integer from {low} to {high}, got {_show(value)}", place)
    return value


def _identifier(value: Any, place: str = "") -> str:
    if type(value) is not str or not _is_identifier(value):
        raise Malformed(f"expected a name of letters, digits and underscores, got {_show(value)}", place)
    return value


@lru_cache(maxsize=1024)
def _is_identifier(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None


@lru_cache(maxsize=256)
def _is_errno(text: str) -> bool:
    return _ERRNO.fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _is_name(text: str) -> bool:
    """Whether a text may be a value of a sort that the target names freely, such as a file name."""
    return (
        text.isprintable()
        and "/" not in text
        and text not in ("", ".", "..")
        and len(text) <= MAX_NAME_BYTES
        and len(text.encode()) <= MAX_NAME_BYTES
    )


def _text(value: Any, place: str, high: int = MAX_TEXT_CHARACTERS) -> str:
    if type(value) is not str or len(value) > high or not value.isprintable():
        raise Malformed(f"expected a printable text of at most {high} characters, got {_show(value)}", place)
    return value


def _level(value: Any) -> Level:
    for level in LEVELS:
        if value == level:
            return level
    raise Malformed(f"expected one of {', '.join(LEVELS)}, got {_show(value)}", "level")


def _value(value: Any, depth: int = 0) -> None:
    """Checks a value of "Values" in docs/reference/test-cases.md."""
    kind = type(value)
    if kind is int:
        if not _MIN_INTEGER <= value <= _MAX_INTEGER:
            raise Malformed(f"expected an integer of 64 bits, got {_show(value)}")
    elif value is None or kind is bool:
        return
    elif kind is dict and depth < MAX_VALUE_DEPTH:
        _tagged(value, depth)
    elif kind is str:
        if len(value) > MAX_NAME_BYTES or not _is_name(value):
            raise Malformed(
                f"expected a name of 1 to {MAX_NAME_BYTES} printable bytes without '/', not '.' or '..', "
                f"got {_show(value)}"
            )
    else:
        raise Malformed(f"expected a value, got {_show(value)}")


def _tagged(value: dict[str, Any], depth: int) -> None:
    if len(value) == 2 and "sort" in value and "id" in value:
        _identifier(value["sort"], "sort")
        _integer(value["id"], 0, _MAX_INTEGER, "id")
        return
    tag, inner = next(iter(value.items())) if len(value) == 1 else ("", None)
    if tag == "errno":
        if type(inner) is not str or not _is_errno(inner):
            raise Malformed(f"expected the name of an error such as ENOENT, got {_show(inner)}", "errno")
    elif tag == "signal":
        if type(inner) is not str or _SIGNAL.fullmatch(inner) is None:
            raise Malformed(f"expected the name of a signal such as SIGSEGV, got {_show(inner)}", "signal")
    elif tag == "struct":
        _values(inner, depth + 1, "struct")
    elif tag == "time":
        _integer(inner, _MIN_INTEGER, _MAX_INTEGER, "time")
    elif tag == "seq":
        for item in _list(inner, 0, MAX_OUTCOMES):
            _value(item, depth + 1)
    else:
        raise Malformed(f"expected an errno, signal, sort, time, struct or seq, got {_show(value)}")


def _values(value: Any, depth: int, place: str) -> dict[str, Any]:
    """Checks values by name: the fields of a struct, or the arguments of a call."""
    if type(value) is not dict or len(value) > MAX_ARGUMENTS:
        raise Malformed(f"expected an object with at most {MAX_ARGUMENTS} keys, got {_show(value)}", place)
    name = ""
    try:
        for name, item in value.items():
            _identifier(name)
            _value(item, depth)
    except Malformed as error:
        raise error.within(f"{place}.{name if _is_identifier(name) else _show(name)}") from None
    return value


def check_setup_step(raw: Any) -> Step:
    """A step of a set-up; raises Malformed."""
    return _step(raw, _SETUP_KEYS)


def check_observe_step(raw: Any) -> Step:
    """A step of an observation; raises Malformed."""
    return _step(raw, _OBSERVE_KEYS)


def _step(raw: Any, keys: frozenset[str]) -> Step:
    _object(raw, keys)
    result = raw.get("result")
    if result is not None:
        _value(result)
    process = _integer(raw["process"], 0, MAX_PROCESSES - 1, "process")
    return Step(_identifier(raw["call"], "call"), _values(raw["args"], 0, "args"), process, result)


def _steps(value: Any, place: str, check: Callable[[Any], Step]) -> tuple[Step, ...]:
    steps: list[Step] = []
    items = _list(value, 0, MAX_STEPS, place)
    try:
        for raw in items:
            steps.append(check(raw))
    except Malformed as error:
        raise error.within(f"{place}[{len(steps)}]") from None
    return tuple(steps)


def check_values(value: Any) -> tuple[Any, ...]:
    """The results of an outcome, or its observation; raises Malformed."""
    items = _list(value, 0, MAX_STEPS)
    for item in items:
        _value(item)
    return tuple(items)


def check_call(raw: Any, core: int) -> PlacedCall:
    """The call under test that runs on this core; raises Malformed."""
    _object(raw, _CALL_KEYS)
    if raw["core"] != core or type(raw["core"]) is not int:
        raise Malformed(f"call {core} runs on core {core}, got {_show(raw['core'])}", "core")
    process = _integer(raw["process"], 0, MAX_PROCESSES - 1, "process")
    thread = _integer(raw["thread"], 0, MAX_THREADS - 1, "thread")
    call = _identifier(raw["call"], "call")
    return PlacedCall(call, _values(raw["args"], 0, "args"), process, thread, core)


def check_description(level: Any, path: Any, equivalence_class: Any) -> tuple[Level, int, str]:
    """How a test was found: level, path and class; raises Malformed."""
    return _level(level), _integer(path, 0, _MAX_INTEGER, "path"), _text(equivalence_class, "class")


def _calls(value: Any) -> tuple[PlacedCall, ...]:
    calls: list[PlacedCall] = []
    items = _list(value, 1, MAX_CALLS_PER_SET, "calls")
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
    items = _list(value, wanted, wanted, "orders")
    try:
        for raw in items:
            _object(raw, _ORDER_KEYS)
            order = tuple(_integer(item, 0, calls - 1, "order") for item in _list(raw["order"], calls, calls, "order"))
            if len(set(order)) != calls or order in seen:
                raise Malformed(f"expected each of the {wanted} orders once, got {list(order)} again", "order")
            seen.add(order)
            outcomes = _list(raw["outcomes"], 1, MAX_OUTCOMES, "outcomes")
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
    _object(outcome, _OUTCOME_KEYS)
    for item in _list(outcome["results"], calls, calls, "results"):
        _value(item)
    for item in _list(outcome["observation"], observed, observed, "observation"):
        _value(item)


def read_test(raw: Any, line: bytes = b"") -> TestCase:
    """The test case of one corpus line; raises Malformed. `line` is the text that it was read from."""
    _object(raw, _TEST_KEYS)
    calls = _calls(raw["calls"])
    setup = _steps(raw["setup"], "setup", check_setup_step)
    observe = _steps(raw["observe"], "observe", check_observe_step)
    orders = _orders(raw["orders"], len(calls), len(observe))
    set_name = "-".join([call.call for call in calls])
    expected = id_of(set_name, _content_in(line))
    if raw["id"] != expected:  # or a line with spaces, or with keys in another order
        expected = id_of(set_name, encode({key: raw[key] for key in ("calls", "setup", "observe", "orders")}).encode())
    if raw["id"] != expected:
        raise Malformed(
            f"the content gives {expected}, got {_show(raw['id'])}: the file was changed, or another version of "
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


def read_header(raw: Any, schema_version: int, max_tests: int) -> tuple[str, Level, str, int, dict[str, int]]:
    """Interface, level, model hash, number of tests and sets without set-up of a header line; raises Malformed."""
    if type(raw) is not dict or raw.get("kind") != "corpus":
        raise Malformed('expected the header {"schema_version": ..., "kind": "corpus", ...}')
    version = raw.get("schema_version")
    if version != schema_version or type(version) is not int:
        raise Malformed(
            f"this version of commutant reads {schema_version}, got {_show(version)}: make the corpus again with "
            "`commutant generate`",
            "schema_version",
        )
    keys = {"schema_version", "kind", "interface", "level", "model", "tests"} | (raw.keys() & {"without_setup"})
    _object(raw, frozenset(keys))
    model = raw["model"]
    if type(model) is not str or _HASH.fullmatch(model) is None:
        raise Malformed(f"expected a hash, got {_show(model)}", "model")
    without_setup = raw.get("without_setup", {})
    if type(without_setup) is not dict:
        raise Malformed(f"expected an object, got {_show(without_setup)}", "without_setup")
    for name, count in without_setup.items():
        _integer(count, 0, _MAX_INTEGER, f"without_setup.{_show(_text(name, 'without_setup', 512))}")
    interface = _text(raw["interface"], "interface", 128)
    if not interface:
        raise Malformed("expected the name of an interface, got ''", "interface")
    count = _integer(raw["tests"], 0, max_tests, "tests")
    return interface, _level(raw["level"]), model, count, without_setup
