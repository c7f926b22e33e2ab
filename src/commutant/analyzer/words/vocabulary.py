"""How terms are called: in sentences (`names[src.0]`) and in SMT-LIB (`(names_value rename.0.src)`).

A map is a presence function `<map>_has` and one function per field of its value (`<map>_value` for a value without
fields, such as a map in a map), and, where keys end in a number, `<map>_free`: the n-th lowest number that is no key
(`free(map, n)` in sentences; n from 0, after the other parts of the key); a plain attribute is a constant; an argument
is the constant `<call>.<index>.<parameter>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from commutant.analyzer.condition import Conjunction, constants_of
from commutant.analyzer.oracle import AFTER
from commutant.lang import (
    BoolType,
    CallSignature,
    EnumType,
    Interface,
    IntType,
    MapType,
    OptionalType,
    SeqType,
    SortType,
    StructType,
    TupleType,
    Type,
    struct_fields,
)
from commutant.support import UsageError
from commutant.symbolic import QUOTIENT, REMAINDER, Term


@dataclass(frozen=True, slots=True)
class Function:
    """A function or constant over the model's state: its SMT-LIB sorts, and how a sentence writes it (`{0}` is the
    first key; empty for presence functions, which sentences write as `key in map`)."""

    name: str
    arguments: tuple[str, ...]
    result: str
    pattern: str
    presence_of: str = ""
    is_rare: bool = False
    """Whether scripts declare it only where they speak of it."""
    word: str = ""
    """What a length is the length of, if the model says so: a queue."""


class Lead(NamedTuple):
    """That a key of a map leads to what a model has a word for: a name, in `names`, to a file."""

    key: str
    map: str
    word: str


class Content(NamedTuple):
    """What the model calls the values of a sort, and whether the implementation picks them."""

    word: str
    is_picked: bool


class Vocabulary:
    """The names of one model and one set of its calls."""

    def __init__(
        self,
        interface: type[Interface],
        signatures: tuple[CallSignature, ...],
        choices: Mapping[str, Type] | None = None,
    ) -> None:
        self._model = interface.__name__
        self.functions: dict[str, Function] = {}
        self.bounds: dict[str, tuple[int | None, int | None]] = {}
        """The bounds of functions and constants that are numbers, by name."""
        self._contents: dict[str, Content] = {}
        """Of functions and arguments whose values are of a sort with a word."""
        self._whole = {QUOTIENT: "{0} // {1}", REMAINDER: "{0} % {1}"}
        for attribute, type_ in interface.state_types().items():
            self._declare(attribute, attribute, type_, ())
        self.parameters: dict[str, str] = {}
        self.short: dict[str, str] = {}
        self.choices: dict[str, str] = {}
        for name, type_ in (choices or {}).items():
            call_index, question = name.split(".")[1:4:2]
            before = name.partition(AFTER)[2]
            others = [str(place) for place in range(len(signatures)) if before and int(before) >> place & 1]
            behind = f" after {' and '.join(others)}" if others else ""
            for suffix, scalar in scalars_of(type_):
                self.choices[name + suffix] = smt_sort(scalar)
                self.short[name + suffix] = f"choice{question if question != '0' else ''}{suffix}.{call_index}{behind}"
        for index, signature in enumerate(signatures):
            for parameter, type_ in signature.parameters.items():
                for suffix, scalar in scalars_of(type_):
                    name = f"{signature.name}.{index}.{parameter}{suffix}"
                    self.parameters[name] = smt_sort(scalar)
                    self.bounds[name] = bounds_of(scalar)
                    self._note_word(name, scalar)
                    self.short[name] = f"{parameter}{suffix}.{index}"

    def _add(
        self, name: str, arguments: tuple[str, ...], result: str, pattern: str, presence_of: str = "", word: str = ""
    ) -> None:
        if name in self.functions and not self.functions[name].is_rare:
            raise UsageError(
                f"{self._model}: two parts of the state are called {name} in conditions: expected an attribute or "
                "field of another name"
            )
        self.functions[name] = Function(name, arguments, result, pattern, presence_of, word=word)

    def _declare(self, name: str, pattern: str, type_: Type, keys: tuple[str, ...]) -> None:
        if isinstance(type_, MapType):
            key_sorts = tuple(smt_sort(scalar) for _, scalar in scalars_of(type_.key))
            places = ", ".join(f"{{{len(keys) + i}}}" for i in range(len(key_sorts)))
            inner = (*keys, *key_sorts)
            self._add(f"{name}_has", inner, "Bool", f"{places} in {pattern}", pattern)
            count = f"{name}_count"
            if count not in self.functions:
                self.functions[count] = Function(count, keys, "Int", f"len({pattern})", is_rare=True, word=type_.word)
                self.bounds[count] = 0, None
            if key_sorts[-1] == "Int":
                free = f"{name}_free"
                self._add(free, inner, "Int", f"free({pattern}, {places})")
                self.bounds[free] = 0, None
            suffix = "" if isinstance(type_.value, StructType | SeqType | TupleType) else "_value"
            self._declare(name + suffix, f"{pattern}[{places}]", type_.value, inner)
        elif isinstance(type_, StructType):
            for field, field_type in struct_fields(type_.struct).items():
                self._declare(f"{name}_{field}", f"{pattern}.{field}", field_type, keys)
        elif isinstance(type_, OptionalType):
            self._add(f"{name}_given", keys, "Bool", f"{pattern} is given")
            self._declare(name, pattern, type_.item, keys)
        elif isinstance(type_, TupleType):
            for position, item in enumerate(type_.items):
                self._declare(f"{name}_{position}", f"{pattern}[{position}]", item, keys)
        elif isinstance(type_, SeqType):
            self._add(f"{name}_length", keys, "Int", f"len({pattern})", word=type_.word)
            self.bounds[f"{name}_length"] = 0, type_.capacity
            for position in range(type_.capacity):
                self._declare(f"{name}_{position}", f"{pattern}[{position}]", type_.item, keys)
        else:
            self._add(name, keys, smt_sort(type_), pattern)
            self.bounds[name] = bounds_of(type_)
            self._note_word(name, type_)

    def _note_word(self, name: str, type_: Type) -> None:
        if isinstance(type_, SortType) and type_.sort.word:
            self._contents[name] = Content(type_.sort.word, type_.sort.opaque)

    @property
    def presence(self) -> frozenset[str]:
        """The names of the presence functions."""
        return frozenset(function.name for function in self.functions.values() if function.presence_of)

    def chosen_in(self, cube: Conjunction) -> list[str]:
        """The choices that a cube speaks of; it holds where some values of them satisfy it."""
        if not self.choices:
            return []
        return sorted({name for fact in cube for name in constants_of(fact) if name in self.choices})

    def sentence_term(self, term: Term) -> str:
        """A term as people write it."""
        if term[0] == "constant":
            name = term[1]
            if name in self.short:
                return self.short[name]
            return self.functions[name].pattern if name in self.functions else name
        if term[0] == "apply":
            function = self.functions.get(term[1])
            pattern = self._whole[term[1]] if function is None else function.pattern
            return pattern.format(*(self.sentence_term(argument) for argument in term[2]))
        if term[0] == "sum":
            return self.sentence_sum(term[1], term[2])
        return str(term[1])

    def sentence_sum(self, terms: tuple[tuple[Term, int], ...], constant: int) -> str:
        """A sum as people write it."""
        parts = [
            (
                "-" if coefficient < 0 else "+",
                ("" if abs(coefficient) == 1 else f"{abs(coefficient)}·") + self.sentence_term(t),
            )
            for t, coefficient in terms
        ]
        if constant or not parts:
            parts.append(("-" if constant < 0 else "+", str(abs(constant))))
        first_sign, first = parts[0]
        return ("-" if first_sign == "-" else "") + first + "".join(f" {sign} {text}" for sign, text in parts[1:])

    def leads_to(self, term: Term) -> Lead | None:
        """What the implementation picked that a key leads to, in the model's own words, and from where; None where the
        model has no word for it."""
        content = self._contents.get(term[1]) if term[0] == "apply" else None
        if content is None or not content.is_picked:
            return None
        keys = ", ".join([self.sentence_term(argument) for argument in term[2]])
        pattern = self.functions[term[1]].pattern
        return Lead(f"({keys})" if len(term[2]) > 1 else keys, pattern.partition("[")[0], content.word)

    def word_of(self, term: Term) -> str:
        """What the model calls a value of a term's sort; empty where it has no word."""
        content = self._contents.get(term[1]) if term[0] in ("constant", "apply") else None
        return content.word if content else ""

    def container(self, term: Term) -> str:
        """What a term is the length of, in the model's own words; empty where it has none, or the term is no length."""
        function = self.functions.get(term[1]) if term[0] in ("constant", "apply") else None
        if function is None or not function.word:
            return ""
        if term[0] == "constant":
            return f"the {function.word}"
        return f"the {function.word} {self.sentence_term(term).removeprefix('len(').removesuffix(')')}"

    def smt_term(self, term: Term) -> str:
        """A term in SMT-LIB."""
        if term[0] == "constant":
            return smt_symbol(term[1])
        if term[0] == "apply":
            symbol = smt_symbol(term[1]) if term[1] in self.functions else term[1]
            return f"({symbol} {' '.join(self.smt_term(argument) for argument in term[2])})"
        if term[0] == "sum":
            return self.smt_sum(term[1], term[2])
        value = term[1]
        return str(value).lower() if isinstance(value, bool) else smt_int(value)

    def smt_sum(self, terms: tuple[tuple[Term, int], ...], constant: int) -> str:
        """A sum in SMT-LIB."""
        parts = [
            self.smt_term(term) if coefficient == 1 else f"(* {smt_int(coefficient)} {self.smt_term(term)})"
            for term, coefficient in terms
        ]
        if constant or not parts:
            parts.append(smt_int(constant))
        return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"


_TAKEN = frozenset(
    {
        *("_", "as", "let", "par", "exists", "forall", "match", "assert", "push", "pop", "exit", "echo", "reset"),
        *("true", "false", "not", "and", "or", "xor", "ite", "distinct", "select", "store", "abs", "div", "mod"),
        *("Bool", "Int", "Real", "String", "Array", "Seq", "Set", "Bag", "List", "Tuple", "RegLan", "BitVec"),
        *("Float16", "Float32", "Float64", "Float128", "RoundingMode"),
    }
)
"""Words that SMT-LIB, its theories or its solvers know already."""


def smt_symbol(name: str) -> str:
    """A name as an SMT-LIB symbol: with `!` after it where SMT-LIB has taken it, in bars where it is not plain
    ASCII."""
    if name in _TAKEN:
        return f"{name}!"
    return name if name.isascii() else f"|{name}|"


def smt_sort(type_: Type) -> str:
    """The SMT-LIB sort of a scalar type."""
    if isinstance(type_, SortType):
        return smt_symbol(type_.sort.__name__)
    return "Bool" if isinstance(type_, BoolType) else "Int"


def smt_int(value: int) -> str:
    """An integer literal in SMT-LIB, which has no negative ones."""
    return str(value) if value >= 0 else f"(- {-value})"


def bounds_of(type_: Type) -> tuple[int | None, int | None]:
    """The least and the greatest number that a scalar can be; None is no bound."""
    if isinstance(type_, EnumType):
        return 0, len(type_.members) - 1
    return (type_.low, type_.high) if isinstance(type_, IntType) else (None, None)


def scalars_of(type_: Type, suffix: str = "") -> list[tuple[str, Type]]:
    """The scalars that a parameter, key or choice consists of: suffix of the name, and type."""
    if isinstance(type_, TupleType):
        return [pair for i, item in enumerate(type_.items) for pair in scalars_of(item, f"{suffix}_{i}")]
    if isinstance(type_, StructType):
        return [pair for f, t in struct_fields(type_.struct).items() for pair in scalars_of(t, f"{suffix}_{f}")]
    if isinstance(type_, OptionalType):
        return [(f"{suffix}_given", BoolType()), *scalars_of(type_.item, suffix)]
    if isinstance(type_, SeqType):
        items = [pair for i in range(type_.capacity) for pair in scalars_of(type_.item, f"{suffix}_{i}")]
        return [(f"{suffix}_length", IntType(0, type_.capacity)), *items]
    return [] if isinstance(type_, MapType) else [(suffix, type_)]
