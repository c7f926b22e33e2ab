"""One test in the terminal: what it does, what it expects, and what a run found in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from commutant.corpus import (
    TestCase,
    call_text,
    order_text,
    place_text,
    processes,
    result_text,
    same_in_every_order,
    sentence,
    step_text,
)
from commutant.documents import builtins
from commutant.mtrace import Access, Finding
from commutant.report.causes import Cause, cause_json, causes
from commutant.report.data import OUTCOME_WORDS, JudgedTest
from commutant.report.describe import access_text, line_in_use, sharing_text
from commutant.report.groups import has_idle_call
from commutant.report.hints import hint
from commutant.report.roles import role
from commutant.support import plural, safe_lines, safe_text

SCHEMA_VERSION = 1

CAUSES_SHOWN = 10
"""Causes in the list of a test; its shared lines are all shown, under theirs."""

_SIDE_BY_SIDE_WIDTH = 110


def print_test(
    test: TestCase,
    console: Console,
    judged: JudgedTest | None = None,
    worth: Callable[[Finding], list[str]] | None = None,
) -> None:
    """Prints the test; with `judged` also its verdict and the lines that its calls shared, with `worth` also what
    changes of each would free in the whole run."""
    _print(console, Text(safe_text(test.id), style="bold"))
    same = same_in_every_order(test.orders)
    _print(console, Text(sentence(len(test.calls), len(processes(test.calls)), len(test.setup), same)))
    _print(console, Text(f"Class: {safe_text(test.equivalence_class)}"))
    _print(console, Text(f"Level {safe_text(test.level)}, path {test.path}", style="dim"))
    if test.setup:
        _heading(console, "Set-up")
        names_process = len(processes((*test.calls, *test.setup, *test.observe))) > 1
        for index, step in enumerate(test.setup):
            _print(console, Text(f"  {index}  {step_text(step, names_process)}"))
    _heading(console, "Calls")
    for index, call in enumerate(test.calls):
        _print(console, Text(f"  {index}  {call_text(call)}").append(f"   {place_text(call)}", style="dim"))
    _heading(console, "Expected")
    for line in _expected(test):
        _print(console, line)
    if judged is not None:
        _print_judgement(judged, console, worth)


def json_of_test(test: TestCase, judged: JudgedTest | None = None) -> str:
    """The test as an indented JSON document in ASCII; with `judged` also its outcome and findings."""
    document: dict[str, object] = {"schema_version": SCHEMA_VERSION, **test.to_json()}
    if judged is not None:
        document["outcome"] = judged.outcome.value
        document["detail"] = judged.detail
        document["causes"] = [cause_json(cause) for cause in causes(judged)]
        document["findings"] = [
            {**builtins(finding), "role": role(test, finding), "line_in_use": line_in_use(finding)}
            for finding in judged.findings
        ]
    return json.dumps(document, indent=2, ensure_ascii=True)


def _expected(test: TestCase) -> Iterator[Text]:
    orders = test.orders[:1] if same_in_every_order(test.orders) else test.orders
    for order in orders:
        heading = "in every order" if len(orders) < len(test.orders) else order_text(test.calls, order.order)
        for number, outcome in enumerate(order.outcomes):
            yield Text(f"  {heading if number == 0 else 'or'}", style="italic")
            for call, result in zip(test.calls, outcome.results, strict=True):
                yield Text(f"    {result_text(call, result)}")
            for step, result in zip(test.observe, outcome.observation, strict=True):
                yield Text(f"    then {result_text(step, result)}", style="dim")


def _print_judgement(judged: JudgedTest, console: Console, worth: Callable[[Finding], list[str]] | None) -> None:
    _heading(console, f"Verdict: {OUTCOME_WORDS[judged.outcome]}")
    if judged.detail:
        _print(console, Text(f"  {safe_lines(judged.detail)}"))
    found = causes(judged)
    if found:
        console.print()
        _print_causes(found, console)
    failing = has_idle_call(judged.test)
    for number, cause in enumerate(found, 1):
        _heading(console, f"{number}. {safe_text(cause.title)}")
        for finding in cause.lines:
            console.print()
            line = Text("  ").append(safe_text(finding.name), style="bold")
            advice = hint(finding, failing)
            part = role(judged.test, finding)
            words = f"   {f'{part}, ' if part else ''}{sharing_text(finding.sharing)}, {advice.kind.value}"
            _print(console, line.append(safe_text(words), style="dim"))
            _print_accesses(finding, console)
            beside = line_in_use(finding)
            if beside:
                _print(console, Text(f"    Also in use on that line: {beside}", style="dim"))
            _print(console, Text(f"    {advice.sentence}", style="italic"))
            for text in worth(finding) if worth is not None else ():
                _print(console, Text(f"    In this run: {safe_text(text)}", style="italic"))


def _print_causes(found: Sequence[Cause], console: Console) -> None:
    first = found[0]
    if not first.is_known:
        _print(console, Text(f"  No common cause can be found: {len(found)} shared lines, each of its own."))
        return
    _print(console, Text("  Fix first: ").append(safe_text(first.title), style="bold").append(f": {first.sentence}."))
    _print(console, Text(f"  {first.hint.sentence}", style="italic"))
    for number, cause in enumerate(found[1:CAUSES_SHOWN], 2):
        _print(
            console, Text(f"  {number:>2}. {safe_text(cause.title)}: {plural(len(cause.lines), 'line')}", style="dim")
        )
    if len(found) > CAUSES_SHOWN:
        _print(console, Text(f"  and {len(found) - CAUSES_SHOWN} more", style="dim"))


def _print_accesses(finding: Finding, console: Console) -> None:
    accesses = (finding.first, finding.second)
    side_by_side = console.width >= _SIDE_BY_SIDE_WIDTH
    table = Table.grid(padding=(0, 4, 0, 0), expand=False)
    for _ in accesses if side_by_side else (0,):
        table.add_column(overflow="fold")
    cells = [_access_text(access) for access in accesses]
    if side_by_side:
        table.add_row(*cells)
    else:
        for cell in cells:
            table.add_row(cell)
    console.print(Padding(table, (0, 0, 0, 4)))


def _access_text(access: Access) -> Text:
    text = Text(access_text(access), style="italic")
    for frame in access.stack:
        text.append(f"\n  {safe_text(frame)}", style="not italic")
    return text


def _heading(console: Console, text: str) -> None:
    console.print()
    _print(console, Text(text, style="bold"))


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)
