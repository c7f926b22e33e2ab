"""Puts the C program of a test together.

A program is a sequence of fixed parts (`templates/c`) and lines that belong to the test. It builds the set-up in
a fresh directory, runs the calls one after the other in the order that its argument picks, each in the process and
thread that the test asks for and on a core of its own where there are enough, observes, and prints everything as text
in which values of the kernel's own choice are numbered by first appearance. Two lists of such values are equal up to a
bijection exactly if their numbered texts are equal, so the acceptable outcomes stand in the program as text too.

Tests share set-ups, calls and observations, so a program is made of blocks of which each depends on as few of these as
it can: programs of many tests cost little more than saying which blocks they are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Generic, TypeVar

from commutant.corpus import (
    ExpectedOutcome,
    Order,
    PlacedCall,
    SetupStep,
    Step,
    TestCase,
    Value,
    headline,
    order_text,
    processes,
)
from commutant.report.cprogram.calls import CCall, definition, form, invocation, result_items, template
from commutant.report.cprogram.expected import CALLS, OBSERVE, SETUP, Chosen, Group, Printer
from commutant.report.cprogram.literal import comment_lines, string_literal
from commutant.support import IdentityCache, Made, UsageError, map_unique

Block = TypeVar("Block")
Shared = TypeVar("Shared", bound=Hashable)
Steps = Sequence[Step | PlacedCall]

Needs = tuple[tuple[str, bool, tuple[tuple[str, str], ...]], ...]
"""Functions that steps need: per call's source, whether it uses `posix.c`, and the lines that tell its results."""


def c_program(test: TestCase) -> str:
    """The whole program. Raises UsageError for a test with a call, an argument or a result that has no C form."""
    (blocks,) = Programs("".join).of([test])
    if isinstance(blocks, Unsupported):
        raise UsageError(blocks.why)
    return "".join(blocks)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Why a test has no program: an error's text without the error, which would hold all that it came through."""

    why: str


@dataclass(frozen=True, slots=True)
class _Steps(Generic[Block]):
    """What a program takes from a group of steps alone: their functions, and the processes that make them."""

    functions: Block
    processes: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Lines(Generic[Block]):
    """What is printed for a group of steps, as a block; its times; all values chosen up to here; and which functions
    in C tell such results."""

    block: Block
    times: tuple[int, ...]
    chosen: tuple[Chosen, ...]
    needs: Needs


@dataclass(frozen=True, slots=True)
class _Orders(Generic[Block]):
    """What a program takes from its orders alone: the orders, their table, and the acceptable outcomes, each list of
    them once; `picks` says which list each order has."""

    orders: tuple[tuple[int, ...], ...]
    table: Block
    distinct: tuple[tuple[ExpectedOutcome, ...], ...]
    picks: Block


class _UnsupportedTests(Exception):
    """Tests, by their places among those asked for, have no program."""

    def __init__(self, refusals: Mapping[int, Unsupported]) -> None:
        super().__init__(refusals)
        self.refusals = refusals


class Programs(Generic[Block]):
    """Makes programs as lists of blocks; `keep` makes, of the parts of a block, what the caller keeps of it.

    Parts recur from block to block, and blocks from test to test: what tests share is made once.
    """

    def __init__(self, keep: Callable[[Iterable[str]], Block]) -> None:
        self._keep = keep
        self._shared: dict[Hashable, Hashable] = {}
        self._form = IdentityCache(lambda step: form(step.call, step.args))
        self._items = IdentityCache(result_items)
        self._printer = Printer()
        self._text = cache(lambda text: keep((text,)))

    def of(self, tests: Sequence[TestCase]) -> list[list[Block] | Unsupported]:
        """The programs of the tests in their order; for one that has none, why `c_program` raises."""
        try:
            return list(self._programs(tests))
        except _UnsupportedTests as error:
            refusals = error.refusals
        others = iter(self.of([test for place, test in enumerate(tests) if place not in refusals]))
        return [refusals.get(place) or next(others) for place in range(len(tests))]

    def _programs(self, tests: Sequence[TestCase]) -> Iterator[list[Block]]:
        keep, text = self._keep, self._text
        setups, calls, observes = ([getattr(test, part) for test in tests] for part in ("setup", "calls", "observe"))
        every = range(len(tests))
        setup_steps = self._each(every, partial(self._new_steps, SETUP), setups)
        call_steps = self._each(every, partial(self._new_steps, CALLS), calls)
        observe_steps = self._each(every, partial(self._new_steps, OBSERVE), observes)
        setup_lines = self._each(every, self._new_setup_lines, setups)
        orders = map_unique(self._new_orders, [test.orders for test in tests])

        owners = [place for place in every for same in orders[place].distinct for _ in same]
        outcomes = [outcome for place in every for same in orders[place].distinct for outcome in same]
        called = self._each(
            owners,
            partial(self._new_lines, CALLS),
            [calls[place] for place in owners],
            [outcome.results for outcome in outcomes],
            [setup_lines[place].chosen for place in owners],
        )
        observed = self._each(
            owners,
            partial(self._new_lines, OBSERVE),
            [observes[place] for place in owners],
            [outcome.observation for outcome in outcomes],
            [lines.chosen for lines in called],
        )
        lines_of_outcomes = zip(called, observed, strict=True)

        numbered = map_unique(
            lambda *sets: self._one_of(tuple(sorted(frozenset().union(*sets)))),
            *([steps.processes for steps in column] for column in (setup_steps, call_steps, observe_steps)),
        )
        ways = [one.orders for one in orders]
        headlines = map_unique(lambda calls: keep(comment_lines(headline(calls))), calls)
        headers = map_unique(lambda calls, ways: keep(_header(calls, ways)), calls, ways)
        tables = [
            map_unique(
                lambda steps, numbered, group=group: keep(_table_lines(group, steps, numbered)), column, numbered
            )
            for group, column in ((SETUP, setups), (CALLS, calls), (OBSERVE, observes))
        ]
        class_block = cache(lambda words: keep(comment_lines(f"Class: {words}")))
        sizes = cache(lambda *counts: keep((_sizes(*counts),)))
        times = cache(lambda points: keep((_times(points),)))
        definitions = IdentityCache(lambda *needs: keep(_definitions(needs)))
        prologue, harness = text(template("prologue.c")), text(template("harness.c"))
        step_type, no_more, outcome_begins = text(_STEP_TYPE), text("    {NULL, NULL},\n};\n"), text("    {\n")
        for place, test in enumerate(tests):
            first, needs, accepted = setup_lines[place], [setup_lines[place].needs], []
            for number, same in enumerate(orders[place].distinct):
                accepted.append(text(f"\nstatic const struct outcome outcomes_{number}[] = {{\n"))
                for _ in same:
                    call, observe = next(lines_of_outcomes)
                    needs += call.needs, observe.needs
                    points = first.times + call.times + observe.times
                    accepted += outcome_begins, first.block, call.block, observe.block, times(points)
                accepted.append(no_more)
            yield [
                keep(("/*\n", *comment_lines(test.id))),
                headlines[place],
                class_block(test.equivalence_class),
                headers[place],
                prologue,
                definitions(*needs),
                setup_steps[place].functions,
                call_steps[place].functions,
                observe_steps[place].functions,
                step_type,
                *[table[place] for table in tables],
                sizes(len(test.setup), len(test.calls), len(test.observe), len(numbered[place]), len(ways[place])),
                orders[place].table,
                *accepted,
                orders[place].picks,
                harness,
            ]

    def _each(self, owners: Sequence[int], make: Callable[..., Made], *columns: Sequence[object]) -> list[Made]:
        """As `once.each`, for rows of these tests; raises _Refused for those of which `make` raises UsageError."""

        def attempt(*row: object) -> Made | Unsupported:
            try:
                return make(*row)
            except UsageError as error:
                return Unsupported(str(error))

        made: list[Made] = []
        refusals: dict[int, Unsupported] = {}
        for owner, one in zip(owners, map_unique(attempt, *columns), strict=True):
            if isinstance(one, Unsupported):
                refusals.setdefault(owner, one)
            else:
                made.append(one)
        if refusals:
            raise _UnsupportedTests(refusals)
        return made

    def _one_of(self, value: Shared) -> Shared:
        """The same object for equal values, so that it says by its identity which one it is."""
        return self._shared.setdefault(value, value)  # type: ignore[return-value]

    def _new_steps(self, group: Group, steps: Steps) -> _Steps[Block]:
        heading = ["\n/* ---- This test: set-up, calls, observation. ---- */\n\n"] if group is SETUP else []
        functions = (
            f"static void {name}(struct result *result) {{ {invocation(step.call, step.args)}; }}\n"
            for name, step in zip(group.functions(steps), steps, strict=True)
        )
        return _Steps(self._keep((*heading, *functions)), self._one_of(frozenset(processes(steps))))

    def _new_setup_lines(self, setup: Sequence[SetupStep]) -> _Lines[Block]:
        return self._new_lines(SETUP, setup, [step.result for step in setup], ())

    def _new_lines(
        self, group: Group, steps: Steps, results: Sequence[Value], chosen: tuple[Chosen, ...]
    ) -> _Lines[Block]:
        needs: dict[str, tuple[CCall, dict[str, str]]] = {}
        for step, result in zip(steps, results, strict=True):
            call = self._form(step)
            _, items = needs.setdefault(call.source, (call, {}))
            items.update(self._items(call, result))
        shown = self._printer.printed(group.names(steps), results, chosen)
        return _Lines(
            self._keep(f"        {string_literal(line)}\n" for line in shown.lines),
            shown.times,
            self._one_of(shown.chosen),
            self._one_of(tuple((source, call.posix, tuple(items.items())) for source, (call, items) in needs.items())),
        )

    def _new_orders(self, orders: Sequence[Order]) -> _Orders[Block]:
        distinct: list[tuple[ExpectedOutcome, ...]] = []  # calls that commute often have the same in every order
        for order in orders:
            if order.outcomes not in distinct:
                distinct.append(order.outcomes)
        picks = "".join(f"    outcomes_{distinct.index(order.outcomes)},\n" for order in orders)
        ways = self._one_of(tuple(order.order for order in orders))
        table = "".join(f"    {{{', '.join(map(str, order))}}},\n" for order in ways)
        return _Orders(
            ways,
            self._text(f"{_ORDERS}{table}}};\n{_OUTCOME_TYPE}"),
            tuple(distinct),
            self._text(f"\nstatic const struct outcome *const outcomes[ORDER_COUNT] = {{\n{picks}}};\n"),
        )


_STEP_TYPE = """
struct step {
    const char *what;
    void (*run)(struct result *result);
    int process;
    int core; /* -1 for set-up and observation, which run anywhere */
};

static const struct step steps[] = {
"""

_ORDERS = """
/* For each order: the calls as they are run, and every acceptable outcome as text. */

static const int orders[ORDER_COUNT][CALL_COUNT] = {
"""

_OUTCOME_TYPE = """
struct outcome {
    const char *text;
    const int *times; /* all that are in the text */
};
"""


def _header(calls: Sequence[PlacedCall], orders: Sequence[tuple[int, ...]]) -> Iterator[str]:
    yield " *\n * Build: cc -pthread -o test test.c        Run: ./test [ORDER]\n"
    for index, order in enumerate(orders):
        yield from comment_lines(f"Order {index}: {order_text(calls, order)}")
    yield " * Exit code: 0 the outcome is acceptable, 1 it is not, 2 wrong use, 3 the program itself failed.\n"
    yield " * The files are made in a new directory in $TMPDIR or /tmp.\n"
    yield " */\n"


def _definitions(needs: Iterable[Needs]) -> Iterator[str]:
    """The functions of all calls, each telling all that some of its results hold."""
    sources: dict[str, dict[str, str]] = {}
    uses_posix = False
    for one in needs:
        for source, posix, items in one:
            uses_posix = uses_posix or posix
            sources.setdefault(source, {}).update(items)
    if uses_posix:
        yield template("posix.c")
    for source, lines in sources.items():
        yield definition(source, "\n".join(lines.values()))


def _table_lines(group: Group, steps: Steps, numbered: Sequence[int]) -> Iterator[str]:
    """The steps' rows in the table of steps; processes are numbered from 0."""
    for what, function, step in zip(group.names(steps), group.functions(steps), steps, strict=True):
        core = step.core if isinstance(step, PlacedCall) else -1
        yield f"    {{{string_literal(what)}, {function}, {numbered.index(step.process)}, {core}}},\n"


def _sizes(setup: int, calls: int, observe: int, process_count: int, orders: int) -> str:
    return (
        f"}};\n\nenum {{ FIRST_CALL = {setup}, CALL_COUNT = {calls}, STEP_COUNT = {setup + calls + observe}, "
        f"PROCESS_COUNT = {process_count}, ORDER_COUNT = {orders} }};\n"
    )


def _times(times: Sequence[int]) -> str:
    return f"        , (const int[]){{{', '.join(map(str, times or (0,)))}}}\n    }},\n"
