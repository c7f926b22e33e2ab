"""Models that no one can test or analyse: each mistake is one sentence with file and line, as a command shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commutant.analyzer import analyze
from commutant.lang import load_interface
from commutant.support import UsageError
from commutant.testgen import generate

MODEL = '''
from __future__ import annotations

from typing import Annotated

from commutant.lang import (
    Capacity, Errno, Interface, Map, Range, Seq, Set, Sort, Struct, call, choose, invoke, unused, well_formed
)


class Wide(Struct):
    """A record with a field that cannot be."""

    count: Annotated[int, Range(0, 2**70)]


class Loop(Struct):
    """A record without an end."""

    inner: Loop


class Key(Sort):
    """A key."""


class Block(Sort, opaque=True):
    """A block."""


class Model(Interface):
    """A model."""

    entries: Map[Key, int]
    keys: Set[Key]
    blocks: Map[Block, int]

    @call
    def put(self, key: Key, value: int) -> None:
        self.entries[key] = value

    @call
    def get(self, key: Key) -> int | Errno:
        return self.entries.get(key, Errno.ENOENT)

    @call
    def alloc(self, size: int) -> Block | Errno:
        return Errno.ENOMEM

'''

OF_SET_UPS = {
    "leads elsewhere": (
        "def setup(self):\n    return [invoke('put', key=key, value=7) for key in self.entries]",
        r"Model\.setup: its calls lead to another state.*wanted: entries.*reached: entries",
    ),
    "returns None": ("def setup(self):\n    return None", r"Model\.setup returned None: no calls build the state"),
    "never ends": (
        "def setup(self):\n    while True:\n        yield invoke('put', key='a', value=1)",
        r"Model\.setup: more calls than 10,000: expected a list that ends",
    ),
    "handle of a call that failed": (
        "def setup(self):\n    block = yield invoke('alloc', size=1)\n    yield invoke('put', key=block, value=1)",
        r"Model\.setup: <result of step 0> was used as a handle, and that step failed with ENOMEM",
    ),
    "well-formedness that changes the state": (
        "@well_formed\ndef tidy(self):\n    self.entries.clear()\n    return True",
        r"Model\.tidy: it changes the state: expected a condition that only looks",
    ),
}

OF_CALLS = {
    "choice from nothing": (
        "@call\ndef drop(self) -> None:\n    self.keys.remove(choose(self.keys))",
        r"Model\.drop: choose\(\) from nothing: expected a test before",
    ),
    "well-formedness that nothing satisfies": (
        "@well_formed\ndef never(self):\n    return len(self.entries) > 3 and len(self.entries) < 2",
        r"Model\.never: no initial state is well-formed for put, put",
    ),
    "order of a sort without one": (
        "@call\ndef before(self, a: Key, b: Key) -> bool:\n    return a < b",
        r"Model\.before: a Key was compared by order: expected == or !=, or a sort with an order",
    ),
    "a number in a set of keys": (
        "@call\ndef add(self, key: Key) -> None:\n    self.keys.add(3)",
        r"Model\.add: keys has keys of type Key, got 3",
    ),
    "another sort in a set of keys": (
        "@call\ndef has(self, block: Block) -> bool:\n    return block in self.keys",
        r"Model\.has: keys has keys of type Key, got <Block",
    ),
    "types mixed in a literal": (
        "@call\ndef add(self, key: Key) -> None:\n    self.keys = {key, 3}",
        r"Model\.add: an unknown value was used as a key of a Python dict or set",
    ),
}


OF_ANNOTATIONS = {
    "bounds beyond 64 bits": (
        "tally: Annotated[int, Range(0, 2**70)]",
        r"Model\.tally: expected bounds from -2\^63 to 2\^63 - 1, or None; got Range\(0, 1180591620717411303424\)",
    ),
    "bounds of an argument": (
        "@call\ndef add(self, by: Annotated[int, Range(-(2**64), None)]) -> None:\n    pass",
        r"Model\.add, parameter 'by': expected bounds from -2\^63",
    ),
    "bounds of a field": ("wide: Wide", r"Wide\.count: expected bounds from -2\^63"),
    "bounds that are no numbers": (
        "tally: Annotated[int, Range('a', 2)]",
        r"Model\.tally: expected bounds from -2\^63",
    ),
    "bounds in the wrong order": (
        "tally: Annotated[int, Range(5, 2)]",
        r"Model\.tally: expected the lower bound first, got Range\(5, 2\), which holds nothing",
    ),
    "capacity below 0": (
        "row: Annotated[Seq[int], Capacity(-1)]",
        r"Model\.row: expected a capacity from 0 to 1000, got -1",
    ),
    "no type of a model": ("row: list", r"Model\.row: expected bool, int, a tuple, or a Sort"),
    "a type that contains itself": ("loop: Loop", r"Loop\.inner: Loop contains itself: expected a type that does not"),
}


def written(folder: Path, method: str) -> str:
    path = folder / "model.py"
    path.write_text(MODEL + "\n".join(f"    {line}" for line in method.splitlines()) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("method", "expected"), OF_SET_UPS.values(), ids=OF_SET_UPS)
def test_a_class_that_has_no_test_says_why(tmp_path: Path, method: str, expected: str) -> None:
    """Either in the list of what has none, or as the error where nothing has one."""
    model = load_interface(written(tmp_path, method))
    try:
        found = [str(one) for of_set in generate(model, ["put", "get"]).untested.values() for one in of_set]
    except UsageError as error:
        found = [str(error)]
    (text,) = set(found)
    assert_sentence(text, expected)


@pytest.mark.parametrize(("method", "expected"), OF_CALLS.values(), ids=OF_CALLS)
def test_a_model_that_cannot_be_analysed_says_why(tmp_path: Path, method: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        analyze(load_interface(written(tmp_path, method)))
    assert_sentence(str(caught.value), expected)


@pytest.mark.parametrize(("annotation", "expected"), OF_ANNOTATIONS.values(), ids=OF_ANNOTATIONS)
def test_an_annotation_that_cannot_be_used_says_why(tmp_path: Path, annotation: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_interface(written(tmp_path, annotation))
    assert_sentence(str(caught.value), expected)


def assert_sentence(text: str, expected: str) -> None:
    assert re.search(rf"model\.py:\d+: {expected}", text), text
    assert "\n" not in text and "Traceback" not in text
