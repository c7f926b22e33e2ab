"""The checks of one corpus line: from JSON that anybody may have written to a `TestCase` that can be trusted.

Written by hand rather than with a schema library, because 20,000 tests have to be read in about a second; a test
compares what is accepted here with docs/schemas/corpus.schema.json. The limits keep a hostile file from making a huge
set-up, a file name that leaves the test's directory, or a text that plays with the terminal.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

from commutant.testgen.testcase import Order, Outcome, PlacedCall, Step, TestCase

LEVELS = ("path", "conflict", "full")
MAX_CALLS = 6
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
_HASH = re.compile(r"[0-9A-Za-z._:+-]{1,128}", re.ASCII)
_MIN_INTEGER = -(1 << 63)
_MAX_INTEGER = (1 << 64) - 1

_TEST_KEYS = frozenset(("id", "level", "path", "class", "calls", "setup", "observe", "orders"))
_CALL_KEYS = frozenset(("call", "args", "process", "thread", "core"))
_SETUP_KEYS = frozenset(("call", "args", "process", "result"))
_OBSERVE_KEYS = frozenset(("call", "args", "process"))
_ORDER_KEYS = frozenset(("order", "outcomes"))
_OUTCOME_KEYS = frozenset(("results", "observation"))
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


class Malformed(ValueError):
    """What in a line is not as it must be: the place within the line, what was expected and what stands there."""


def _show(value: object) -> str:
    """A foreign value in a message: short, on one line and in plain characters."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _object(value: Any, keys: frozenset[str], where: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise Malformed(f"{where}: expected an object, got {_show(value)}")
    if value.keys() != keys:
        missing, unknown = sorted(keys - value.keys()), sorted(value.keys() - keys)
        problem = f"the key {missing[0]!r} is missing" if missing else f"the key {_show(unknown[0])} is not known"
        raise Malformed(f"{where}: {problem}")
    return value


def _list(value: Any, where: str, low: int, high: int) -> list[Any]:
    if type(value) is not list or not low <= len(value) <= high:
        got = f"{len(value)} items" if type(value) is list else _show(value)
        raise Malformed(f"{where}: expected a list of {low} to {high} items, got {got}")
    return value


def _integer(value: Any, where: str, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise Malformed(f"{where}: expected an integer from {low} to {high}, got {_show(value)}")
    return value


def _identifier(value: Any, where: str) -> str:
    if type(value) is not str or _IDENTIFIER.fullmatch(value) is None:
        raise Malformed(f"{where}: expected a name of letters, digits and underscores, got {_show(value)}")
    return value


def _text(value: Any, where: str, high: int = MAX_TEXT_CHARACTERS) -> str:
    if type(value) is not str or len(value) > high or not value.isprintable():
        raise Malformed(f"{where}: expected a printable text of at most {high} characters, got {_show(value)}")
    return value


def _level(value: Any, where: str) -> str:
    if value not in LEVELS or type(value) is not str:
        raise Malformed(f"{where}: expected one of {', '.join(LEVELS)}, got {_show(value)}")
    return value


def _name(value: str, where: str) -> None:
    """Checks a value of a sort that the target names freely, such as a file name."""
    if (
        not value.isprintable()
        or not value
        or "/" in value
        or value in (".", "..")
        or len(value) > MAX_NAME_BYTES
        or len(value.encode()) > MAX_NAME_BYTES
    ):
        raise Malformed(
            f"{where}: expected a name of 1 to {MAX_NAME_BYTES} printable bytes without '/', not '.' or '..', "
            f"got {_show(value)}"
        )


def _value(value: Any, where: str, names: bool, depth: int = 0) -> None:
    """Checks a value of the table "Values" in docs/ARCHITECTURE.md; plain strings only where `names` says so."""
    kind = type(value)
    if kind is int:
        if not _MIN_INTEGER <= value <= _MAX_INTEGER:
            raise Malformed(f"{where}: expected an integer of 64 bits, got {_show(value)}")
    elif value is None or kind is bool:
        return
    elif kind is str and names:
        _name(value, where)
    elif kind is dict and depth < MAX_VALUE_DEPTH:
        _tagged(value, where, names, depth)
    else:
        raise Malformed(f"{where}: expected a value, got {_show(value)}")


def _tagged(value: dict[str, Any], where: str, names: bool, depth: int) -> None:
    keys = value.keys()
    if keys == {"errno"}:
        if type(value["errno"]) is not str or _ERRNO.fullmatch(value["errno"]) is None:
            raise Malformed(f"{where}.errno: expected the name of an error such as ENOENT, got {_show(value['errno'])}")
    elif keys == {"sort", "id"}:
        _identifier(value["sort"], f"{where}.sort")
        _integer(value["id"], f"{where}.id", 0, _MAX_INTEGER)
    elif keys == {"time"}:
        _integer(value["time"], f"{where}.time", _MIN_INTEGER, _MAX_INTEGER)
    elif keys == {"struct"} and type(value["struct"]) is dict and len(value["struct"]) <= MAX_ARGUMENTS:
        for name, item in value["struct"].items():
            _identifier(name, f"{where}.struct")
            _value(item, f"{where}.struct.{name}", names, depth + 1)
    elif keys == {"seq"}:
        for item in _list(value["seq"], f"{where}.seq", 0, MAX_OUTCOMES):
            _value(item, f"{where}.seq", names, depth + 1)
    else:
        raise Malformed(f"{where}: expected an errno, sort, time, struct or seq, got {_show(value)}")


def _arguments(value: Any, where: str) -> dict[str, Any]:
    if type(value) is not dict or len(value) > MAX_ARGUMENTS:
        raise Malformed(f"{where}: expected an object of at most {MAX_ARGUMENTS} arguments, got {_show(value)}")
    for name, item in value.items():
        if _IDENTIFIER.fullmatch(name) is None:
            _identifier(name, where)
        _value(item, f"{where}.{name}", names=True)
    return value


def _steps(value: Any, where: str, keys: frozenset[str]) -> tuple[Step, ...]:
    steps = []
    for index, raw in enumerate(_list(value, where, 0, MAX_STEPS)):
        here = f"{where}[{index}]"
        _object(raw, keys, here)
        result = raw.get("result")
        if result is not None:
            _value(result, f"{here}.result", names=False)
        process = _integer(raw["process"], f"{here}.process", 0, MAX_PROCESSES - 1)
        steps.append(Step(_identifier(raw["call"], f"{here}.call"), _arguments(raw["args"], here), process, result))
    return tuple(steps)


def _calls(value: Any) -> tuple[PlacedCall, ...]:
    calls = []
    for index, raw in enumerate(_list(value, "calls", 1, MAX_CALLS)):
        here = f"calls[{index}]"
        _object(raw, _CALL_KEYS, here)
        if raw["core"] != index or type(raw["core"]) is not int:
            raise Malformed(f"{here}.core: call {index} runs on core {index}, got {_show(raw['core'])}")
        process = _integer(raw["process"], f"{here}.process", 0, MAX_PROCESSES - 1)
        thread = _integer(raw["thread"], f"{here}.thread", 0, MAX_THREADS - 1)
        call = _identifier(raw["call"], f"{here}.call")
        calls.append(PlacedCall(call, _arguments(raw["args"], here), process, thread, index))
    return tuple(calls)


def _orders(value: Any, calls: int, observed: int) -> tuple[Order, ...]:
    wanted = math.factorial(calls)
    orders = []
    seen = set()
    for index, raw in enumerate(_list(value, "orders", wanted, wanted)):
        here = f"orders[{index}]"
        _object(raw, _ORDER_KEYS, here)
        order = tuple(_integer(item, f"{here}.order", 0, calls - 1) for item in _list(raw["order"], here, calls, calls))
        if len(set(order)) != calls or order in seen:
            raise Malformed(f"{here}.order: expected each of the {wanted} orders once, got {list(order)} again")
        seen.add(order)
        outcomes = []
        for outcome in _list(raw["outcomes"], f"{here}.outcomes", 1, MAX_OUTCOMES):
            _object(outcome, _OUTCOME_KEYS, f"{here}.outcomes")
            results = _list(outcome["results"], f"{here}.outcomes.results", calls, calls)
            observation = _list(outcome["observation"], f"{here}.outcomes.observation", observed, observed)
            for item in results:
                _value(item, f"{here}.outcomes.results", names=False)
            for item in observation:
                _value(item, f"{here}.outcomes.observation", names=False)
            outcomes.append(Outcome(tuple(results), tuple(observation)))
        orders.append(Order(order, tuple(outcomes)))
    return tuple(orders)


def read_test(raw: Any) -> TestCase:
    """The test case of one corpus line; raises Malformed."""
    _object(raw, _TEST_KEYS, "test")
    calls = _calls(raw["calls"])
    setup = _steps(raw["setup"], "setup", _SETUP_KEYS)
    observe = _steps(raw["observe"], "observe", _OBSERVE_KEYS)
    orders = _orders(raw["orders"], len(calls), len(observe))
    test_id = raw["id"]
    content = {"calls": raw["calls"], "setup": raw["setup"], "observe": raw["observe"], "orders": raw["orders"]}
    digits = hashlib.sha256(_CANONICAL(content).encode()).hexdigest()[:12]
    expected = f"{'-'.join(call.call for call in calls)}-{digits}"
    if test_id != expected:
        raise Malformed(f"id: the content gives {expected}, got {_show(test_id)}")
    return TestCase(
        id=expected,
        level=_level(raw["level"], "level"),
        path=_integer(raw["path"], "path", 0, _MAX_INTEGER),
        equivalence_class=_text(raw["class"], "class"),
        calls=calls,
        setup=setup,
        observe=observe,
        orders=orders,
    )


def read_header(raw: Any, schema_version: int, max_tests: int) -> tuple[str, str, str, int, dict[str, int]]:
    """Interface, level, model hash, number of tests and sets without set-up of a header line; raises Malformed."""
    if type(raw) is not dict or raw.get("kind") != "corpus":
        raise Malformed('expected the header {"schema_version": ..., "kind": "corpus", ...}')
    if raw.get("schema_version") != schema_version or type(raw["schema_version"]) is not int:
        raise Malformed(
            f"schema_version: this version of commutant reads {schema_version}, got {_show(raw.get('schema_version'))}"
        )
    keys = {"schema_version", "kind", "interface", "level", "model", "tests"} | (raw.keys() & {"without_setup"})
    _object(raw, frozenset(keys), "header")
    model = raw["model"]
    if type(model) is not str or _HASH.fullmatch(model) is None:
        raise Malformed(f"model: expected a hash, got {_show(model)}")
    without_setup = raw.get("without_setup", {})
    if type(without_setup) is not dict:
        raise Malformed(f"without_setup: expected an object, got {_show(without_setup)}")
    for name, count in without_setup.items():
        _text(name, "without_setup", 512)
        _integer(count, f"without_setup.{name}", 0, _MAX_INTEGER)
    interface = _text(raw["interface"], "interface", 128)
    if not interface:
        raise Malformed("interface: expected the name of an interface, got ''")
    count = _integer(raw["tests"], "tests", 0, max_tests)
    return interface, _level(raw["level"], "level"), model, count, without_setup
