"""Equivalence classes of commutative states: on a commutative path, which values are equal and which are not?

One path still leaves patterns open that reach an implementation in different ways. Conflict coverage (paper, section
5.2) makes one test per pattern, and enumerating patterns is more of the same search: at a commutative leaf, decide what
is still open; each leaf below is one class.

What a path has *touched*:

- values: arguments that a call compared, looked up in a map, or left unused in no other way; keys of entries; what is
  stored under an entry that a call read or removed. An entry that was only overwritten holds what no one looked at.
- integers: those that a call compared.

The levels, each including the one before:

- `path`: one test per path. What the path leaves open is taken to be different, and what calls write from what stood
  there.
- `conflict`: which touched values of a sort are equal (names, inodes, pipes, processes, addresses); how touched
  integers stand to each other that belong together (descriptors of a process, offsets and length of a file): equal or
  not, and which is less where a call asked for order; and the variant of each record that a call read or removed (a
  descriptor of a file, of either end of a pipe); and whether a call changes what it writes (`changes`). Contents and
  times are not compared.
- `full`: also which contents are equal, and each flag that the path leaves open (of arguments, of the records that it
  looked at) once on its unusual side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from commutant.analyzer import CallSet, PathOutcome
from commutant.corpus import Level
from commutant.lang import Interface, Struct, Time, struct_fields
from commutant.symbolic import (
    BoolValue,
    Context,
    Decision,
    IntValue,
    MapContent,
    Mark,
    SortValue,
    SymbolicMap,
    current,
    explore,
)
from commutant.symbolic import Literal as Statement
from commutant.testgen.changes import changes


@dataclass(slots=True)
class TouchedUnknowns:
    """The unknowns that a path has touched: values of sorts, and flags."""

    values: dict[int, str] = field(default_factory=dict)
    """Index and sort of each value."""
    flags: dict[int, None] = field(default_factory=dict)
    """Index of each flag."""

    variants: dict[int, None] = field(default_factory=dict)
    """Index of each flag of a record that has no usual side: these tell its variants apart."""

    integers: dict[int, set[int]] = field(default_factory=dict)
    """Indices of the integers in records that name a value, or lie under it, by the value's representative."""

    def add_integers(self, key: Any, record: Any, context: Context) -> None:
        """Adds the integers of a record for each value that it names or lies under: a descriptor's offset and a file's
        length for the file's inode number."""
        if isinstance(record, Struct):
            held = vars(record)
            parts = [held[name] for name in record.relevant() if name in held]
            integers = {variable for part in parts if part.__class__ is IntValue for variable, _ in part.linear[0]}
            if integers:
                contents = context.content_sorts
                for name in (key, *parts):
                    if name.__class__ is SortValue and name.sort not in contents and name.sort != Time.__name__:
                        self.integers.setdefault(context.find(name.index), set()).update(integers)

    def add(self, value: Any, context: Context, *, inside: bool = False) -> None:
        """Adds an unknown, or those that a tuple, sequence or record holds; decides a record's variant."""
        kind = value.__class__
        if kind is SortValue:
            self.values[value.index] = value.sort
        elif kind is BoolValue:
            self.flags[value.index] = None
            if inside and value.index not in context.bool_usual:
                self.variants[value.index] = None
        elif kind is IntValue or kind is SymbolicMap:
            return
        elif isinstance(value, tuple | list):
            for item in value:
                self.add(item, context, inside=inside)
        elif isinstance(value, Struct):
            for name in value.relevant():
                self.add(getattr(value, name), context, inside=True)


@dataclass(frozen=True, slots=True)
class Class:
    """A class of states and arguments: what its context has decided. `path` is the part that the calls asked for."""

    context: Context
    outcome: PathOutcome
    path: tuple[Decision, ...]

    @property
    def beyond_path(self) -> tuple[Decision, ...]:
        """What the level asked for in addition."""
        return self.context.decided(len(self.path))


def classes(call_set: CallSet, level: Level) -> Iterator[Class]:
    """Every class in which the calls commute, and every path on which they do not, in the order of exploration.

    A context is the current one, in which unknowns can be compared, until the next class is asked for: it serves all
    classes, one after the other.
    """

    def program(context: Context) -> tuple[PathOutcome, TouchedUnknowns]:
        outcome = call_set.run(context)
        return outcome, _touched(outcome) if outcome.commutes and level != "path" else TouchedUnknowns()

    for found in explore(program):
        if found.result is not None:
            outcome, touched = found.result
            path = found.decisions[: outcome.decision_count]
            if not outcome.commutes:
                yield Class(found.context, outcome, path)
                continue
            for _ in _refinements(found.context, outcome, touched, level):
                yield Class(found.context, outcome, path)


def _touched(outcome: PathOutcome) -> TouchedUnknowns:
    """What the path under way has touched. Decides those variants of records that the model asks for by itself."""
    context, touched = current(), TouchedUnknowns()
    entries = [(c, n, entry.known) for c in touched_maps(outcome.initial) for n, entry in enumerate(c.entries)]
    for content, number, looked_at in entries:
        entry = content.entries[number]
        touched.add(entry.key, context)
        if looked_at and _is_present(entry.presence, context):
            touched.add(entry.value, context)
            touched.add_integers(entry.key, entry.value, context)
    compared = {index for literal in _literals(context, "same") for index in (literal.left, literal.right)}
    arguments = [value for given in outcome.arguments for value in given.values()]
    for value in [*arguments, *vars(outcome.initial).values()]:
        if not isinstance(value, SortValue) or value.index in compared:
            touched.add(value, context)
    return touched


def _is_present(presence: BoolValue | bool, context: Context) -> bool:
    return presence if isinstance(presence, bool) else context.bool_value(presence.index) is True


def _literals(context: Context, *kinds: str) -> Iterator[Statement]:
    """What was decided on the way to a leaf, and what was taken for granted."""
    for decision in (*context.trail, *context.restrictions):
        if decision.literal.kind in kinds:
            yield decision.literal


def _refinements(context: Context, outcome: PathOutcome, touched: TouchedUnknowns, level: Level) -> Iterator[None]:
    """Brings the context into each state in which it has decided what the level asks for, in addition to what the leaf
    has decided.

    The calls do not run again: what is open here is about unknowns alone. The search is depth-first, and going on to
    the next state takes back what came after the decision whose other side is next.
    """
    changed = [statement for end in outcome.ends for statement in changes(end, context)]
    if level == "path":
        for statement in changed:
            if context.implied(statement) is None:
                context.assume(statement, False)
        yield
        return
    statements = [*_equalities(context, touched, level), *_orders(context, touched)]
    statements += [Statement("bool", flag, None) for flag in touched.variants]
    statements += changed
    open_sides: list[tuple[Mark, int]] = []
    start = 0
    while True:
        for position in range(start, len(statements)):
            if context.implied(statements[position]) is None:
                open_sides.append((context.mark(), position))
                context.assume(statements[position], True)
        yield
        if level == "full":
            yield from _unusual_sides(context, touched)
        if not open_sides:
            return
        mark, decided = open_sides.pop()
        context.take_back(mark)
        context.assume(statements[decided], False)
        start = decided + 1


def _unusual_sides(context: Context, touched: TouchedUnknowns) -> Iterator[None]:
    """Decides each open flag once, on its unusual side."""
    leaf = context.mark()
    for flag in touched.flags:
        if context.bool_value(flag) is None:
            context.assume(Statement("bool", flag, None), not context.bool_usual.get(flag, False))
            yield
            context.take_back(leaf)


def _equalities(context: Context, touched: TouchedUnknowns, level: Level) -> Iterator[Statement]:
    """Each pair of touched values of one sort; contents come last, and at the level `full` only."""
    kinds: dict[str, list[int]] = {}
    for index, sort in touched.values.items():
        if sort != Time.__name__ and (level == "full" or sort not in context.content_sorts):
            kinds.setdefault(sort, []).append(index)
    for sort in sorted(kinds, key=context.content_sorts.__contains__):
        for position, index in enumerate(kinds[sort]):
            for other in kinds[sort][:position]:
                yield Statement("same", min(index, other), max(index, other))


def _orders(context: Context, touched: TouchedUnknowns) -> Iterator[Statement]:
    """For each pair of integers that belong together: are they equal, and which is less?

    Those belong together that calls compared, directly or through others, and those that calls looked at in records of
    one value. Only differences count as comparisons: that a sum has a sign says nothing of how its parts stand to each
    other. Which is less is asked where a call asked for order.
    """
    groups: dict[int, list[int]] = {}
    ordered: set[int] = set()

    def join(variables: Sequence[int]) -> None:
        joined = groups.setdefault(variables[0], [variables[0]])
        for variable in variables[1:]:
            other = groups.setdefault(variable, [variable])
            if other is not joined:
                joined += other
                for member in other:
                    groups[member] = joined

    looked_at: set[int] = set()
    for literal in _literals(context, "<=", "=="):
        terms = literal.left[0]
        looked_at.update(variable for variable, _ in terms)
        if len(terms) == 2 and terms[0][1] == -terms[1][1]:
            join([variable for variable, _ in terms])
            if literal.kind == "<=":
                ordered.add(terms[0][0])
    for variables in touched.integers.values():
        if of_one_value := sorted(variables & looked_at):
            join(of_one_value)
    for group in {id(group): group for group in groups.values()}.values():
        by_order = not ordered.isdisjoint(group)
        for position, variable in enumerate(sorted(group)):
            for other in sorted(group)[:position]:
                difference = (IntValue.variable(other) - IntValue.variable(variable)).linear
                yield Statement("==", difference, None)
                if by_order:
                    yield Statement("<=", difference, None)


def touched_maps(initial: Interface) -> Iterator[MapContent]:
    """Every map of the initial state that a path may have touched, those within entries included; grows while read."""
    pending = list(vars(initial).values())
    for value in pending:
        if value.__class__ is SymbolicMap:
            yield value.content
            pending += [entry.value for entry in value.content.entries if entry.known]
        elif isinstance(value, Struct):
            pending += [part for name, part in vars(value).items() if name in struct_fields(type(value))]
