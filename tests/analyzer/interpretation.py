"""What the terms of conditions mean, given a second time: on concrete states, and in Z3.

Written from the documented naming alone (a map is `<map>_has` and a function per field of its value, an argument is
`<call>.<index>.<parameter>`), so that the engine, its vocabulary and its SMT-LIB text are checked by something else.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from commutant.analyzer.condition import Conjunction, Fact, constants_of
from commutant.lang.interface import Interface
from commutant.lang.types import (
    BoolType,
    EnumType,
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

Signature = tuple[tuple[str, ...], str]
"""Sorts of the arguments and of the result."""


def scalar_sort(type_: Type) -> str:
    """The SMT-LIB sort of a type without parts."""
    if isinstance(type_, SortType):
        return type_.sort.__name__
    assert isinstance(type_, BoolType | IntType | EnumType)
    return "Bool" if isinstance(type_, BoolType) else "Int"


def parts(type_: Type) -> list[tuple[str, Type]]:
    """The direct parts of a compound type that is no map: suffix of the name, and type."""
    if isinstance(type_, StructType):
        return [(f"_{name}", part) for name, part in struct_fields(type_.struct).items()]
    if isinstance(type_, TupleType):
        return [(f"_{number}", part) for number, part in enumerate(type_.items)]
    assert isinstance(type_, SeqType)
    return [("_length", IntType()), *((f"_{number}", type_.item) for number in range(type_.capacity))]


def key_sorts(type_: Type) -> list[str]:
    """The sorts of the scalars that a key consists of."""
    return (
        [s for item in type_.items for s in key_sorts(item)] if isinstance(type_, TupleType) else [scalar_sort(type_)]
    )


def key_scalars(key: Any) -> list[Any]:
    """The scalars that a concrete key consists of."""
    return [s for item in key for s in key_scalars(item)] if isinstance(key, tuple) else [key]


def value_name(name: str, type_: Type) -> str:
    """What the function for a map's values is called, of which fields of a struct make several."""
    return name if isinstance(type_, StructType | SeqType | TupleType) else f"{name}_value"


def signatures(name: str, type_: Type, keys: tuple[str, ...] = ()) -> dict[str, Signature]:
    """Every function that a part of the state called `name` consists of."""
    if isinstance(type_, MapType):
        inner = (*keys, *key_sorts(type_.key))
        free = {f"{name}_free": (inner, "Int")} if inner[-1] == "Int" else {}
        count = {f"{name}_count": (keys, "Int")}
        return {
            f"{name}_has": (inner, "Bool"),
            **count,
            **free,
            **signatures(value_name(name, type_.value), type_.value, inner),
        }
    if isinstance(type_, OptionalType):
        return {f"{name}_given": (keys, "Bool"), **signatures(name, type_.item, keys)}
    if isinstance(type_, StructType | TupleType | SeqType):
        return {n: s for suffix, part in parts(type_) for n, s in signatures(name + suffix, part, keys).items()}
    return {name: (keys, scalar_sort(type_))}


def all_signatures(interface: type[Interface], calls: Sequence[str]) -> dict[str, Signature]:
    """Every function and constant that a condition on these calls may speak of."""
    found: dict[str, Signature] = {}
    for name, type_ in interface.state_types().items():
        found |= signatures(name, type_)
    for index, call in enumerate(calls):
        for parameter, type_ in interface.signature(call).parameters.items():
            found |= signatures(f"{call}.{index}.{parameter}", type_)
    return found


@dataclass
class World:
    """A concrete state with concrete arguments, as tables of functions."""

    signatures: dict[str, Signature]
    tables: dict[str, dict[tuple[Any, ...], Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Interface, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> World:
        """The world of a state and of calls with arguments."""
        world = cls(all_signatures(type(state), [name for name, _ in calls]))
        for name, type_ in type(state).state_types().items():
            world._enter(name, type_, getattr(state, name), ())
        for index, (call, given) in enumerate(calls):
            for parameter, type_ in type(state).signature(call).parameters.items():
                world._enter(f"{call}.{index}.{parameter}", type_, given[parameter], ())
        return world

    def _enter(self, name: str, type_: Type, value: Any, keys: tuple[Any, ...]) -> None:
        if isinstance(type_, OptionalType):
            self.tables.setdefault(f"{name}_given", {})[keys] = value is not None
            if value is not None:
                self._enter(name, type_.item, value, keys)
        elif isinstance(type_, EnumType):
            self.tables.setdefault(name, {})[keys] = type_.members.index(value)
        elif isinstance(type_, MapType):
            self.tables.setdefault(f"{name}_count", {})[keys] = len(value)
            for key, inner in value.items():
                at = (*keys, *key_scalars(key))
                self.tables.setdefault(f"{name}_has", {})[at] = True
                self._enter(value_name(name, type_.value), type_.value, inner, at)
        elif isinstance(type_, SeqType):
            self._enter(f"{name}_length", IntType(), len(value), keys)
            for number, item in enumerate(value):
                self._enter(f"{name}_{number}", type_.item, item, keys)
        elif isinstance(type_, StructType | TupleType):
            for number, (suffix, part) in enumerate(parts(type_)):
                item = value[number] if isinstance(type_, TupleType) else getattr(value, suffix[1:])
                self._enter(name + suffix, part, item, keys)
        else:
            self.tables.setdefault(name, {})[keys] = value

    def value(self, term: Any) -> Any:
        """The value of a term. What the state leaves undefined (the value of an absent key) is some value of its
        own."""
        if term[0] == "value":
            return term[1]
        if term[0] == "sum":
            return term[2] + sum(coefficient * self.value(inner) for inner, coefficient in term[1])
        keys = tuple(self.value(argument) for argument in term[2]) if term[0] == "apply" else ()
        if term[1] in ("div", "mod") and term[1] not in self.signatures:
            return keys[0] // keys[1] if term[1] == "div" else keys[0] % keys[1]
        if len(keys) != len(self.signatures[term[1]][0]):
            raise AssertionError(f"{term[1]} is used with {len(keys)} arguments, declared {self.signatures[term[1]]}")
        table = self.tables.get(term[1], {})
        if keys in table:
            return table[keys]
        if term[1].endswith("_free"):
            return self._free(term[1].removesuffix("_free") + "_has", keys[:-1], keys[-1])
        result = self.signatures[term[1]][1]
        return False if result == "Bool" else -1 if result == "Int" else ("undefined", term[1], keys)

    def _free(self, presence: str, prefix: tuple[Any, ...], position: int) -> int:
        """The number that, of those that are no key after this prefix, is the lowest but `position`."""
        table = self.tables.get(presence, {})
        absent = (number for number in itertools.count() if not table.get((*prefix, number), False))
        return next(itertools.islice(absent, position, None))

    def holds(self, fact: Fact) -> bool:
        """Whether a fact is true here."""
        if fact.kind == "bool":
            truth = self.value(fact.left)
        elif fact.kind == "same":
            truth = self.value(fact.left) == self.value(fact.right)
        else:
            total = fact.right + sum(coefficient * self.value(term) for term, coefficient in fact.left)
            truth = total <= 0 if fact.kind == "<=" else total == 0
        assert isinstance(truth, bool)
        return truth == fact.holds

    def all_hold(self, cube: Conjunction) -> bool:
        """Whether every fact of a cube is true here."""
        return all(self.holds(fact) for fact in cube)

    def all_hold_for_some_choice(self, cube: Conjunction, domains: Mapping[str, Sequence[Any]]) -> bool:
        """The same where the cube may speak of choices: `domains` holds the values to try, by name."""
        names = sorted({name for fact in cube for name in constants_of(fact) if name in domains})
        self.signatures = {**self.signatures, **dict.fromkeys(names, ((), ""))}
        for values in itertools.product(*(domains[name] for name in names)):
            self.tables |= {name: {(): value} for name, value in zip(names, values, strict=True)}
            if self.all_hold(cube):
                return True
        return False


class Z3Terms:
    """Facts as Z3 formulas, over the same functions and constants for every fact."""

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self._sorts: dict[str, Any] = {"Bool": z3.BoolSort(), "Int": z3.IntSort()}
        self.functions = {
            name: z3.Function(name, *(self.sort(s) for s in arguments), self.sort(result))
            for name, (arguments, result) in signatures.items()
        }

    def sort(self, name: str) -> Any:
        """The Z3 sort of this name."""
        return self._sorts.setdefault(name, z3.DeclareSort(name)) if name not in self._sorts else self._sorts[name]

    def term(self, term: Any) -> Any:
        """A term as a Z3 expression."""
        if term[0] == "value":
            return z3.BoolVal(term[1]) if isinstance(term[1], bool) else z3.IntVal(term[1])
        if term[0] == "sum":
            return z3.Sum([coefficient * self.term(inner) for inner, coefficient in term[1]]) + term[2]
        arguments = [self.term(argument) for argument in (term[2] if term[0] == "apply" else ())]
        if term[1] in ("div", "mod") and term[1] not in self.functions:
            return arguments[0] / arguments[1] if term[1] == "div" else arguments[0] % arguments[1]
        return self.functions[term[1]](*arguments)

    def fact(self, fact: Fact) -> Any:
        """A fact as a Z3 formula."""
        if fact.kind == "bool":
            formula = self.term(fact.left)
        elif fact.kind == "same":
            formula = self.term(fact.left) == self.term(fact.right)
        else:
            total = z3.Sum([coefficient * self.term(term) for term, coefficient in fact.left]) + fact.right
            formula = total <= 0 if fact.kind == "<=" else total == 0
        return formula if fact.holds else z3.Not(formula)

    def cube(self, cube: Conjunction) -> Any:
        """A conjunction."""
        return z3.And([self.fact(fact) for fact in cube])

    def union(self, cubes: Iterable[Conjunction]) -> Any:
        """A disjunction of conjunctions."""
        return z3.Or([self.cube(cube) for cube in cubes])


class Undecided(Exception):
    """Z3 neither proved nor refuted a formula within its limit."""


Z3_LIMIT = 50_000_000
"""Units of Z3's own counting, which do not depend on the machine's speed: seconds. Nested quantifiers over integers can
keep it forever."""


def proved(formula: Any, *assumptions: Any) -> bool:
    """Whether Z3 proves the formula under the assumptions; Undecided if it gives up."""
    solver = z3.Solver()
    solver.set("rlimit", Z3_LIMIT)
    solver.add(*assumptions, z3.Not(formula))
    answer = solver.check()
    if answer == z3.unknown:
        raise Undecided(solver.reason_unknown())
    return bool(answer == z3.unsat)


def read_condition(text: str) -> Any:
    """The closed assertion of an SMT-LIB script, parsed by Z3."""
    assertions = z3.parse_smt2_string(text)
    assert len(assertions) == 1
    return assertions[0]
