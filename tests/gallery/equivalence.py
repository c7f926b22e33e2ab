"""Whether two conditions say the same of every state that a model admits: a proof by Z3, or a situation in which they
differ, for brute force to judge.

What the functions of a condition mean is said as in `tests.analyzer.interpretation`: the value under a key that is
absent, and an item past a sequence's end, are values of their own. A situation is looked for where each sort has few
values and integers are small; the proof knows no such bounds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from commutant.analyzer import SetAnalysis
from commutant.analyzer.condition import Conjunction, Fact
from commutant.lang import (
    BoolType,
    EnumType,
    Interface,
    IntType,
    MapType,
    OpaqueValue,
    OptionalType,
    Seq,
    SeqType,
    SortType,
    StructType,
    TupleType,
    Type,
    struct_fields,
)
from tests.analyzer.interpretation import World, Z3Terms, all_signatures, key_sorts, parts, value_name
from tests.gallery.oracle import Domain, Placed

SORT_VALUES = 5
"""A sort has this many values in situations, which is more than two calls name."""

NUMBERS = range(-1, 6)
"""The integers in situations, within a type's bounds."""

MOST_TRIED = 400
"""This many candidates of the solver are held against the model's own conditions on states."""

Guard = tuple[str, int, int]
"""What must hold for a function to have a value: a presence (of the first few arguments, by number), or a length above
a number, which is -1 for presences."""


def says(cubes: Iterable[Conjunction], world: World) -> bool:
    """Whether a condition holds in a world."""
    return any(world.all_hold(cube) for cube in cubes)


def differences(one: SetAnalysis, changed: Sequence[Conjunction]) -> Iterator[tuple[Interface, Placed]]:
    """Well-formed situations in which a changed condition says something else."""
    question = _Question(one, changed)
    domain = Domain(one.interface)
    for state, calls in question.situations():
        if domain.is_well_formed(state):
            world = World.of(state, calls)
            if says(one.cubes, world) != says(changed, world):
                yield state, calls


def proved_equal(one: SetAnalysis, changed: Sequence[Conjunction]) -> bool:
    """Whether a changed condition says the same of all states that the model admits, whatever their size."""
    return _Question(one, changed).is_never()


@dataclass
class _Question:
    """In which admitted states does a changed condition say something else?"""

    one: SetAnalysis
    changed: Sequence[Conjunction]
    types: dict[str, Type] = field(default_factory=dict)
    """The scalar types of functions."""
    guards: dict[str, tuple[Guard, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.interface = self.one.interface
        self.terms = Z3Terms(all_signatures(self.interface, self.one.calls))
        for name, type_ in self.interface.state_types().items():
            self._describe(name, type_, 0, ())
        for index, call in enumerate(self.one.calls):
            for parameter, type_ in self.interface.signature(call).parameters.items():
                self._describe(f"{call}.{index}.{parameter}", type_, 0, ())

    def _describe(self, name: str, type_: Type, keys: int, guards: tuple[Guard, ...]) -> None:
        self.guards[name] = guards
        if isinstance(type_, MapType):
            inner = keys + len(key_sorts(type_.key))
            self.guards |= {f"{name}_has": guards, f"{name}_count": guards}
            self.types |= {f"{name}_has": BoolType(), f"{name}_count": IntType(0, None)}
            present = (*guards, (f"{name}_has", inner, -1))
            self._describe(value_name(name, type_.value), type_.value, inner, present)
        elif isinstance(type_, OptionalType):
            self.guards[f"{name}_given"], self.types[f"{name}_given"] = guards, BoolType()
            self._describe(name, type_.item, keys, (*guards, (f"{name}_given", keys, -1)))
        elif isinstance(type_, SeqType):
            self.guards[f"{name}_length"], self.types[f"{name}_length"] = guards, IntType(0, type_.capacity)
            for place in range(type_.capacity):
                self._describe(f"{name}_{place}", type_.item, keys, (*guards, (f"{name}_length", keys, place)))
        elif isinstance(type_, StructType | TupleType):
            for suffix, part in parts(type_):
                self._describe(name + suffix, part, keys, guards)
        else:
            self.types[name] = IntType(0, len(type_.members) - 1) if isinstance(type_, EnumType) else type_

    def is_never(self) -> bool:
        """Whether Z3 proves that there are none."""
        solver = z3.Solver()
        solver.add(self._differ(), *self._axioms(list(self._applications())))
        return bool(solver.check() == z3.unsat)

    def situations(self) -> Iterator[tuple[Interface, Placed]]:
        """Candidates of the small domain; those whose state is ill-formed are among them."""
        solver = z3.Solver()
        solver.add(self._differ(), *self._axioms(list(self._applications())), *self._small())
        for _ in range(MOST_TRIED):
            if solver.check() != z3.sat:
                return
            model = solver.model()
            reader = _Reader(self, model)
            yield reader.situation()
            solver.add(z3.Or([term != value for term, value in reader.read.items()]))

    def _differ(self) -> Any:
        admitted = [leaf.facts for leaf in self.one.leaves if leaf.feasible]
        union = self.terms.union
        return z3.And(union(admitted), union(self.one.cubes) != union(self.changed))

    def _applications(self) -> Iterator[Any]:
        """Every term that a function or constant is the head of, in the conditions and what is admitted."""
        pending = [
            term
            for cube in (*self.one.cubes, *self.changed, *(leaf.facts for leaf in self.one.leaves if leaf.feasible))
            for fact in cube
            for term in _terms(fact)
        ]
        seen = set()
        while pending:
            term = pending.pop()
            if term in seen:
                continue
            seen.add(term)
            if term[0] == "sum":
                pending += [inner for inner, _ in term[1]]
            elif term[0] != "value":
                pending += term[2] if term[0] == "apply" else ()
                if term[1] in self.guards:
                    yield term

    def _axioms(self, applications: Sequence[Any]) -> Iterator[Any]:
        """What holds of the terms whatever the state: bounds, what an absent key has, how many keys there are."""
        undefined: dict[str, Any] = {}
        for term in applications:
            name, keys = term[1], [self.terms.term(key) for key in (term[2] if term[0] == "apply" else ())]
            value, type_ = self.terms.term(term), self.types[name]
            there = z3.And([self._holds(guard, keys) for guard in self.guards[name]])
            if isinstance(type_, SortType):
                sort = type_.sort.__name__
                nothing = undefined.setdefault(sort, z3.Const(f"undefined.{sort}", self.terms.sort(sort)))
                yield (value == nothing) == z3.Not(there)
            elif isinstance(type_, BoolType):
                yield z3.Implies(z3.Not(there), z3.Not(value))
            else:
                assert isinstance(type_, IntType)
                yield z3.If(there, z3.And(*_within(value, type_)), value == -1)
        for name in {term[1] for term in applications if term[1].endswith("_count")}:
            yield from self._counts(name, applications)

    def _counts(self, name: str, applications: Sequence[Any]) -> Iterator[Any]:
        """A map has at least as many entries as there are different keys that are known to be in it."""
        presence = name.removesuffix("_count") + "_has"
        keys = [tuple(map(self.terms.term, t[2])) for t in applications if t[0] == "apply" and t[1] == presence]
        has, count = self.terms.functions[presence], self.terms.functions[name]
        for size in range(1, len(keys) + 1):
            for chosen in itertools.combinations(keys, size):
                differ = [
                    z3.Or([a != b for a, b in zip(left, right, strict=True)])
                    for left, right in itertools.combinations(chosen, 2)
                ]
                if self.terms.functions[name].arity() == 0:
                    yield z3.Implies(z3.And([*differ, *[has(*key) for key in chosen]]), count() >= size)

    def _holds(self, guard: Guard, keys: Sequence[Any]) -> Any:
        name, count, place = guard
        value = self.terms.functions[name](*keys[:count])
        return value if place < 0 else value > place

    def values(self, sort: str) -> list[Any]:
        """The values of a sort in situations."""
        return [z3.Const(f"{sort}.{number}", self.terms.sort(sort)) for number in range(SORT_VALUES)]

    def _small(self) -> Iterator[Any]:
        """That every function is one over the small domain, and how many entries its maps have."""
        for sort in {t.sort.__name__ for t in self.types.values() if isinstance(t, SortType)}:
            yield z3.Distinct([z3.Const(f"undefined.{sort}", self.terms.sort(sort)), *self.values(sort)])
        for name, type_ in self.types.items():
            function = self.terms.functions[name]
            for keys in itertools.product(*(self.keys(function.domain(n)) for n in range(function.arity()))):
                value = function(*keys)
                if isinstance(type_, SortType):
                    yield z3.Implies(
                        z3.And([self._holds(guard, keys) for guard in self.guards[name]]),
                        z3.Or([value == one for one in self.values(type_.sort.__name__)]),
                    )
                elif name.endswith("_count"):
                    has = self.terms.functions[name.removesuffix("_count") + "_has"]
                    inner = [self.keys(has.domain(n)) for n in range(len(keys), has.arity())]
                    yield value == z3.Sum([z3.If(has(*keys, *one), 1, 0) for one in itertools.product(*inner)])
                elif isinstance(type_, IntType):
                    yield z3.Implies(
                        z3.And([self._holds(guard, keys) for guard in self.guards[name]]),
                        z3.And(*_within(value, type_), value >= NUMBERS[0], value <= NUMBERS[-1]),
                    )

    def keys(self, sort: Any) -> list[Any]:
        """The keys of a Z3 sort in situations."""
        if sort == z3.IntSort():
            return [z3.IntVal(number) for number in NUMBERS]
        if sort == z3.BoolSort():
            return [z3.BoolVal(False), z3.BoolVal(True)]
        return self.values(sort.name())


class _Reader:
    """The situation that a model of Z3 is; `read` are the terms that it was read from, with their values."""

    def __init__(self, question: _Question, model: Any) -> None:
        self._question = question
        self._model = model
        self.read: dict[Any, Any] = {}

    def situation(self) -> tuple[Interface, Placed]:
        """State and calls."""
        interface = self._question.interface
        state = interface()
        for name, type_ in interface.state_types().items():
            setattr(state, name, self._value(name, type_, ()))
        calls = [
            (
                call,
                {p: self._value(f"{call}.{index}.{p}", t, ()) for p, t in interface.signature(call).parameters.items()},
            )
            for index, call in enumerate(self._question.one.calls)
        ]
        return state, calls

    def _scalar(self, name: str, keys: Sequence[Any]) -> Any:
        term = self._question.terms.functions[name](*keys)
        value = self.read[term] = self._model.eval(term, model_completion=True)
        return value

    def _value(self, name: str, type_: Type, keys: tuple[Any, ...]) -> Any:
        if isinstance(type_, OptionalType):
            given = z3.is_true(self._scalar(f"{name}_given", keys))
            return self._value(name, type_.item, keys) if given else None
        if isinstance(type_, EnumType):
            return type_.members[self._scalar(name, keys).as_long()]
        if isinstance(type_, MapType):
            found = type_.zero()
            for shown, key in self._keys(type_.key):
                if z3.is_true(self._scalar(f"{name}_has", (*keys, *key))):
                    found[shown] = self._value(value_name(name, type_.value), type_.value, (*keys, *key))
            return found
        if isinstance(type_, SeqType):
            length = self._scalar(f"{name}_length", keys).as_long()
            return Seq([self._value(f"{name}_{place}", type_.item, keys) for place in range(length)])
        if isinstance(type_, TupleType):
            return tuple([self._value(f"{name}_{n}", item, keys) for n, item in enumerate(type_.items)])
        if isinstance(type_, StructType):
            fields = struct_fields(type_.struct)
            return type_.struct(**{f: self._value(f"{name}_{f}", part, keys) for f, part in fields.items()})
        value = self._scalar(name, keys)
        return self._of_sort(type_, value) if isinstance(type_, SortType) else _number(value)

    def _keys(self, type_: Type) -> list[tuple[Any, tuple[Any, ...]]]:
        """The keys of a map that are tried, for Python and for Z3."""
        if isinstance(type_, TupleType):
            return [
                (tuple([shown for shown, _ in parts]), tuple([key for _, inner in parts for key in inner]))
                for parts in itertools.product(*map(self._keys, type_.items))
            ]
        if isinstance(type_, SortType):
            values = self._question.values(type_.sort.__name__)
            return [(self._of_sort(type_, self._model.eval(v, model_completion=True)), (v,)) for v in values]
        sort = z3.IntSort() if isinstance(type_, IntType) else z3.BoolSort()
        return [(_number(value), (value,)) for value in self._question.keys(sort)]

    def _of_sort(self, type_: SortType, value: Any) -> Any:
        sort = type_.sort.__name__
        known = [self._model.eval(one, model_completion=True) for one in self._question.values(sort)]
        number = next(n for n, one in enumerate(known) if one.eq(value))
        return OpaqueValue(sort, str(number)) if type_.sort.opaque else f"{sort.lower()}{number}"


def _number(value: Any) -> Any:
    return z3.is_true(value) if z3.is_bool(value) else value.as_long()


def _within(value: Any, type_: IntType) -> list[Any]:
    bounds = [] if type_.low is None else [value >= type_.low]
    return bounds if type_.high is None else [*bounds, value <= type_.high]


def _terms(fact: Fact) -> list[Any]:
    if fact.kind == "bool":
        return [fact.left]
    return [fact.left, fact.right] if fact.kind == "same" else [term for term, _ in fact.left]
