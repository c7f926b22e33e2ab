"""Choices of the implementation, eliminated from conditions.

A path on which the specification left something open says "for some choice". A condition that people read should speak
of states and arguments alone, so each choice is eliminated, exactly: an equality that fixes it is substituted, a truth
value is tried on both sides, bounds of an integer are combined (Fourier and Motzkin; exact where one of two
coefficients that meet is 1 or -1), and what can be met by going far enough away goes (disequalities; "not a key of this
map", for maps are finite and sorts are not). What remains is kept: a cube that still mentions a choice holds where
*some* value of the choice satisfies all of it ("some other key is present" has no form without a quantifier).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from commutant.analyzer.condition import (
    Conjunction,
    Fact,
    Sum,
    as_sum,
    constants_of,
    rename_constants,
    sum_term,
)
from commutant.analyzer.facts import Bounds, Facts
from commutant.analyzer.words.vocabulary import bounds_of, scalars_of
from commutant.lang import BoolType, IntType, SortType, Type
from commutant.symbolic import Term

FactList = list[Fact]

MAX_CASES = 16
"""This many values of a choice are written out, each as a case of its own."""


class Choices:
    """The choices of one set of calls: their types, by the name of the constant that stands for them, the presence
    functions of the model's maps, which are false almost everywhere, and the bounds of numbers, by name."""

    def __init__(
        self, types: Mapping[str, Type], presence: frozenset[str], bounds: Mapping[str, Bounds] | None = None
    ) -> None:
        self.scalars: dict[str, Type] = {
            name + suffix: scalar for name, type_ in sorted(types.items()) for suffix, scalar in scalars_of(type_)
        }
        self._presence = presence
        self.facts = Facts({**(bounds or {}), **{name: bounds_of(type_) for name, type_ in self.scalars.items()}})

    def mentioned(self, cube: Sequence[Fact]) -> list[str]:
        """The choices of which the facts speak, by name."""
        return sorted({name for fact in cube for name in constants_of(fact) if name in self.scalars})

    def renamed(self, cube: Conjunction) -> Conjunction:
        """The cube with its choices under other names: two cubes speak of two choices even if they call them the
        same."""
        return rename_constants(cube, {name: f"{name}'" for name in self.mentioned(cube)})

    def eliminate(self, cube: Conjunction) -> list[Conjunction]:
        """Cubes that together hold exactly where some choice satisfies the given one."""
        names = self.mentioned(cube)
        if not names:
            return [cube]
        return self._eliminate([*cube, *(bound for name in names for bound in self._bounds(name))])

    def _bounds(self, name: str) -> Iterator[Fact]:
        type_ = self.scalars[name]
        if isinstance(type_, IntType):
            if type_.low is not None:
                yield Fact("<=", ((("constant", name), -1),), type_.low, True)
            if type_.high is not None:
                yield Fact("<=", ((("constant", name), 1),), -type_.high, True)

    def _eliminate(self, given: FactList) -> list[Conjunction]:
        facts = _tidy(given)
        if facts is None or self.facts.contradictory(facts):
            return []
        names = self.mentioned(facts)
        for step in (self._fixed, self._free, self._written_out):
            for name in names:
                parts = step(name, facts)
                if parts is not None:
                    return [cube for part in parts for cube in self._eliminate(part)]
        return [tuple(facts)]

    def _fixed(self, name: str, facts: FactList) -> list[FactList] | None:
        """The facts with the value put in that one of them gives the choice; None if there is none."""
        constant: Term = ("constant", name)
        for fact in facts:
            value: Term | None = None
            if fact.kind == "bool" and fact.left == constant:
                value = ("value", fact.holds)
            elif fact.kind == "same" and fact.holds and constant in (fact.left, fact.right):
                value = fact.right if fact.left == constant else fact.left
            elif fact.kind == "==" and fact.holds and dict(fact.left).get(constant) in (1, -1):
                terms, rest = as_sum(fact)
                factor = -terms.pop(constant)
                value = sum_term({term: factor * coefficient for term, coefficient in terms.items()}, factor * rest)
            if value is not None and not _mentions(value, name):
                return [[_put(other, name, value) for other in facts if other is not fact]]
        return None

    def _free(self, name: str, facts: FactList) -> list[FactList] | None:
        """The facts without the choice where enough values are left to meet them; None if this cannot be said."""
        about = [fact for fact in facts if name in constants_of(fact)]
        others = [fact for fact in facts if name not in constants_of(fact)]
        type_ = self.scalars[name]
        if isinstance(type_, BoolType):
            return [[_put(fact, name, ("value", side)) for fact in facts] for side in (False, True)]
        avoidable = [fact for fact in about if self._is_avoidable(fact, name)]
        if isinstance(type_, SortType):
            return [others] if len(avoidable) == len(about) else None
        return self._free_integer(name, [fact for fact in about if fact not in avoidable], avoidable, others)

    def _written_out(self, name: str, facts: FactList) -> list[FactList] | None:
        """The facts once for each value of a choice among few; None if there are many."""
        low, high = bounds_of(self.scalars[name])
        if low is None or high is None or high - low >= MAX_CASES:
            return None
        return [[_put(fact, name, ("value", value)) for fact in facts] for value in range(low, high + 1)]

    def _is_avoidable(self, fact: Fact, name: str) -> bool:
        """Whether all but finitely many values of the choice make the fact true."""
        constant: Term = ("constant", name)
        if fact.holds:
            return False
        if fact.kind == "same":
            other = fact.right if fact.left == constant else fact.left
            return constant in (fact.left, fact.right) and not _mentions(other, name)
        if fact.kind == "==":
            return constant in dict(fact.left) and not any(_mentions(t, name) for t, _ in fact.left if t != constant)
        return (
            fact.kind == "bool"
            and fact.left[0] == "apply"
            and fact.left[1] in self._presence
            and (_flat_argument(fact.left, constant))
        )

    def _free_integer(self, name: str, about: FactList, avoidable: FactList, others: FactList) -> list[FactList] | None:
        constant: Term = ("constant", name)
        lower: list[Sum] = []
        upper: list[Sum] = []
        for fact in about:
            if fact.kind != "<=" or any(_mentions(term, name) for term, _ in fact.left if term != constant):
                return None
            terms, rest = as_sum(fact)
            (upper if terms[constant] > 0 else lower).append((terms, rest))
        if not lower or not upper:
            return [others]
        hole = next((fact for fact in avoidable if fact.kind == "=="), None)
        if hole is not None:
            rest_of = [*others, *about, *(fact for fact in avoidable if fact is not hole)]
            below = Fact("<=", hole.left, hole.right + 1, True)
            above = Fact("<=", tuple((term, -c) for term, c in hole.left), 1 - hole.right, True)
            return [[*rest_of, below], [*rest_of, above]]
        if avoidable:
            return None
        combined: FactList = []
        for low, low_rest in lower:
            for high, high_rest in upper:
                a, b = -low[constant], high[constant]
                if a != 1 and b != 1:
                    return None
                total = {term: b * low.get(term, 0) + a * high.get(term, 0) for term in {**low, **high}}
                combined.append(_at_most_zero(total, b * low_rest + a * high_rest))
        return [[*others, *combined]]


def _at_most_zero(terms: Mapping[Term, int], rest: int) -> Fact:
    return Fact("<=", tuple((term, c) for term, c in sorted(terms.items(), key=repr) if c), rest, True)


def _mentions(term: Term, name: str) -> bool:
    return name in constants_of(Fact("bool", term, None, True))


def _flat_argument(term: Term, constant: Term) -> bool:
    """Whether the choice itself is one of the keys, and no other key is made from it."""
    inside = [argument for argument in term[2] if _mentions(argument, constant[1])]
    return inside == [constant]


def _put(fact: Fact, name: str, value: Term) -> Fact:
    """The fact with the value in place of the constant."""
    if fact.kind == "bool":
        return Fact("bool", _put_term(fact.left, name, value), None, fact.holds)
    if fact.kind == "same":
        return Fact("same", _put_term(fact.left, name, value), _put_term(fact.right, name, value), fact.holds)
    whole = _put_term(("sum", fact.left, fact.right), name, value)
    terms, rest = _sum_of(whole)
    return Fact(fact.kind, tuple(sorted(terms.items(), key=repr)), rest, fact.holds)


def _put_term(term: Term, name: str, value: Term) -> Term:
    if term == ("constant", name):
        return value
    if term[0] == "apply":
        return ("apply", term[1], tuple(_put_term(argument, name, value) for argument in term[2]))
    if term[0] == "sum":
        total: dict[Term, int] = {}
        rest = term[2]
        for inner, coefficient in term[1]:
            terms, constant = _sum_of(_put_term(inner, name, value))
            rest += coefficient * constant
            for part, factor in terms.items():
                total[part] = total.get(part, 0) + coefficient * factor
        return sum_term(total, rest)
    return term


def _sum_of(term: Term) -> Sum:
    if term[0] == "value":
        return {}, term[1]
    if term[0] == "sum":
        return dict(term[1]), term[2]
    return {term: 1}, 0


def _tidy(facts: FactList) -> FactList | None:
    """The facts without those that are true by themselves; None if one is false by itself."""
    kept: dict[Fact, None] = {}
    for fact in facts:
        truth: bool | None = None
        if fact.kind == "bool" and fact.left[0] == "value":
            truth = fact.left[1]
        elif fact.kind == "same" and fact.left == fact.right:
            truth = True
        elif fact.kind in ("<=", "==") and not fact.left:
            truth = fact.right <= 0 if fact.kind == "<=" else fact.right == 0
        if truth is None:
            kept[fact] = None
        elif truth != fact.holds:
            return None
    return list(kept)
