"""Maps, sequences, structs and numbers of unknown content behave as dict, list, record and int do.

Random programs run twice: over unknowns, one run per path, and over the ordinary values that a path stands for. Both
must give the same results and leave the same content.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commutant.lang import Map, Seq, Sort, Struct
from commutant.lang.types import BoolType, IntType, MapType, SeqType, SortType, StructType, TupleType, Type
from commutant.support.errors import UsageError
from commutant.symbolic import BoolValue, Context, IntValue, SortValue, SymbolicMap, clone, explore, unknown
from commutant.symbolic.integers import value_of

Program = Callable[[dict[str, Any]], Any]


class Key(Sort):
    """A key."""


class Pair(Struct):
    flag: bool
    count: int


TYPES: dict[str, Type] = {
    "flags": MapType(SortType(Key), BoolType()),
    "counts": MapType(TupleType((SortType(Key), BoolType())), IntType(0, 2)),
    "numbers": MapType(IntType(), SortType(Key)),
    "pairs": MapType(SortType(Key), StructType(Pair)),
    "nested": MapType(SortType(Key), MapType(BoolType(), IntType(0, 1))),
    "items": SeqType(SortType(Key), 3),
    "pair": StructType(Pair),
    "a": SortType(Key),
    "b": SortType(Key),
    "p": BoolType(),
    "q": BoolType(),
    "i": IntType(-1, 2),
    "j": IntType(-1, 2),
}


class Concrete:
    """Ordinary values for what a path leaves behind: its decisions as they are, open flags false, integers solved."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ints = context.int_solution()

    def __call__(self, value: Any) -> Any:
        if isinstance(value, SortValue):
            return f"k{self._context.find(value.index)}"
        if isinstance(value, BoolValue):
            return self._context.bool_value(value.index) is True
        if isinstance(value, IntValue):
            if any(variable not in self._ints for variable, _ in value.linear[0]):
                self._ints = self._context.int_solution()  # the field of a struct that no one had asked for
            return value_of(value.linear, self._ints)
        if isinstance(value, tuple):
            return tuple(map(self, value))
        if isinstance(value, list):
            return Seq(map(self, value))
        if isinstance(value, Pair):
            return Pair(flag=self(value.flag), count=self(value.count))
        if isinstance(value, SymbolicMap):
            entries = enumerate(value.content.entries)
            found = ((entry.key, value.value(number)) for number, entry in entries if self._present(value, number))
            return Map({self(key): self(item) for key, item in found})
        return value

    def _present(self, view: SymbolicMap, number: int) -> bool:
        cell = view.held(number)
        if cell is not None:
            return cell.present
        presence = view.content.entries[number].presence
        return not view.cleared and presence is not False and self(presence)


def both_agree(program: Program) -> int:
    """Runs the program on every path (or a thousand), and on the ordinary values of each; the number of paths."""

    def symbolic(context: Context) -> tuple[dict[str, Any], dict[str, Any], Any]:
        initial = {name: unknown(type_, name) for name, type_ in TYPES.items()}
        state = {name: clone(value) for name, value in initial.items()}
        return initial, state, program(state)

    count = 0
    for path in itertools.islice(explore(symbolic), 1000):
        assert path.result is not None
        initial, state, result = path.result
        number_of_entries = {name: len(v.content.entries) for name, v in state.items() if isinstance(v, SymbolicMap)}
        concrete = Concrete(path.context)
        start = {
            name: concrete(value.initial() if isinstance(value, SymbolicMap) else value)
            for name, value in initial.items()
        }
        expected = program(start)
        assert concrete(result) == expected
        for name, value in state.items():
            assert concrete(value) == start[name], name
        assert number_of_entries == {
            name: len(v.content.entries) for name, v in state.items() if isinstance(v, SymbolicMap)
        }
        count += 1
    return count


KEYS = st.sampled_from("ab")
FLAGS = st.sampled_from("pq")
NUMBERS = st.sampled_from("ij")


def operations() -> st.SearchStrategy[Program]:
    """One operation on one of the containers; what it returns is part of the result."""

    def on(name: str, operation: Callable[..., Any], *arguments: st.SearchStrategy[str]) -> st.SearchStrategy[Program]:
        return st.tuples(*arguments).map(lambda names: lambda s: operation(s[name], *(s[n] for n in names)))

    def increment(pairs: Any, key: Any) -> None:
        if key in pairs:
            pairs[key].count += 1

    def put_new(nested: Any, key: Any) -> None:
        nested[key] = Map()

    def put_inner(nested: Any, key: Any, flag: Any, number: Any) -> None:
        if key in nested:
            nested[key][flag] = number

    def drop_items(items: Any, key: Any) -> None:
        items[:] = [item for item in items if item != key]

    return st.one_of(
        on("flags", lambda m, k: k in m, KEYS),
        on("flags", lambda m, k: m.get(k), KEYS),
        on("flags", lambda m, k, f: m.__setitem__(k, f), KEYS, FLAGS),
        on("flags", lambda m, k: m.pop(k, None), KEYS),
        on("flags", lambda m: m.clear()),
        on("counts", lambda m, k, f: m.get((k, f), -1), KEYS, FLAGS),
        on("counts", lambda m, k, f, n: m.__setitem__((k, f), n), KEYS, FLAGS, NUMBERS),
        on("numbers", lambda m, n, k: m.__setitem__(n, k), NUMBERS, KEYS),
        on("numbers", lambda m, n, o: n + o in m, NUMBERS, NUMBERS),
        on("numbers", lambda m, n: m.pop(n, None), NUMBERS),
        on("pairs", increment, KEYS),
        on("pairs", lambda m, k, f: m.__setitem__(k, Pair(flag=f, count=7)), KEYS, FLAGS),
        on("pairs", lambda m, k: m[k] == Pair(flag=True, count=1) if k in m else None, KEYS),
        on("nested", put_new, KEYS),
        on("nested", put_inner, KEYS, FLAGS, NUMBERS),
        on("nested", lambda m, k, f: m[k].get(f, 5) if k in m else None, KEYS, FLAGS),
        on("items", lambda s, k: s.append(k), KEYS),
        on("items", lambda s: s.pop(0) if s else None),
        on("items", lambda s, k: k in s, KEYS),
        on("items", lambda s: s[-1] if len(s) > 1 else None),
        on("items", lambda s: s.reverse()),
        on("items", drop_items, KEYS),
        on("pair", lambda r, f: setattr(r, "flag", f), FLAGS),
        on("pair", lambda r, n: setattr(r, "count", r.count - 2 * n), NUMBERS),
        on("pair", lambda r, n: r.count < n, NUMBERS),
        on("i", lambda n, o: max(n, o) - 3, NUMBERS),
        on("i", lambda n, o: (n == o, n <= o, n != o + 1, n > 2 * o, -n >= o, bool(n)), NUMBERS),
        on("p", lambda f, g: (f == g, f != g, not f, f and g), FLAGS),
        on("p", lambda f, g: (f == 1, f == 0, f == True, g == 1), FLAGS),  # noqa: E712
        on("i", lambda n: (n == True, n != False)),  # noqa: E712
        on("a", lambda k, other: (k == other, k != other, (k, 1) == (other, 1)), KEYS),
    )


@given(st.lists(operations(), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_operations_agree(steps: list[Program]) -> None:
    both_agree(lambda state: [step(state) for step in steps])


@pytest.mark.long
@given(st.lists(operations(), min_size=1, max_size=6))
@settings(max_examples=1000, deadline=None)
def test_longer_sequences_of_operations_agree(steps: list[Program]) -> None:
    both_agree(lambda state: [step(state) for step in steps])


def test_every_path_of_a_lookup_is_seen() -> None:
    lengths = both_agree(lambda s: len(s["items"]))
    assert lengths == 4
    assert both_agree(lambda s: s["flags"].get(s["a"])) == 2 * lengths
    assert both_agree(lambda s: s["a"] in s["flags"] and s["b"] in s["flags"]) == 4 * lengths


def test_a_value_fetched_before_it_is_overwritten_keeps_its_identity() -> None:
    def program(state: dict[str, Any]) -> Any:
        if state["a"] not in state["pairs"]:
            return None
        before = state["pairs"][state["a"]]
        state["pairs"][state["a"]] = Pair(flag=True, count=3)
        before.count = 9
        return (before.count, state["pairs"][state["a"]].count)

    both_agree(program)


def test_views_change_alone() -> None:
    def program(_: Context) -> None:
        view = unknown(TYPES["pairs"], "pairs")
        key = unknown(SortType(Key), "key")
        view[key] = Pair(flag=True, count=1)
        other = clone(view)
        other[key].count = 5
        assert view[key].count == 1
        del other[key]
        assert key in view and key not in other
        assert view != other

    assert len(list(explore(program))) == 1


def unknown_values(types: dict[str, Type]) -> Iterator[dict[str, Any]]:
    """Unknowns of these types, on the first path."""
    for path in explore(lambda _: {name: unknown(type_, name) for name, type_ in types.items()}):
        assert path.result is not None
        yield path.result


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "hash of a key": (lambda s: {s["a"]: 1}, "key of a Python dict or set"),
    "hash of a flag": (lambda s: {s["p"]}, "key of a Python dict or set"),
    "hash of a number": (lambda s: {s["i"]}, "key of a Python dict or set"),
    "index": (lambda s: [1, 2][s["i"]], "where Python needs a number"),
    "product": (lambda s: s["i"] * s["j"], "multiplied"),
    "truth of a key": (lambda s: not s["a"], "used as a truth value"),
    "iteration": (lambda s: list(s["flags"]), "iterated over"),
    "items": (lambda s: s["flags"].items(), "iterated over"),
    "length": (lambda s: len(s["flags"]), "iterated over"),
    "two maps": (lambda s: s["flags"] == s["pairs"], "two different maps were compared"),
    "wrong key": (lambda s: s["p"] in s["flags"], "flags has keys of type Key"),
    "wrong value": (lambda s: s["flags"].__setitem__(s["a"], 3), "flags has values of type bool, got 3"),
    "comparison with a string": (lambda s: s["i"] < "x", "compared with 'x'"),
}


@pytest.mark.parametrize("operation, expected", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_analysed_is_refused(operation: Callable[[dict[str, Any]], Any], expected: str) -> None:
    values = next(unknown_values(TYPES))
    with pytest.raises(UsageError, match=expected):
        operation(values)
