"""Puts the C program of a test together.

A program is a sequence of fixed parts (`templates/c`) and lines that belong to the test. It builds the set-up in
a fresh directory, runs the calls one after the other in the order that its argument picks, each in the process and
thread that the test asks for and on a core of its own where there are enough, observes, and prints everything as text
in which values of the kernel's own choice are numbered by first appearance. Two lists of such values are equal up to a
bijection exactly if their numbered texts are equal, so the acceptable outcomes stand in the program as text too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from commutant.report.cprogram.calls import definition, form, invocation, result_items, template
from commutant.report.cprogram.literal import comment_lines, file_name, string_literal
from commutant.report.describe import headline, order_text, value_text
from commutant.report.once import Once
from commutant.testgen.testcase import Outcome, PlacedCall, Step, TestCase, Value


def c_program(test: TestCase) -> str:
    """The whole program. Raises UsageError for a test with a call, an argument or a result that has no C form."""
    return "".join(chain.from_iterable(Programs().blocks(test)))


def expected_text(test: TestCase, outcome: Outcome) -> str:
    """What the program prints, but for its last line, if this outcome comes about, in whatever order."""
    return "".join(_expected_lines(test, map(_text_of, _all_results(test, outcome))))


class Programs:
    """Makes the programs of many tests; what tests share is made once."""

    def __init__(self) -> None:
        self._form = Once(lambda step: form(step.call, step.args))
        self._invocation = Once(lambda step: invocation(step.call, step.args))
        self._items = Once(result_items)
        self._text_of = Once(_text_of)

    def blocks(self, test: TestCase) -> list[tuple[str, ...]]:
        """The program as blocks of parts; raises as `c_program`.

        Parts recur from test to test, and so do whole blocks: that is how many programs are kept in little space.
        """
        return [
            ("/*\n", *comment_lines(test.id)),
            tuple(_header(test)),
            (template("prologue.c"),),
            tuple(self._definitions(test)),
            tuple(self._step_functions(test)),
            tuple(_step_table(test)),
            tuple(_orders(test)),
            tuple(self._outcomes(test)),
            (template("harness.c"),),
        ]

    def _definitions(self, test: TestCase) -> Iterator[str]:
        items: dict[str, dict[str, str]] = {}
        uses_posix = False

        def note(step: Step | PlacedCall, values: Iterable[Value]) -> None:
            nonlocal uses_posix
            found = self._form(step)
            uses_posix = uses_posix or found.posix
            known = items.setdefault(found.source, {})
            for value in values:
                known.update(self._items(found, value))

        for setup in test.setup:
            note(setup, [setup.result])
        outcomes = [outcome for same in _distinct_outcomes(test) for outcome in same]
        for index, call in enumerate(test.calls):
            note(call, [outcome.results[index] for outcome in outcomes])
        for index, step in enumerate(test.observe):
            note(step, [outcome.observation[index] for outcome in outcomes])
        if uses_posix:
            yield template("posix.c")
        for source, lines in items.items():
            yield definition(source, "\n".join(lines.values()))

    def _step_functions(self, test: TestCase) -> Iterator[str]:
        yield "\n/* ---- This test: set-up, calls, observation. ---- */\n\n"
        for name, (_, step) in zip(_function_names(test), _named_steps(test), strict=True):
            yield _step_function(name, self._invocation(step))

    def _outcomes(self, test: TestCase) -> Iterator[str]:
        distinct = _distinct_outcomes(test)
        yield "\nstruct outcome {\n    const char *text;\n    const int *times; /* all that are in the text */\n};\n"
        for index, outcomes in enumerate(distinct):
            yield f"\nstatic const struct outcome outcomes_{index}[] = {{\n"
            for outcome in outcomes:
                yield "    {\n"
                texts = list(map(self._text_of, _all_results(test, outcome)))
                yield from map(_line_of_outcome, _expected_lines(test, texts))
                times = list(chain.from_iterable(text.times for text in texts))
                yield f"        , (const int[]){{{', '.join(map(str, times or (0,)))}}}\n    }},\n"
            yield "    {NULL, NULL},\n};\n"
        yield "\nstatic const struct outcome *const outcomes[ORDER_COUNT] = {\n"
        for order in test.orders:
            yield f"    outcomes_{distinct.index(order.outcomes)},\n"
        yield "};\n"


def _distinct_outcomes(test: TestCase) -> list[tuple[Outcome, ...]]:
    """The acceptable outcomes per order, each only once: calls that commute often have the same in every order."""
    distinct: list[tuple[Outcome, ...]] = []
    for order in test.orders:
        if order.outcomes not in distinct:
            distinct.append(order.outcomes)
    return distinct


def _all_results(test: TestCase, outcome: Outcome) -> Iterator[Value]:
    """What a run of the test returns, in the order of its steps."""
    return chain((step.result for step in test.setup), outcome.results, outcome.observation)


@dataclass(frozen=True, slots=True)
class _ResultText:
    """A result as a program prints it: texts and, between them, values that the kernel chose (sort and number), which
    are numbered by first appearance. Times, which are compared apart, stand there without their numbers."""

    pieces: tuple[str | tuple[str, object], ...]
    times: tuple[int, ...]


def _text_of(value: Value) -> _ResultText:
    pieces: list[str | tuple[str, object]] = []
    times: list[int] = []
    _add_pieces(value, pieces, times)
    return _ResultText(tuple(pieces), tuple(times))


def _add_pieces(value: Value, pieces: list[str | tuple[str, object]], times: list[int]) -> None:
    match value:
        case {"sort": str() as sort, "id": chosen}:
            pieces.append((sort, chosen))
        case {"struct": Mapping() as fields}:
            for number, (name, field) in enumerate(fields.items()):
                pieces.append(f"{' ' if number else ''}{value_text(name)}=")
                _add_pieces(field, pieces, times)
        case {"seq": list() as items}:
            pieces.append("[")
            for number, item in enumerate(items):
                pieces.append(", " if number else "")
                _add_pieces(item, pieces, times)
            pieces.append("]")
        case {"time": int(point)}:
            times.append(point)
            pieces.append("time")
        case str():
            pieces.append(value_text(file_name(value)))
        case _:
            pieces.append(value_text(value))


def _expected_lines(test: TestCase, texts: Iterable[_ResultText]) -> Iterator[str]:
    """The lines that a run prints, given what its steps return."""
    numbers: dict[tuple[str, object], int] = {}

    def shown(piece: str | tuple[str, object]) -> str:
        if isinstance(piece, str):
            return piece
        sort, _ = piece
        if piece not in numbers:
            numbers[piece] = sum(1 for known, _ in numbers if known == sort)
        return value_text({"sort": sort, "id": numbers[piece]})

    for (what, _), text in zip(_named_steps(test), texts, strict=True):
        yield f"{what}: {''.join(map(shown, text.pieces))}\n"


@lru_cache(maxsize=1 << 14)
def _line_of_outcome(line: str) -> str:
    return f"        {string_literal(line)}\n"


@lru_cache(maxsize=1 << 14)
def _step_function(name: str, invoked: str) -> str:
    return f"static void {name}(struct result *result) {{ {invoked}; }}\n"


def _named_steps(test: TestCase) -> Iterator[tuple[str, Step | PlacedCall]]:
    for index, step in enumerate(test.setup):
        yield f"set-up {index} {step.call}", step
    for index, call in enumerate(test.calls):
        yield f"call {index} {call.call}", call
    for index, step in enumerate(test.observe):
        yield f"observe {index} {step.call}", step


def _header(test: TestCase) -> Iterator[str]:
    yield from comment_lines(headline(test))
    yield from comment_lines(f"Class: {test.equivalence_class}")
    yield " *\n * Build: cc -pthread -o test test.c        Run: ./test [ORDER]\n"
    for index, order in enumerate(test.orders):
        yield from comment_lines(f"Order {index}: {order_text(test, order)}")
    yield " * Exit code: 0 the outcome is acceptable, 1 it is not, 2 wrong use, 3 the program itself failed.\n"
    yield " * The files are made in a new directory in $TMPDIR or /tmp.\n"
    yield " */\n"


def _step_table(test: TestCase) -> Iterator[str]:
    steps = list(_named_steps(test))
    processes = sorted({step.process for _, step in steps})
    number = {process: index for index, process in enumerate(processes)}
    yield "\nstruct step {\n    const char *what;\n    void (*run)(struct result *result);\n    int process;\n"
    yield "    int core; /* -1 for set-up and observation, which run anywhere */\n};\n\n"
    yield "static const struct step steps[] = {\n"
    for name, (what, step) in zip(_function_names(test), steps, strict=True):
        core = step.core if isinstance(step, PlacedCall) else -1
        yield _table_line(what, name, number[step.process], core)
    yield "};\n\n"
    yield (
        f"enum {{ FIRST_CALL = {len(test.setup)}, CALL_COUNT = {len(test.calls)}, STEP_COUNT = {len(steps)}, "
        f"PROCESS_COUNT = {len(processes)}, ORDER_COUNT = {len(test.orders)} }};\n"
    )


@lru_cache(maxsize=1 << 14)
def _table_line(what: str, function: str, process: int, core: int) -> str:
    return f"    {{{string_literal(what)}, {function}, {process}, {core}}},\n"


def _function_names(test: TestCase) -> list[str]:
    return [
        *(f"setup_{index}" for index in range(len(test.setup))),
        *(f"call_{index}" for index in range(len(test.calls))),
        *(f"observe_{index}" for index in range(len(test.observe))),
    ]


def _orders(test: TestCase) -> Iterator[str]:
    yield "\n/* For each order: the calls as they are run, and every acceptable outcome as text. */\n\n"
    yield "static const int orders[ORDER_COUNT][CALL_COUNT] = {\n"
    for order in test.orders:
        yield f"    {{{', '.join(map(str, order.order))}}},\n"
    yield "};\n"
