"""Models on ordinary values: what an author writes is what runs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import pytest

from commutant.interfaces.figure4 import Figure4, Inode, Inum
from commutant.lang import (
    SHIPPED,
    Capacity,
    Errno,
    Interface,
    Map,
    Process,
    Range,
    Seq,
    Sort,
    Struct,
    call,
    choose,
    load_interface,
    model_hash,
    setup_call,
    unused,
)
from commutant.lang.types import (
    BoolType,
    IntType,
    MapType,
    OpaqueValue,
    SeqType,
    SortType,
    StructType,
    TupleType,
    describe_type,
)
from commutant.support.errors import UsageError


class Key(Sort):
    """A key."""


class Ticket(Sort, opaque=True):
    """A number that the implementation picks."""


class Record(Struct):
    flag: bool
    count: Annotated[int, Range(2, 5)]


class Example(Interface):
    """One of each, with a constant that is no state."""

    SIZE: ClassVar[int] = 3
    record: Record
    numbers: Map[Key, int]
    items: Annotated[Seq[Key], Capacity(3)]
    pair: tuple[bool, int]
    limit: int = 7

    @call
    def first(self, process: Process, key: Key, count: Annotated[int, Range(0, 1)]) -> int:
        return self.numbers.get(key, self.limit)

    @setup_call
    def prepare(self) -> None:
        self.numbers.clear()


class More(Example):
    interface_name = "more-of-it"
    extra: bool

    @call
    def second(self) -> None:
        self.extra = True


def test_figure4_runs_on_ordinary_values() -> None:
    state: Any = Figure4()
    state.names = Map({"a": "i", "b": "j"})
    state.inodes = Map({"i": Inode(nlink=1), "j": Inode(nlink=1)})
    assert state.rename("c", "a") is Errno.ENOENT
    assert state.rename("a", "a") == 0
    assert state.rename("a", "b") == 0
    assert state.names == {"b": "i"}
    assert state.inodes == {"i": Inode(nlink=1), "j": Inode(nlink=0)}


def test_an_empty_state_holds_zeros_and_what_the_author_gave() -> None:
    state = Example()
    assert state.record == Record(flag=False, count=2)
    assert (state.numbers, state.items, state.pair, state.limit) == ({}, [], (False, 0), 7)
    assert not hasattr(Example, "_record")
    state.items.append(Key())
    assert Example().items == []


def test_state_types_are_the_annotations_in_order() -> None:
    assert Example.state_types() == {
        "record": StructType(Record),
        "numbers": MapType(SortType(Key), IntType()),
        "items": SeqType(SortType(Key), 3),
        "pair": TupleType((BoolType(), IntType())),
        "limit": IntType(),
    }
    assert list(More.state_types()) == [*Example.state_types(), "extra"]


def test_calls_are_those_of_the_class_and_its_bases() -> None:
    assert Example.call_names() == ("first",)
    assert More.call_names() == ("first", "second")
    assert Example.signature("prepare").parameters == {}
    signature = Example.signature("first")
    assert list(signature.parameters) == ["process", "key", "count"]
    assert signature.process_parameter == "process"
    assert signature.parameters["count"] == IntType(0, 1)
    assert More.signature("second").process_parameter is None
    with pytest.raises(UsageError, match=r"example has no call 'third'; it has first"):
        Example.signature("third")


async def _later(self: Interface) -> int:
    return 0


def test_a_call_is_no_coroutine() -> None:
    """Its result was called wrong, and Python warned of a coroutine that no one awaited."""
    model = type("Late", (Interface,), {"wait": call(_later)})
    with pytest.raises(
        UsageError, match=r"test_interface\.py:\d+: Late\.wait is async: expected a method that returns"
    ):
        model.call_names()


def test_names_on_the_command_line() -> None:
    assert (Example.interface_name, More.interface_name) == ("example", "more-of-it")
    for name in SHIPPED:
        assert load_interface(name).interface_name == name


def test_records() -> None:
    record = Record(flag=True)
    assert (record.flag, record.count) == (True, 2)
    assert record != Record() and record != 3
    assert repr(record) == "Record(flag=True, count=2)"
    with pytest.raises(TypeError, match=r"unhashable"):
        hash(record)
    with pytest.raises(TypeError, match=r"Record has no field 'colour'"):
        Record(colour=1)
    with pytest.raises(AttributeError, match=r"Record has no field 'colour'"):
        _ = record.colour


@pytest.mark.parametrize(
    "annotation", [str, float, list[int], dict[Key, int], Map, Seq, tuple, tuple[int, ...], 3, None]
)
def test_what_is_no_type_of_a_model(annotation: Any) -> None:
    with pytest.raises(UsageError, match=r"^here: expected bool, int, a tuple, or a Sort"):
        describe_type(annotation, "here")


def test_maps_on_ordinary_values() -> None:
    numbers: Map[Any, int] = Map({0: 5, 1: 6, 3: 7})
    assert numbers.lowest_absent() == 2
    assert Map({("p", 0): 1, ("q", 1): 1}).lowest_absent("p") == 1
    assert numbers.touched() == [(0, 5), (1, 6), (3, 7)]
    assert numbers.equal_where(Map({0: 5, 9: 9}), lambda key: key == 0 or key > 9, -1)
    assert not numbers.equal_where(Map({0: 5}), lambda key: key < 3, -1)


def test_choices_without_an_oracle() -> None:
    assert choose(bool) is False
    assert choose(Annotated[int, Range(2, 9)], lambda value: value > 4) == 5
    first, second = unused(Inum), unused(Inum)
    assert isinstance(first, OpaqueValue)
    assert first != second
    with pytest.raises(LookupError):
        choose(Annotated[int, Range(0, 3)], lambda value: value > 3)
    with pytest.raises(LookupError):
        choose(int)


def test_the_hash_of_a_model_follows_its_text(tmp_path: Any) -> None:
    text = "from commutant.lang import Interface, call\nclass M(Interface):\n    @call\n    def f(self): return {}\n"
    hashes = set()
    for number, result in enumerate((1, 1, 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "m.py").write_text(text.format(result))
        hashes.add(model_hash(load_interface(str(folder / "m.py"))))
    assert len(hashes) == 2
    assert model_hash(Example) != model_hash(load_interface("names"))
