"""Level `cover`: of the classes of a set, as few as show what each call does and how the calls meet.

A call's *own path* is the path that it takes alone, from the same state with the same arguments. Its *parts* are the
values of sorts, and the numbers that are keys of maps, of which that path speaks: arguments, and what stands under an
entry. A *relation* says of a part of one call and a part of another, of one sort or of one map, that they are equal, or
that they are not. Tests are kept until these are covered, as far as some class has them:

- every two own paths of two calls, together;
- every own path in every placement of the calls in processes;
- every own path with every relation;
- every two relations, together.

For more than two calls this is asked of each two of them. It is a set cover, found greedily: the test that covers most
that is not yet covered comes next; of equal ones, that with the least id. A class that covers nothing new when the
search comes to it is no candidate, so that no test of it is made.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

from commutant.analyzer import CallSet, Fact, facts_of
from commutant.lang import Interface
from commutant.symbolic import Context, Term, explore, value_of


class CallPart(NamedTuple):
    """A part of a call: its term, and what it may be equal to: parts of the same kind."""

    term: Term
    kind: Hashable


@dataclass(slots=True)
class OwnPath:
    """A node of the tree of a call's own paths: what is decided next, and where either side leads. A leaf has a number
    and the parts of its path."""

    number: int = -1
    fact: Fact | None = None
    sides: dict[bool, OwnPath] = field(default_factory=dict)
    parts: tuple[CallPart, ...] = ()


@lru_cache(maxsize=256)
def own_paths(interface: Any, call: str) -> OwnPath:
    """The tree of the paths that the call takes alone."""
    root, count = OwnPath(), 0
    for path in explore(CallSet(interface, (call,)).run):
        node = root
        facts = facts_of(path.context, path.decisions)
        for fact in facts:
            node.fact = fact
            node = node.sides.setdefault(fact.holds, OwnPath())
        if path.result is not None:
            node.number, count = count, count + 1
            node.parts = tuple(_parts(interface, path.context, facts))
    return root


def _parts(interface: type[Interface], context: Context, facts: Sequence[Fact]) -> Iterator[CallPart]:
    """The parts of a path of which facts speak, in the order in which they do."""
    values = KnownValues(context)
    found: dict[Term, CallPart] = {}
    for fact in facts:
        terms = [fact.left] if fact.kind == "bool" else [fact.left, fact.right] if fact.kind == "same" else []
        terms += [term for term, _ in fact.left] if fact.kind in ("<=", "==") else []
        pending = list(terms)
        for term in pending:
            if term[0] == "apply":
                pending += term[2]
                for place, argument in enumerate(term[2]):
                    if values.sort_of(argument) is None and argument[0] != "value":
                        found.setdefault(argument, CallPart(argument, (term[1], place)))
            sort = values.sort_of(term)
            if sort is not None and sort not in context.content_sorts:
                found.setdefault(term, CallPart(term, sort))
    yield from found.values()


class KnownValues:
    """What the unknowns of a path stand for, by the terms that name them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._integers = context.int_solution()
        self._sorts: dict[Hashable, int] = {}
        for index, term in enumerate(context.sort_terms):
            self._sorts[self._key(term)] = index
        self._ints = {self._key(term): index for index, term in enumerate(context.int_terms)}
        self._bools = {self._key(term): index for index, term in enumerate(context.bool_terms)}

    def sort_of(self, term: Term) -> str | None:
        """The sort of the value that a term names; None if it names none."""
        index = self._sorts.get(self._key(term))
        return None if index is None else self._context.sort_names[index]

    def of(self, term: Term) -> Hashable:
        """What a term stands for: a number, or a value of a sort; None if no one asked for it."""
        kind = term[0]
        if kind == "value":
            return term[1]  # type: ignore[no-any-return]
        if kind == "linear":
            return value_of(term[1], self._integers)
        if kind == "sum":
            total = term[2]
            for part, coefficient in term[1]:
                value = self.of(part)
                if not isinstance(value, int):
                    return None
                total += coefficient * value
            return total  # type: ignore[no-any-return]
        key = self._key(term)
        index = self._sorts.get(key)
        if index is not None:
            return ("sort", self._context.find(index))
        index = self._ints.get(key)
        return None if index is None else self._integers[index]

    def truth(self, fact: Fact) -> bool | None:
        """Whether what a fact is about holds; None where that is open."""
        if fact.kind == "bool":
            index = self._bools.get(self._key(fact.left))
            return None if index is None else self._context.bool_value(index)
        if fact.kind == "same":
            left, right = self.of(fact.left), self.of(fact.right)
            return None if left is None or right is None else left == right
        total = self.of(("sum", fact.left, fact.right))
        if not isinstance(total, int):
            return None
        return total <= 0 if fact.kind == "<=" else total == 0

    def _key(self, term: Term) -> Hashable:
        if term[0] != "apply":
            return term
        arguments = term[2] if isinstance(term[2], tuple) else term[2].arguments
        return (term[1], *[self.of(argument) for argument in arguments])


class Cover:
    """What the tests of one set of calls cover, and which of them are kept."""

    def __init__(self, interface: type[Interface], calls: Sequence[str]) -> None:
        self._calls = calls
        model: Any = interface  # a class can be hashed, though its instances cannot
        self._trees = [own_paths(model, call) for call in calls]
        self._numbers: dict[Hashable, int] = {}
        self._covered: dict[str, frozenset[int]] = {}
        self._known: dict[tuple[int, Term], Term] = {}

    def of_class(self, context: Context) -> ClassCover:
        """What every test of a class covers, but for its placement."""
        values = KnownValues(context)
        paths = [self._own_path(values, place) for place in range(len(self._calls))]
        items: list[Hashable] = []
        for one, other in combinations(range(len(self._calls)), 2):
            items.append(("paths", one, paths[one].number, other, paths[other].number))
            relations = list(self._relations(values, one, paths[one], other, paths[other]))
            for relation in relations:
                items += [(one, paths[one].number, relation), (other, paths[other].number, relation)]
            items += combinations(relations, 2)
        return ClassCover(tuple(path.number for path in paths), items)

    def adds(self, found: ClassCover) -> bool:
        """Whether a class covers what no test covers that was noted before."""
        if not self._covered:
            return True
        own = [("own", place, number) for place, number in enumerate(found.paths)]
        return any(item not in self._numbers for item in (*found.items, *own))

    def add(self, test_id: str, found: ClassCover, processes: Sequence[int]) -> None:
        """Notes a test of a class, in a placement."""
        placed = [
            (what, place, number, *more)
            for place, number in enumerate(found.paths)
            for what, more in (("own", ()), ("placed", processes))
        ]
        numbers = self._numbers
        self._covered[test_id] = frozenset([numbers.setdefault(item, len(numbers)) for item in (*found.items, *placed)])

    def kept(self) -> set[str]:
        """The ids of the tests that cover everything."""
        missing = set(range(len(self._numbers)))
        heap = [(-len(items), test_id) for test_id, items in self._covered.items()]
        heapq.heapify(heap)
        kept = set()
        while missing:
            gain, test_id = heapq.heappop(heap)
            now = len(self._covered[test_id] & missing)
            if now < -gain:
                if now:
                    heapq.heappush(heap, (-now, test_id))
                continue
            missing -= self._covered[test_id]
            kept.add(test_id)
        return kept

    def _own_path(self, values: KnownValues, place: int) -> OwnPath:
        node = self._trees[place]
        while node.fact is not None:
            truth = values.truth(self._of_place(node.fact, place))
            side = None if truth is None else node.sides.get(truth)
            if side is None:
                break
            node = side
        return node

    def _relations(
        self, values: KnownValues, one: int, mine: OwnPath, other: int, theirs: OwnPath
    ) -> Iterator[Hashable]:
        by_kind: dict[Hashable, list[tuple[Term, Hashable]]] = {}
        for part in theirs.parts:
            by_kind.setdefault(part.kind, []).append((part.term, values.of(self._placed(part.term, other))))
        for part in mine.parts:
            value = values.of(self._placed(part.term, one))
            for term, its in by_kind.get(part.kind, ()):
                yield (one, part.term, other, term, value == its)

    def _of_place(self, fact: Fact, place: int) -> Fact:
        if fact.kind == "bool":
            return Fact("bool", self._placed(fact.left, place), None, fact.holds)
        if fact.kind == "same":
            return Fact("same", self._placed(fact.left, place), self._placed(fact.right, place), fact.holds)
        return Fact(fact.kind, self._placed(("sum", fact.left, 0), place)[1], fact.right, fact.holds)

    def _placed(self, term: Term, place: int) -> Term:
        """A term of the call alone as the call at this place has it: its arguments are called after the place."""
        known = self._known.get((place, term))
        if known is None:
            known = self._known[place, term] = _renamed(
                term, f"{self._calls[place]}.0.", f"{self._calls[place]}.{place}."
            )
        return known


class ClassCover(NamedTuple):
    """What all tests of a class cover: the own path of each call by number, and the rest."""

    paths: tuple[int, ...]
    items: Sequence[Hashable]


def _renamed(term: Term, old: str, new: str) -> Term:
    if term[0] == "constant":
        name = term[1]
        return ("constant", new + name[len(old) :]) if name.startswith(old) else term
    if term[0] == "apply":
        return ("apply", term[1], tuple([_renamed(argument, old, new) for argument in term[2]]))
    if term[0] == "sum":
        return ("sum", tuple([(_renamed(part, old, new), factor) for part, factor in term[1]]), term[2])
    return term
