"""A test's calls in loops, each on a CPU of its own: what a large machine is asked after `prove`.

In the manner of will-it-scale: threads make their call as often as they can, and are counted each second. Unlike
there, the tasks of a copy are those of a test that commutes, in the state that its set-up builds; further tasks are
further copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from commutant.corpus import PlacedCall, Step, TestCase, headline, processes
from commutant.report.cprogram.calls import definition, form, invocation, result_items, template
from commutant.report.cprogram.expected import SETUP
from commutant.report.cprogram.literal import comment_lines, string_literal
from commutant.report.cprogram.repeat import Repeated, repeated
from commutant.report.cprogram.state import state_after
from commutant.support import UsageError


@dataclass(frozen=True, slots=True)
class Loop:
    """A test whose calls can be repeated: `failing` of them return an error, and `undone_by` calls undo them."""

    test: TestCase
    calls: tuple[Repeated, ...]

    @property
    def weight(self) -> tuple[int, int, int, str]:
        """Loops of less weight show more: calls that do something, little that undoes them, a short set-up."""
        failing = sum(not call.succeeds for call in self.calls)
        return failing, sum(call.undone_by for call in self.calls), len(self.test.setup), self.test.id


def loop_of(test: TestCase) -> Loop | None:
    """The test as a loop; None if a call cannot be repeated, or has no C form."""
    try:
        for step in test.setup:
            result_items(form(step.call, step.args), step.result)
        steps: tuple[Step | PlacedCall, ...] = (*test.setup, *test.calls)
        for one in steps:
            invocation(one.call, one.args)
    except UsageError:
        return None
    state = state_after(test.setup)
    results = test.orders[0].outcomes[0].results
    calls = [
        repeated(call, result, state, number, _names_of(test, number))
        for number, (call, result) in enumerate(zip(test.calls, results, strict=True))
    ]
    return None if None in calls else Loop(test, tuple(call for call in calls if call is not None))


def _names_of(test: TestCase, number: int) -> frozenset[str]:
    """The names in the arguments of all calls but one."""
    others = (call for at, call in enumerate(test.calls) if at != number)
    return frozenset(value for call in others for value in call.args.values() if isinstance(value, str))


def loop_program(loop: Loop, evidence: Iterable[str] = ()) -> str:
    """The C program; `evidence` are lines of its first comment."""
    return "".join(_program(loop, evidence))


def _program(loop: Loop, evidence: Iterable[str]) -> Iterator[str]:
    test = loop.test
    yield "/*\n"
    yield from comment_lines(headline(test.calls))
    yield from comment_lines(f"The calls of the test {test.id}, each in a loop.")
    for line in evidence:
        yield from comment_lines(line)
    yield " *\n * Build: cc -O2 -Wall -pthread -o loop loop.c        Run: ./loop [TASKS [SECONDS]]\n"
    yield " * TASKS is a multiple of the number of calls, for that many copies, each call on a CPU of its own.\n"
    yield " * Exit code: 0, 1 if a call returned otherwise than in the test, 2 wrong use, 3 the program failed.\n"
    yield " * The files are made in a new directory in $TMPDIR or /tmp.\n */\n"
    yield template("prologue.c").replace("#include <stdio.h>", "#include <stdatomic.h>\n#include <stdio.h>")
    yield template("posix.c")
    items: dict[str, dict[str, str]] = {}
    for step in test.setup:
        call = form(step.call, step.args)
        items.setdefault(call.source, {}).update(result_items(call, step.result))
    for source, lines in items.items():
        yield definition(source, "\n".join(lines.values()))
    yield template("loop_calls.c")
    for number, one in enumerate(loop.calls):
        yield f"static int call_{number}(void)\n{{\n" + "".join(f"    {line}\n" for line in one.body) + "}\n\n"
        yield f"static void prepare_{number}(void)\n{{\n" + "".join(f"    {line}\n" for line in one.prepare) + "}\n\n"
    for name, step in zip(SETUP.functions(test.setup), test.setup, strict=True):
        yield f"static void {name}(struct result *result) {{ {invocation(step.call, step.args)}; }}\n"
    yield from _tables(loop)
    yield template("loop.c")


def _tables(loop: Loop) -> Iterator[str]:
    test = loop.test
    numbered = sorted({*processes(test.setup), *processes(test.calls)})
    yield "\nstatic const struct step {\n    const char *what;\n    void (*run)(struct result *result);\n"
    yield "    int process;\n} steps[] = {\n"
    for what, function, step in zip(SETUP.names(test.setup), SETUP.functions(test.setup), test.setup, strict=True):
        yield f"    {{{string_literal(what)}, {function}, {numbered.index(step.process)}}},\n"
    yield "    {NULL, NULL, 0},\n};\n\nstatic const struct repeated {\n    const char *what;\n    int (*make)(void);\n"
    yield "    void (*prepare)(void);\n    int process, succeeds;\n} repeated[] = {\n"
    for number, (call, one) in enumerate(zip(test.calls, loop.calls, strict=True)):
        process = numbered.index(call.process)
        yield f"    {{{string_literal(call.call)}, call_{number}, prepare_{number}, {process}, {int(one.succeeds)}}},\n"
    yield f"}};\n\nenum {{ CALL_COUNT = {len(test.calls)}, STEP_COUNT = {len(test.setup)}, "
    yield f"PROCESS_COUNT = {len(numbered)} }};\n"
