"""A run as the tables that the page holds: every text, list, stack, access and finding once, tests as columns.

    strings     texts, safe to show; everything below refers to them by index
    parts       pieces of C programs
    blocks      lists of parts; a program is a list of blocks
    lists       lists of strings (the calls of a test, a set-up)
    orders      [[order, [[results, observation], ...]], ...]: lists of strings in each acceptable outcome
    stacks      lists of strings, innermost frame first
    accesses    [core, 1 if write, first byte, bytes, function, stack, sentence]
    lines       [[first byte, bytes, name], ...], [[core, [[first byte, bytes], ...] read, likewise written], ...]
    findings    [variable, 1 if true sharing, access, access, field, field, line, kind, technique]
    techniques  [heading, advice, anchor in docs/patterns.md]
    variables   names, in the order of the ranking
    sets        [[calls], tests]; calls as strings
    tests       one column per property, each as long as there are tests

Of two runs, `outcome` and `findings` are those of the newer, `before` and `was` those of the older; the outcome is -1
in the run that did not judge a test. `badness` says, per outcome, which is worse (-1: says nothing).

All texts are made here, by `commutant.report.describe`, so that the page's scripts arrange and never phrase.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from commutant.errors import UsageError
from commutant.mtrace.finding import Access, Finding
from commutant.mtrace.verdict import Outcome
from commutant.report.cprogram import Programs
from commutant.report.data import BADNESS, OUTCOME_WORDS, JudgedTest
from commutant.report.describe import (
    access_fields,
    access_text,
    call_text,
    order_text,
    place_text,
    placement_text,
    process_count,
    result_text,
    same_in_every_order,
    sentence,
    side_by_side,
    step_text,
    value_text,
)
from commutant.report.groups import has_failing_call
from commutant.report.hints import Technique, hint
from commutant.report.once import Once
from commutant.report.ranking import SharedVariable
from commutant.report.text import safe_lines, safe_text
from commutant.testgen.testcase import Order, Step, TestCase, Value

SCHEMA_VERSION = 1

_OUTCOMES = tuple(Outcome)
_TECHNIQUES = tuple(Technique)

Item = TypeVar("Item", bound=Hashable)


class Table(Generic[Item]):
    """Distinct items in the order of their first appearance."""

    def __init__(self) -> None:
        self._index: dict[Item, int] = {}

    def add(self, item: Item) -> int:
        """The item's index; the same for equal items."""
        return self._index.setdefault(item, len(self._index))

    def items(self) -> list[Item]:
        """All items by index."""
        return list(self._index)


class Pack:
    """Collects tests and gives the tables."""

    def __init__(self, ranking: Sequence[SharedVariable]) -> None:
        self._strings: Table[str] = Table()
        self._parts: Table[str] = Table()
        self._blocks: Table[tuple[int, ...]] = Table()
        self._lists: Table[tuple[int, ...]] = Table()
        self._orders: Table[tuple[object, ...]] = Table()
        self._stacks: Table[tuple[int, ...]] = Table()
        self._accesses: Table[tuple[int, ...]] = Table()
        self._lines: Table[tuple[object, ...]] = Table()
        self._findings: Table[tuple[int, ...]] = Table()
        self._programs = Programs()
        # What tests share has its index once, among strings, lists and findings.
        self._call_text = Once(call_text)
        self._place = Once(lambda call: self._strings.add(place_text(call)))
        self._setup_step = Once(lambda step: self._strings.add(step_text(step, names_process=False)))
        self._setup_step_of_process = Once(lambda step: self._strings.add(step_text(step, names_process=True)))
        self._result = Once(lambda step, result: self._strings.add(result_text(step, result)))
        self._results = Once(self._new_results)
        self._observation = Once(self._new_observation)
        self._finding = Once(self._new_finding)
        self._sets: dict[tuple[str, ...], int] = {}
        self._variable_names = unique_names([variable.name for variable in ranking])
        self._variables = {variable.name: index for index, variable in enumerate(ranking)}
        self._columns: dict[str, list[object]] = {name: [] for name in _COLUMNS}

    def add(self, test: TestCase, judged: JudgedTest | None, before: JudgedTest | None = None) -> None:
        """Adds one test, as the run judged it and as an earlier one did."""
        program, refusal = self._program(test)
        calls = list(map(self._call_text, test.calls))
        setup_step = self._setup_step_of_process if process_count(test) > 1 else self._setup_step
        details = [one.detail for one in (judged, before) if one and one.detail]
        row: dict[str, object] = {
            "id": safe_text(test.id),
            "set": self._set(tuple(call.call for call in test.calls)),
            "outcome": _OUTCOMES.index(judged.outcome) if judged else -1,
            "before": _OUTCOMES.index(before.outcome) if before else -1,
            "class": self._string(test.equivalence_class),
            "headline": self._strings.add(side_by_side(calls)),
            "placement": self._strings.add(placement_text(test)),
            "sentence": self._strings.add(sentence(test)),
            "detail": self._strings.add(safe_lines(details[0] if details else "")),
            "calls": self._lists.add(tuple(map(self._strings.add, calls))),
            "places": self._lists.add(tuple(map(self._place, test.calls))),
            "setup": self._lists.add(tuple(map(setup_step, test.setup))),
            "orders": self._order(test),
            "program": program,
            "refusal": self._string(refusal),
            "findings": self._findings_of(judged),
            "was": self._findings_of(before),
        }
        for name, column in self._columns.items():
            column.append(row[name])

    def tables(self, is_comparison: bool) -> dict[str, object]:
        """The tables as JSON values."""
        counts = [0] * len(self._sets)
        for index in self._columns["set"]:
            assert isinstance(index, int)
            counts[index] += 1
        return {
            "schema_version": SCHEMA_VERSION,
            "is_comparison": is_comparison,
            "outcomes": [[outcome.value, OUTCOME_WORDS[outcome]] for outcome in Outcome],
            "badness": [BADNESS.get(outcome, -1) for outcome in Outcome],
            "techniques": [[technique.title, technique.advice, technique.anchor] for technique in Technique],
            "strings": self._strings.items(),
            "parts": self._parts.items(),
            "blocks": self._blocks.items(),
            "lists": self._lists.items(),
            "orders": self._orders.items(),
            "stacks": self._stacks.items(),
            "accesses": self._accesses.items(),
            "lines": self._lines.items(),
            "findings": self._findings.items(),
            "variables": self._variable_names,
            "sets": [
                [[safe_text(call) for call in calls], count]
                for (calls, _), count in zip(self._sets.items(), counts, strict=True)
            ],
            "tests": self._columns,
        }

    def _string(self, text: str) -> int:
        return self._strings.add(safe_text(text))

    def _set(self, calls: tuple[str, ...]) -> int:
        return self._sets.setdefault(calls, len(self._sets))

    def _order(self, test: TestCase) -> int:
        same = same_in_every_order(test)
        return self._orders.add(
            tuple(
                (
                    self._strings.add("in every order" if same and len(test.orders) > 1 else order_text(test, order)),
                    self._outcomes(test, order),
                )
                for order in (test.orders[:1] if same else test.orders)
            )
        )

    def _outcomes(self, test: TestCase, order: Order) -> tuple[tuple[int, int], ...]:
        return tuple(
            (self._results(outcome.results), self._observation(outcome.observation, *test.observe))
            for outcome in order.outcomes
        )

    def _new_results(self, results: Sequence[Value]) -> int:
        return self._lists.add(tuple(self._strings.add(value_text(result)) for result in results))

    def _new_observation(self, results: Sequence[Value], *steps: Step) -> int:
        return self._lists.add(tuple(map(self._result, steps, results)))

    def _program(self, test: TestCase) -> tuple[list[int], str]:
        try:
            return [self._blocks.add(tuple(map(self._parts.add, block))) for block in self._programs.blocks(test)], ""
        except UsageError as error:
            return [], str(error)

    def _findings_of(self, judged: JudgedTest | None) -> list[int]:
        if judged is None or not judged.findings:
            return []
        failing = has_failing_call(judged)
        return [self._finding(finding, failing) for finding in judged.findings]

    def _new_finding(self, finding: Finding, failing: bool) -> int:
        fields = access_fields(finding)
        advice = hint(finding, failing)
        return self._findings.add(
            (
                self._variables[finding.name],
                int(finding.sharing == "true"),
                self._access(finding.first),
                self._access(finding.second),
                self._strings.add(fields[0]),
                self._strings.add(fields[1]),
                self._line(finding),
                self._strings.add(advice.kind.value),
                _TECHNIQUES.index(advice.technique),
            )
        )

    def _line(self, finding: Finding) -> int:
        """The picture of the line: names without the object where it is the finding's own."""
        own = f"{finding.object}."
        fields = tuple(
            (field.offset, field.size_bytes, self._string(field.name.removeprefix(own))) for field in finding.fields
        )
        return self._lines.add((fields, tuple((one.core, one.read, one.written) for one in finding.touched)))

    def _access(self, access: Access) -> int:
        return self._accesses.add(
            (
                access.core,
                int(access.write),
                access.offset,
                access.size_bytes,
                self._string(access.function),
                self._stacks.add(tuple(map(self._string, access.stack))),
                self._strings.add(access_text(access)),
            )
        )


_COLUMNS = (
    *(
        "id",
        "set",
        "outcome",
        "before",
        "class",
        "headline",
        "placement",
        "sentence",
        "detail",
        "calls",
        "places",
        "setup",
        "orders",
    ),
    *("program", "refusal", "findings", "was"),
)


def unique_names(names: Sequence[str]) -> list[str]:
    """The names as they are shown, told apart by a number where two of them are shown alike."""
    shown: dict[str, int] = {}
    unique = []
    for name in map(safe_text, names):
        shown[name] = shown.get(name, 0) + 1
        unique.append(name if shown[name] == 1 else f"{name} ({shown[name]})")
    return unique
