"""Puts the C program of a test together.

A program is a sequence of parts: fixed ones (`templates/c`) and lines that belong to the test. It builds the set-up in
a fresh directory, runs the calls one after the other in the order that its argument picks, each in the process and
thread that the test asks for and on a core of its own where there are enough, observes, and prints everything as text
in which values of the kernel's own choice are numbered by first appearance. Two lists of such values are equal up to a
bijection exactly if their numbered texts are equal, so the acceptable outcomes stand in the program as text too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from commutant.errors import UsageError
from commutant.report.cprogram.calls import definition, invocation, template
from commutant.report.cprogram.literal import comment_lines, string_literal
from commutant.report.describe import headline, order_text, value_text
from commutant.testgen.testcase import Order, Outcome, PlacedCall, Step, TestCase, Value


def c_program(test: TestCase) -> str:
    """The whole program. Raises UsageError for a test with a call, an argument or a result that has no C form."""
    return "".join(c_program_parts(test))


def c_program_parts(test: TestCase) -> list[str]:
    """The program in parts that recur from test to test, so that many programs can be kept in little space."""
    return list(
        chain(
            _header(test),
            [template("prologue.c")],
            _definitions(test),
            _steps(test),
            _orders(test),
            [template("harness.c")],
        )
    )


def expected_text(test: TestCase, order: Order, outcome: Outcome) -> str:
    """What the program prints, but for its last line, if this outcome comes about."""
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


def _header(test: TestCase) -> Iterator[str]:
    yield "/*\n"
    for line in chain(
        comment_lines(test.id),
        comment_lines(headline(test).replace("∥", "||")),
        comment_lines(f"Class: {test.equivalence_class}"),
        [" *", " * Build: cc -pthread -o test test.c        Run: ./test [ORDER]"],
    ):
        yield line + "\n"
    for index, order in enumerate(test.orders):
        for line in comment_lines(f"Order {index}: {order_text(test, order)}"):
            yield line + "\n"
    yield " * Exit code: 0 the outcome is acceptable, 1 it is not, 2 wrong use, 3 the program itself failed.\n"
    yield " * The files are made in a new directory in $TMPDIR or /tmp.\n"
    yield " */\n"


def _definitions(test: TestCase) -> Iterator[str]:
    results: dict[str, list[Value]] = {}
    for _, step in _named_steps(test):
        results.setdefault(step.call, [])
    for setup in test.setup:
        results[setup.call].append(setup.result)
    called = [*(call.call for call in test.calls), *(step.call for step in test.observe)]
    for order in test.orders:
        for outcome in order.outcomes:
            for call, value in zip(called, (*outcome.results, *outcome.observation), strict=True):
                results[call].append(value)
    for call, values in results.items():
        yield definition(call, values)


def _steps(test: TestCase) -> Iterator[str]:
    processes = sorted({step.process for _, step in _named_steps(test)})
    number = {process: index for index, process in enumerate(processes)}
    names = [*(f"setup_{index}" for index in range(len(test.setup)))]
    names += [f"call_{index}" for index in range(len(test.calls))]
    names += [f"observe_{index}" for index in range(len(test.observe))]
    steps = list(_named_steps(test))
    yield "\n/* ---- This test: set-up, calls, observation. ---- */\n\n"
    for name, (_, step) in zip(names, steps, strict=True):
        yield f"static void {name}(struct result *result) {{ {invocation(step.call, step.args)}; }}\n"
    yield "\nstruct step {\n    const char *what;\n    void (*run)(struct result *result);\n    int process;\n"
    yield "    int core; /* -1 for set-up and observation, which run anywhere */\n};\n\n"
    yield "static const struct step steps[] = {\n"
    for name, (what, step) in zip(names, steps, strict=True):
        core = step.core if isinstance(step, PlacedCall) else -1
        yield f"    {{{string_literal(what)}, {name}, {number[step.process]}, {core}}},\n"
    yield "};\n\n"
    yield (
        f"enum {{ FIRST_CALL = {len(test.setup)}, CALL_COUNT = {len(test.calls)}, STEP_COUNT = {len(steps)}, "
        f"PROCESS_COUNT = {len(processes)}, ORDER_COUNT = {len(test.orders)} }};\n"
    )


def _orders(test: TestCase) -> Iterator[str]:
    yield "\n/* For each order: the calls as they are run, and every acceptable outcome as text. */\n\n"
    yield "static const int orders[ORDER_COUNT][CALL_COUNT] = {\n"
    for order in test.orders:
        yield f"    {{{', '.join(map(str, order.order))}}},\n"
    yield "};\n"
    numbers: dict[tuple[str, ...], int] = {}
    for order in test.orders:
        texts = tuple(expected_text(test, order, outcome) for outcome in order.outcomes)
        if texts in numbers:
            continue
        numbers[texts] = len(numbers)
        yield f"\nstatic const char *const outcomes_{numbers[texts]}[] = {{\n"
        for text in texts:
            lines = text.splitlines(keepends=True)
            for line in lines:
                yield f"    {string_literal(line)}{',' if line is lines[-1] else ''}\n"
        yield "    NULL,\n};\n"
    yield "\nstatic const char *const *const outcomes[ORDER_COUNT] = {\n"
    for order in test.orders:
        texts = tuple(expected_text(test, order, outcome) for outcome in order.outcomes)
        yield f"    outcomes_{numbers[texts]},\n"
    yield "};\n"


def _numbered(value: Value, numbers: dict[tuple[str, object], int]) -> Value:
    """The value with what the kernel chose numbered per sort by first appearance."""
    match value:
        case {"sort": str() as sort, "id": chosen}:
            same_sort = sum(1 for known, _ in numbers if known == sort)
            return {"sort": sort, "id": numbers.setdefault((sort, chosen), same_sort)}
        case {"struct": Mapping() as struct}:
            return {"struct": {name: _numbered(field, numbers) for name, field in struct.items()}}
        case {"time": _}:
            raise UsageError("a C program cannot check times (use --as json)")
        case _:
            return value
