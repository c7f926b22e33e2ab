"""Values that the implementation picks as arguments: tests take them from what their set-ups returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import pytest

from commutant.lang import Errno, Interface, Invocation, Map, Range, Sort, Struct, call, invoke, unused
from commutant.support import UsageError
from commutant.testgen import TestCase, generate, untestable_beforehand


class Block(Sort, opaque=True):
    """A block of memory."""


class Heap(Interface):
    """Blocks by handle. There is no set-up: the calls themselves build every state."""

    blocks: Map[Block, int]

    @call
    def alloc(self, size: Annotated[int, Range(1, None)]) -> Block:
        block = unused(Block)
        self.blocks[block] = size
        return block

    @call
    def free(self, block: Block) -> Errno | int:
        if block not in self.blocks:
            return Errno.EINVAL
        del self.blocks[block]
        return 0

    @call
    def size(self, block: Block) -> Errno | int:
        return self.blocks.get(block, Errno.EINVAL)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        for block in self.blocks:
            yield invoke("size", block=block)


def results(test: TestCase) -> set[str]:
    return {repr(one) for order in test.orders for outcome in order.outcomes for one in outcome.results}


def test_each_class_of_handles_has_a_test() -> None:
    corpus = generate(Heap)
    assert corpus.has_searched and not corpus.untested
    by_set: dict[str, set[str]] = {}
    for test in corpus.tests:
        by_set.setdefault(test.set_name, set()).update(results(test))
    einval = repr({"errno": "EINVAL"})
    assert by_set["free-free"] == {"0", einval}
    assert einval in by_set["size-size"] and len(by_set["size-size"]) > 1


def test_arguments_and_observations_name_what_the_set_up_returned() -> None:
    for test in generate(Heap).tests:
        told = [step.result for step in test.setup]
        for given in (*test.calls, *test.observe, *test.setup):
            handles = [value for value in given.args.values() if isinstance(value, dict)]
            assert all(handle in told for handle in handles)


def test_a_closed_handle_comes_from_a_set_up_that_closed_it() -> None:
    tests = [test for test in generate(Heap, ["free", "free"]).tests if results(test) == {repr({"errno": "EINVAL"})}]
    assert tests
    assert all([step.call for step in test.setup][-1] == "free" for test in tests)


class Opened(Struct):
    """What open returns."""

    handle: Block
    generation: int


class Files(Heap):
    """A set-up that uses a part of what a step of it returned."""

    @call
    def open(self) -> Opened:
        block = unused(Block)
        self.blocks[block] = 0
        return Opened(handle=block, generation=0)

    @call
    def write(self, block: Block, size: int) -> Errno | int:
        if block not in self.blocks:
            return Errno.EBADF
        self.blocks[block] = size
        return 0

    def setup(self) -> Iterator[Invocation]:
        for size in self.blocks.values():
            opened = yield invoke("open")
            yield invoke("write", block=opened.handle, size=size)


def test_a_set_up_uses_what_its_steps_returned() -> None:
    corpus = generate(Files, ["write", "size"])
    assert corpus.tests and not corpus.has_searched and not corpus.untested
    steps = [step.call for test in corpus.tests for step in test.setup]
    assert {"open", "write"} <= set(steps)


class Failing(Files):
    """Uses the handle of a call that failed."""

    def setup(self) -> Iterator[Invocation]:
        failed = yield invoke("size", block=None)
        yield invoke("free", block=failed)


def test_a_handle_of_a_call_that_failed() -> None:
    with pytest.raises(
        UsageError,
        match=r"test_handles.py:\d+: Failing.setup: <result of step 0> was used as a handle, .* failed with EINVAL",
    ):
        generate(Failing, ["size", "size"])


class Orphans(Interface):
    """Takes handles that no one hands out."""

    blocks: Map[Block, int]

    @call
    def size(self, block: Block) -> Errno | int:
        return self.blocks.get(block, Errno.EINVAL)


def test_handles_that_nobody_hands_out_are_told_beforehand() -> None:
    assert untestable_beforehand(Heap) == untestable_beforehand(Files) == []
    (warning,) = untestable_beforehand(Orphans)
    assert warning.startswith("size takes a Block, which the implementation picks and no call returns")
