"""A test case in words: the one place that says how calls, values and orders read, for the terminal and for the page.

Every function returns text that is safe to show (see `commutant.report.text`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from commutant.mtrace.finding import Access, Finding
from commutant.report.text import safe_text
from commutant.testgen.testcase import Order, PlacedCall, Step, TestCase, Value

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def value_text(value: Value) -> str:
    """A value of the table "Values" in docs/ARCHITECTURE.md: `0`, `ENOENT`, `Inum#0`, `ino=Inum#0 nlink=1`."""
    match value:
        case None:
            return "-"
        case bool():
            return "true" if value else "false"
        case str():
            return safe_text(value)
        case {"errno": name} | {"signal": name}:
            return safe_text(str(name))
        case {"sort": sort, "id": number}:
            return safe_text(f"{sort}#{number}")
        case {"time": point}:
            return safe_text(f"time {point}")
        case {"struct": Mapping() as fields}:
            return " ".join(f"{safe_text(str(name))}={value_text(field)}" for name, field in fields.items())
        case {"seq": list() as items}:
            return f"[{', '.join(map(value_text, items))}]"
        case _:
            return safe_text(str(value))


def arguments_text(args: Mapping[str, Value]) -> str:
    """The arguments as a call shows them: flags that are set by name alone, flags that are not set left out."""
    shown = []
    for name, value in args.items():
        if value is True:
            shown.append(safe_text(name))
        elif value is not False:
            shown.append(f"{safe_text(name)}={value_text(value)}")
    return ", ".join(shown)


def call_text(call: PlacedCall | Step) -> str:
    """`rename(src=n0, dst=n2)`."""
    return f"{safe_text(call.call)}({arguments_text(call.args)})"


def place_text(call: PlacedCall) -> str:
    """`core 0, process 0, thread 1`."""
    return f"core {call.core}, process {call.process}, thread {call.thread}"


def headline(test: TestCase) -> str:
    """All calls side by side: `link(old=n0, new=n1) ∥ rename(src=n0, dst=n2)`."""
    return side_by_side(map(call_text, test.calls))


def side_by_side(calls: Iterable[str]) -> str:
    """The calls of a headline."""
    return " ∥ ".join(calls)


def placement_text(test: TestCase) -> str:
    """Who makes the calls, in a word or two: `threads`, `processes`, `threads of 2 processes`."""
    processes = len({call.process for call in test.calls})
    if processes == 1:
        return "threads" if len(test.calls) > 1 else "one thread"
    return "processes" if processes == len(test.calls) else f"threads of {processes} processes"


def sentence(test: TestCase) -> str:
    """What the test does, as one sentence."""
    count = len(test.calls)
    processes = len({call.process for call in test.calls})
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    if count == 1:
        who = "One call runs alone"
    elif processes == 1:
        who = f"{number.capitalize()} threads of one process make one call each"
    elif processes == count:
        who = f"{number.capitalize()} processes make one call each"
    else:
        who = f"{number.capitalize()} threads in {processes} processes make one call each"
    before = f", after {len(test.setup)} set-up {'step' if len(test.setup) == 1 else 'steps'}" if test.setup else ""
    same = "; a caller sees the same in every order" if same_in_every_order(test) else ""
    return f"{who}{before}{same}."


def same_in_every_order(test: TestCase) -> bool:
    """Whether all orders accept the same outcomes, which is what commuting means where nothing is left to choose."""
    return all(order.outcomes == test.orders[0].outcomes for order in test.orders)


def step_text(step: Step, names_process: bool) -> str:
    """A set-up step and its result: `open(name=n0, creat) → 0`; the process is named where there are several."""
    in_process = f"  (process {step.process})" if names_process else ""
    return f"{result_text(step, step.result)}{in_process}"


def result_text(step: PlacedCall | Step, result: Value) -> str:
    """A call and what it returned: `stat(name=n0) → ENOENT`."""
    return f"{call_text(step)} → {value_text(result)}"


def order_text(test: TestCase, order: Order) -> str:
    """The calls in the order of execution: `link, then rename`; equal names are told apart by their number."""
    names = [call.call for call in test.calls]
    shown = [safe_text(names[index]) + (f" {index}" if names.count(names[index]) > 1 else "") for index in order.order]
    return ", then ".join(shown)


def access_text(access: Access) -> str:
    """`core 0 writes bytes 24 to 31 in lockref_get`."""
    verb = "writes" if access.write else "reads"
    last = access.offset + access.size_bytes - 1
    where = f"byte {access.offset}" if last <= access.offset else f"bytes {access.offset} to {last}"
    return f"core {access.core} {verb} {where} in {safe_text(access.function)}"


def access_fields(finding: Finding) -> tuple[str, str]:
    """The field that either access touched: both the same, or, with false sharing, one of the two each."""
    first, separator, second = finding.field.partition(" | ")
    return safe_text(first), safe_text(second if separator else first)


def process_count(test: TestCase) -> int:
    """Processes that the test needs: those of its calls, set-up and observation."""
    steps: tuple[PlacedCall | Step, ...] = (*test.calls, *test.setup, *test.observe)
    return len({step.process for step in steps})
