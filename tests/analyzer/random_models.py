"""Small models at random: classes from a grammar of statements over every kind of state and argument.

A model is drawn as text, so that a failure shows a class that can be pasted into a file. Reads of maps are guarded, as
an author would; a call returns one kind besides errors.
"""

from __future__ import annotations

import random
import textwrap
from typing import Annotated, Any

from hypothesis import strategies as st

from commutant.lang import Capacity, Errno, Interface, Map, Range, Seq, Sort, Struct, call, choose, unused


class Key(Sort):
    """A key."""


class Val(Sort, opaque=True):
    """A value that the implementation picks."""


class Rec(Struct):
    """A record."""

    flag: bool
    count: Annotated[int, Range(0, 2)]


KEYS = ["k0", "k1", "k2"]
VALS = ["v0", "v1"]
DOMAINS = {"Key": KEYS, "Val": VALS}
COUNTS = range(3)

ATTRIBUTES = {
    "flag": "bool",
    "count": "Annotated[int, Range(0, 2)]",
    "last": "Key",
    "rec": "Rec",
    "pair": "tuple[Key, bool]",
    "items": "Annotated[Seq[Key], Capacity(2)]",
    "vals": "Map[Key, Val]",
    "recs": "Map[Key, Rec]",
    "table": "Map[tuple[Key, bool], bool]",
    "numbers": "Map[int, Key]",
    "nested": "Map[Key, Map[bool, Key]]",
}
PARAMETERS = {"k": "Key", "v": "Val", "b": "bool", "i": "Annotated[int, Range(0, 2)]", "r": "Rec"}
NAMESPACE: dict[str, Any] = {
    **{t.__name__: t for t in (Interface, Errno, Map, Seq, Range, Capacity, Key, Val, Rec)},
    "Annotated": Annotated,
    "call": call,
    "choose": choose,
    "unused": unused,
}


class Text:
    """Draws the text of one call, given the attributes that the model has."""

    def __init__(self, draw: st.DrawFn, attributes: list[str], parameters: list[str]) -> None:
        self._draw = draw
        self._have = {*attributes, *parameters}

    def _one_of(self, options: list[tuple[str, str]], always: list[str]) -> str:
        """One of the texts whose requirement is met."""
        return self._draw(st.sampled_from([*always, *(text for needs, text in options if needs in self._have)]))

    def key(self, depth: int = 1) -> str:
        options = [
            ("k", "k"),
            ("last", "self.last"),
            ("pair", "self.pair[0]"),
            ("items", "(self.items[0] if self.items else k)"),
            ("numbers", f"self.numbers.get({self.integer(0)}, k)"),
        ]
        if depth:
            inner = self.key(0)
            options.append(
                ("nested", f"(self.nested[{inner}].get({self.boolean(0)}, k) if {inner} in self.nested else k)")
            )
        return self._one_of(options, ["k"])

    def value(self) -> str:
        return self._one_of([("vals", f"self.vals.get({self.key()}, v)")], ["v"])

    def integer(self, depth: int = 1) -> str:
        options = [("i", "i"), ("count", "self.count"), ("rec", "self.rec.count"), ("items", "len(self.items)")]
        options.append(("r", "r.count"))
        if depth:
            key = self.key(0)
            options.append(("recs", f"(self.recs[{key}].count if {key} in self.recs else 0)"))
            sum_of = f"({self.integer(0)} {self._draw(st.sampled_from(['+', '-', '- 2 *']))} {self.integer(0)})"
            return self._one_of(options, ["1", sum_of])
        return self._one_of(options, ["1"])

    def boolean(self, depth: int = 1) -> str:
        options = [("b", "b"), ("flag", "self.flag"), ("rec", "self.rec.flag"), ("pair", "self.pair[1]")]
        if not depth:
            return self._one_of(options, ["True"])
        key = self.key()
        options += [
            ("vals", f"{key} in self.vals"),
            ("recs", f"({key} in self.recs and self.recs[{key}].flag)"),
            ("table", f"self.table.get(({key}, {self.boolean(0)}), False)"),
            ("numbers", f"{self.integer()} in self.numbers"),
            ("items", f"{key} in self.items"),
            ("rec", "self.rec == r" if "r" in self._have else "self.rec.flag"),
            ("v", f"{self.value()} == {self.value()}"),
        ]
        comparison = self._draw(st.sampled_from(["<", "<=", "==", "!="]))
        return self._one_of(
            options,
            [
                f"{key} == {self.key()}",
                f"{self.integer()} {comparison} {self.integer()}",
                f"not {self.boolean(0)}",
                f"({self.boolean(0)} and {self.boolean(0)})",
            ],
        )

    def statement(self, depth: int = 1) -> str:
        key = self.key()
        choice = f"choose(Annotated[int, Range(0, 2)], lambda x: x != {self.integer()})"
        options = [
            ("flag", f"self.flag = {self.boolean()}"),
            ("flag", "self.flag = choose(bool)"),
            ("count", f"self.count = {self.integer()}"),
            ("count", f"self.count = choose(Annotated[int, Range(0, 2)], lambda x: x <= {self.integer()})"),
            ("last", f"self.last = {key}"),
            ("last", f"self.last = choose(Key, lambda x: x != {key})"),
            ("rec", f"self.rec.count += {self.integer(0)}"),
            ("rec", f"self.rec = Rec(flag={self.boolean(0)}, count={self.integer(0)})"),
            ("rec", "self.rec = r" if "r" in self._have else "self.rec.flag = False"),
            ("pair", f"self.pair = ({key}, {self.boolean(0)})"),
            ("items", f"self.items.append({key})"),
            ("items", "self.items.reverse()"),
            ("items", f"self.items[:] = [x for x in self.items if x != {key}]"),
            ("vals", f"self.vals[{key}] = {self.value()}"),
            ("vals", f"self.vals[{key}] = unused(Val)"),
            ("vals", f"self.vals.pop({key}, None)"),
            ("recs", f"self.recs[{key}] = Rec(flag={self.boolean(0)}, count={self.integer(0)})"),
            ("recs", f"if {key} in self.recs: self.recs[{key}].count = {self.integer(0)}"),
            ("recs", f"if {key} in self.recs: del self.recs[{key}]"),
            ("table", f"self.table[{key}, {self.boolean(0)}] = {self.boolean(0)}"),
            ("numbers", f"self.numbers[{self.integer()}] = {key}"),
            ("numbers", f"self.numbers.pop({self.integer()}, None)"),
            ("numbers", f"self.numbers[self.numbers.lowest_absent()] = {key}"),
            ("numbers", f"self.numbers.pop({choice}, None)"),
            ("nested", f"if {key} in self.nested: self.nested[{key}][{self.boolean(0)}] = {self.key(0)}"),
            ("nested", f"self.nested.pop({key}, None)"),
        ]
        if depth:
            first, second = self.statement(0), self.statement(0)
            branch = f"if {self.boolean()}:\n{textwrap.indent(first, '    ')}\nelse:\n{textwrap.indent(second, '    ')}"
            return self._one_of([*options, ("k", branch)], ["pass"])
        return self._one_of(options, ["pass"])

    def end(self) -> str:
        result = self._draw(
            st.sampled_from(
                ["None", self.boolean(), self.integer(), self.key(), self.value() if "v" in self._have else "0"]
            )
        )
        if self._draw(st.booleans()):
            return f"if {self.boolean()}:\n    return Errno.EAGAIN\nreturn {result}"
        return f"return {result}"


@st.composite
def model_texts(draw: st.DrawFn) -> str:
    """The text of a model with two calls."""
    attributes = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), min_size=1, max_size=2, unique=True))
    lines = ["class Model(Interface):", *(f"    {name}: {ATTRIBUTES[name]}" for name in attributes)]
    for name in ("f", "g"):
        parameters = ["k", *draw(st.lists(st.sampled_from(["b", "i", "r"]), max_size=2, unique=True))]
        parameters += ["v"] if "vals" in attributes else []
        text = Text(draw, attributes, parameters)
        body = "\n".join([*(text.statement() for _ in range(draw(st.integers(1, 2)))), text.end()])
        signature = ", ".join(["self", *(f"{parameter}: {PARAMETERS[parameter]}" for parameter in parameters)])
        lines += ["", "    @call", f"    def {name}({signature}):", textwrap.indent(body, "        ")]
    return "\n".join(lines) + "\n"


def model_of(text: str) -> type[Interface]:
    """The class of a model's text."""
    namespace = dict(NAMESPACE)
    exec(compile(text, "<random model>", "exec", dont_inherit=True), namespace)
    model = namespace["Model"]
    assert issubclass(model, Interface)
    return model


def random_value(annotation: str, chance: random.Random) -> Any:
    """A value of an annotation of the tables above."""
    if annotation == "Key":
        return chance.choice(KEYS)
    if annotation == "Val":
        return chance.choice(VALS)
    if annotation == "bool":
        return chance.random() < 0.5
    if annotation.startswith("Annotated[int") or annotation == "int":
        return chance.choice(COUNTS)
    if annotation == "Rec":
        return Rec(flag=chance.random() < 0.5, count=chance.choice(COUNTS))
    if annotation.startswith("tuple"):
        return (chance.choice(KEYS), chance.random() < 0.5)
    if annotation.startswith("Annotated[Seq"):
        return Seq(chance.choice(KEYS) for _ in range(chance.randrange(3)))
    key, _, value = annotation.removeprefix("Map[").removesuffix("]").partition(", ")
    if key.startswith("tuple"):
        key, value = "tuple[Key, bool]", "bool"
    return Map({random_value(key, chance): random_value(value, chance) for _ in range(chance.randrange(4))})


def random_state(model: type[Interface], chance: random.Random) -> Interface:
    """A state of the model with few entries, so that keys often meet."""
    state = model()
    for name in model.state_types():
        setattr(state, name, random_value(ATTRIBUTES[name], chance))
    return state


def random_arguments(model: type[Interface], call_name: str, chance: random.Random) -> dict[str, Any]:
    """Arguments for a call of the model."""
    return {name: random_value(PARAMETERS[name], chance) for name in model.signature(call_name).parameters}
