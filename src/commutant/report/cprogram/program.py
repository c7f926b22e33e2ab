"""Puts the C program of a test together.

A program is a sequence of fixed parts (`templates/c`) and lines that belong to the test. It builds the set-up in
a fresh directory, runs the calls one after the other in the order that its argument picks, each in the process and
thread that the test asks for and on a core of its own where there are enough, observes, and prints everything as text
in which values of the kernel's own choice are numbered by first appearance. Two lists of such values are equal up to a
bijection exactly if their numbered texts are equal, so the acceptable outcomes stand in the program as text too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from commutant.report.cprogram.calls import CCall, definition, form, invocation, template
from commutant.report.cprogram.literal import comment_lines, file_name, string_literal
from commutant.report.describe import headline, order_text, value_text
from commutant.testgen.testcase import Outcome, PlacedCall, Step, TestCase, Value


def c_program(test: TestCase) -> str:
    """The whole program. Raises UsageError for a test with a call, an argument or a result that has no C form."""
    return "".join(chain.from_iterable(c_program_blocks(test)))


def c_program_blocks(test: TestCase) -> list[tuple[str, ...]]:
    """The program as blocks of parts.

    Parts recur from test to test, and so do whole blocks: that is how many programs are kept in little space.
    """
    return [
        ("/*\n", *_lines(comment_lines(test.id))),
        tuple(_header(test)),
        (template("prologue.c"),),
        tuple(_definitions(test)),
        tuple(_step_functions(test)),
        tuple(_step_table(test)),
        tuple(_orders(test)),
        tuple(_outcomes(test)),
        (template("harness.c"),),
    ]


def expected_text(test: TestCase, outcome: Outcome) -> str:
    """What the program prints, but for its last line, if this outcome comes about, in whatever order."""
    numbers: dict[tuple[str, object], int] = {}
    results = [
        *(step.result for step in test.setup),
        *outcome.results,
        *outcome.observation,
    ]
    return "".join(
        f"{what}: {value_text(_numbered(result, numbers))}\n"
        for (what, _), result in zip(_named_steps(test), results, strict=True)
    )


def _named_steps(test: TestCase) -> Iterator[tuple[str, Step | PlacedCall]]:
    for index, step in enumerate(test.setup):
        yield f"set-up {index} {step.call}", step
    for index, call in enumerate(test.calls):
        yield f"call {index} {call.call}", call
    for index, step in enumerate(test.observe):
        yield f"observe {index} {step.call}", step


def _lines(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield text + "\n"


def _header(test: TestCase) -> Iterator[str]:
    yield from _lines(comment_lines(headline(test)))
    yield from _lines(comment_lines(f"Class: {test.equivalence_class}"))
    yield " *\n * Build: cc -pthread -o test test.c        Run: ./test [ORDER]\n"
    for index, order in enumerate(test.orders):
        yield from _lines(comment_lines(f"Order {index}: {order_text(test, order)}"))
    yield " * Exit code: 0 the outcome is acceptable, 1 it is not, 2 wrong use, 3 the program itself failed.\n"
    yield " * The files are made in a new directory in $TMPDIR or /tmp.\n"
    yield " */\n"


def _definitions(test: TestCase) -> Iterator[str]:
    forms: dict[str, CCall] = {}
    results: dict[str, list[Value]] = {}

    def note(step: Step | PlacedCall, values: Iterable[Value]) -> None:
        found = form(step.call, step.args)
        forms[found.source] = found
        results.setdefault(found.source, []).extend(values)

    for setup in test.setup:
        note(setup, [setup.result])
    outcomes = [outcome for order in test.orders for outcome in order.outcomes]
    for index, call in enumerate(test.calls):
        note(call, [outcome.results[index] for outcome in outcomes])
    for index, step in enumerate(test.observe):
        note(step, [outcome.observation[index] for outcome in outcomes])
    if any(found.posix for found in forms.values()):
        yield template("posix.c")
    for source, values in results.items():
        yield definition(forms[source], values)


def _step_functions(test: TestCase) -> Iterator[str]:
    yield "\n/* ---- This test: set-up, calls, observation. ---- */\n\n"
    for name, (_, step) in zip(_function_names(test), _named_steps(test), strict=True):
        yield f"static void {name}(struct result *result) {{ {invocation(step.call, step.args)}; }}\n"


def _step_table(test: TestCase) -> Iterator[str]:
    steps = list(_named_steps(test))
    processes = sorted({step.process for _, step in steps})
    number = {process: index for index, process in enumerate(processes)}
    yield "\nstruct step {\n    const char *what;\n    void (*run)(struct result *result);\n    int process;\n"
    yield "    int core; /* -1 for set-up and observation, which run anywhere */\n};\n\n"
    yield "static const struct step steps[] = {\n"
    for name, (what, step) in zip(_function_names(test), steps, strict=True):
        core = step.core if isinstance(step, PlacedCall) else -1
        yield f"    {{{string_literal(what)}, {name}, {number[step.process]}, {core}}},\n"
    yield "};\n\n"
    yield (
        f"enum {{ FIRST_CALL = {len(test.setup)}, CALL_COUNT = {len(test.calls)}, STEP_COUNT = {len(steps)}, "
        f"PROCESS_COUNT = {len(processes)}, ORDER_COUNT = {len(test.orders)} }};\n"
    )


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


def _outcomes(test: TestCase) -> Iterator[str]:
    distinct: list[tuple[Outcome, ...]] = []  # calls that commute often have the same in every order
    for order in test.orders:
        if order.outcomes not in distinct:
            distinct.append(order.outcomes)
    yield "\nstruct outcome {\n    const char *text;\n    const int *times; /* all that are in the text */\n};\n"
    for index, outcomes in enumerate(distinct):
        yield f"\nstatic const struct outcome outcomes_{index}[] = {{\n"
        for outcome in outcomes:
            yield "    {\n"
            for line in expected_text(test, outcome).splitlines(keepends=True):
                yield f"        {string_literal(line)}\n"
            times = _times(test, outcome)
            yield f"        , (const int[]){{{', '.join(map(str, times or (0,)))}}}\n    }},\n"
        yield "    {NULL, NULL},\n};\n"
    yield "\nstatic const struct outcome *const outcomes[ORDER_COUNT] = {\n"
    for order in test.orders:
        yield f"    outcomes_{distinct.index(order.outcomes)},\n"
    yield "};\n"


def _times(test: TestCase, outcome: Outcome) -> tuple[int, ...]:
    """All points in time of an outcome, in the order of its text."""
    return tuple(
        chain.from_iterable(
            map(_times_of, (*(step.result for step in test.setup), *outcome.results, *outcome.observation))
        )
    )


def _times_of(value: Value) -> Iterator[int]:
    match value:
        case {"time": int(point)}:
            yield point
        case {"struct": Mapping() as fields}:
            yield from chain.from_iterable(map(_times_of, fields.values()))
        case {"seq": list() as items}:
            yield from chain.from_iterable(map(_times_of, items))


def _numbered(value: Value, numbers: dict[tuple[str, object], int]) -> Value:
    """The value with what the kernel chose numbered per sort by first appearance, and times, which are compared apart,
    without their numbers."""
    match value:
        case {"sort": str() as sort, "id": chosen}:
            same_sort = sum(1 for known, _ in numbers if known == sort)
            return {"sort": sort, "id": numbers.setdefault((sort, chosen), same_sort)}
        case {"struct": Mapping() as struct}:
            return {"struct": {name: _numbered(field, numbers) for name, field in struct.items()}}
        case {"seq": list() as items}:
            return {"seq": [_numbered(item, numbers) for item in items]}
        case {"time": _}:
            return "time"
        case str():
            return file_name(value)
        case _:
            return value
