"""Native maps: what they refuse, what Python can see of them, and that nothing of them outlives an exploration."""

from __future__ import annotations

import gc
import weakref
from typing import Annotated, Any

import pytest

from commutant.lang import Map, Range, Sort, Struct
from commutant.lang.types import describe_type
from commutant.support.errors import UsageError
from commutant.symbolic import Context, Infeasible, Literal, SymbolicMap, clone, current, explore, unknown
from commutant.symbolic.engine import install


class Name(Sort):
    """Names."""


class File(Struct):
    """A file with pages."""

    length: int
    pages: Map[int, Name]


FILES = describe_type(Map[Name, File], "files")
NUMBERS = describe_type(Map[tuple[Name, int], bool], "numbers")
NAME = describe_type(Name, "a name")


@pytest.fixture
def context() -> Any:
    """A context that is the current one."""
    one = Context()
    before = install(one)
    yield one
    install(before)


def test_a_bound_of_keys_beyond_64_bits_is_refused() -> None:
    """It was a bare OverflowError."""
    with pytest.raises(UsageError, match="the key of wide: expected bounds from"):
        describe_type(Map[Annotated[int, Range(-(2**80), None)], bool], "wide")


def test_what_is_no_key_is_refused(context: Context) -> None:
    numbers = unknown(NUMBERS, "numbers")
    name = unknown(NAME, "n")
    for key in (3, "x", None, name, (name,), (name, True), (3, name), (name, 3, 3), (name, 2.0)):
        with pytest.raises(UsageError, match=r"numbers has keys of type tuple\[Name, int\], got"):
            _ = key in numbers
    with pytest.raises(UsageError, match="of 64 bits with sign"):
        _ = (name, 1 << 64) in numbers
    assert not numbers.content.entries
    assert (name, 3) in numbers
    with pytest.raises(UsageError, match="numbers has values of type bool, got 3"):
        numbers[name, 3] = 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(numbers)
    for iterate in (len, list, SymbolicMap.keys, SymbolicMap.values, SymbolicMap.items):
        with pytest.raises(UsageError, match="a map of unknown size was iterated over"):
            iterate(numbers)


def test_a_view_says_what_it_holds_by_itself(context: Context) -> None:
    files = unknown(FILES, "files")
    name = unknown(NAME, "n")
    assert name in files
    entry = files.content.entries[0]
    assert (entry.key, entry.known, files.cells) == (name, False, [])
    assert entry.arguments == (("constant", "n"),)

    changed = files._view()
    changed[name].length = 7
    [(number, cell)] = changed.cells
    assert (number, cell.present, cell.assigned, cell.value.length) == (0, True, False, 7)
    assert files._view()[name].length is entry.value.length

    removed = changed._view()
    del removed[name]
    assert [(cell.present, cell.assigned) for _, cell in removed.cells] == [(False, True)]
    assert removed.source is changed
    assert removed.held(0) is not None and files.held(0) is None


def test_going_back_takes_entries_values_and_copies_back() -> None:
    def program(context: Context) -> tuple[Any, Any]:
        files, name = context.step(lambda: (unknown(FILES, "files"), unknown(NAME, "n")))
        seen = (len(files.content.entries), len(files.cells))
        context.step(lambda: files[name].pages.get(0))
        return seen, (len(files.content.entries), len(files.cells), len(files.value(0).pages.content.entries))

    paths = [path.result for path in explore(program) if path.feasible]
    assert paths == [((0, 0), (1, 1, 1))] * 2


def test_nothing_outlives_an_exploration() -> None:
    """Entries and contents hold each other, and the hook of a content may hold a state: only a garbage collector that
    sees into native maps ends such circles."""
    alive: list[weakref.ref[Any]] = []

    def program(context: Context) -> None:
        state = clone(File(length=0, pages=unknown(describe_type(Map[int, Name], "pages"), "pages")))
        state.pages.content.hook = lambda key, value: state is not None
        _ = 3 in state.pages
        alive.append(weakref.ref(state))

    assert len([path.feasible for path in explore(program)]) == 2
    gc.collect()
    assert [one() for one in alive] == [None, None]


def test_a_hook_is_asked_once_and_may_ask_the_map_itself(context: Context) -> None:
    asked: list[Any] = []
    files = unknown(FILES, "files")

    def hook(key: Any, value: Any) -> bool:
        asked.append(key)
        assert current().in_restriction
        return key in files and value.length == 3

    files.content.hook = hook
    name = unknown(NAME, "n")
    assert name in files and name in files._view()
    assert (asked, context.in_restriction) == ([name], False)
    with pytest.raises(Infeasible):
        files.content.hook = lambda key, value: False
        other = unknown(NAME, "m")
        context.restrict(Literal("same", name.index, other.index), False)
        _ = other in files
    assert not context.in_restriction
