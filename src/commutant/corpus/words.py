"""A test case in words: the one place that says how calls, values and orders read, for the terminal and for the page.

Every function returns text that is safe to show (see `commutant.support.text`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from commutant.corpus.testcase import Order, PlacedCall, SetupStep, Step
from commutant.corpus.values import Value
from commutant.support import plural, safe_text

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def value_text(value: Value) -> str:
    """A value of "Values" in docs/reference/test-cases.md: `0`, `ENOENT`, `Inum#0`, `ino=Inum#0 nlink=1`."""
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


def headline(calls: Iterable[PlacedCall]) -> str:
    """All calls side by side: `link(old=n0, new=n1) ∥ rename(src=n0, dst=n2)`."""
    return " ∥ ".join(map(call_text, calls))


def processes(steps: Iterable[PlacedCall | Step]) -> set[int]:
    """The processes that make the steps."""
    return {step.process for step in steps}


def placement_text(calls: Sequence[PlacedCall]) -> str:
    """Who makes the calls, in a word or two: `threads`, `processes`, `threads of 2 processes`."""
    count = len(processes(calls))
    if count == 1:
        return "threads" if len(calls) > 1 else "one thread"
    return "processes" if count == len(calls) else f"threads of {count} processes"


def sentence(calls: int, process_count: int, setup_steps: int, same: bool) -> str:
    """What a test with this many calls in this many processes does, as one sentence; `same` says whether a caller sees
    the same in every order."""
    number = _NUMBERS[calls] if calls < len(_NUMBERS) else str(calls)
    if calls == 1:
        who = "One call runs alone"
    elif process_count == 1:
        who = f"{number.capitalize()} threads of one process make one call each"
    elif process_count == calls:
        who = f"{number.capitalize()} processes make one call each"
    else:
        who = f"{number.capitalize()} threads in {process_count} processes make one call each"
    before = f", after {plural(setup_steps, 'set-up step')}" if setup_steps else ""
    return f"{who}{before}{'; a caller sees the same in every order' if same else ''}."


def same_in_every_order(orders: Sequence[Order]) -> bool:
    """Whether all orders accept the same outcomes, which is what commuting means where nothing is left to choose."""
    return all(order.outcomes == orders[0].outcomes for order in orders)


def step_text(step: SetupStep, names_process: bool) -> str:
    """A set-up step and its result: `open(name=n0, creat) → 0`; the process is named where there are several."""
    in_process = f"  (process {step.process})" if names_process else ""
    return f"{result_text(step, step.result)}{in_process}"


def result_text(step: PlacedCall | Step, result: Value) -> str:
    """A call and what it returned: `stat(name=n0) → ENOENT`."""
    return f"{call_text(step)} → {value_text(result)}"


def order_text(calls: Iterable[PlacedCall], order: Iterable[int]) -> str:
    """The calls in the order of execution: `link, then rename`; equal names are distinguished by their number."""
    names = [call.call for call in calls]
    shown = [safe_text(names[index]) + (f" {index}" if names.count(names[index]) > 1 else "") for index in order]
    return ", then ".join(shown)
