"""A run as the tables that the page holds: every text, list, stack, access and finding once, tests as columns.

    strings     texts, safe to show; everything below refers to them by index
    parts       pieces of C programs
    blocks      lists of parts; a program is a list of blocks
    lists       lists of strings (the calls of a test, a set-up)
    orders      [[order, [[results, observation], ...]], ...]: lists of strings in each acceptable outcome
    stacks      lists of strings, innermost frame first
    accesses    [core, 1 if write, first byte, bytes, function, stack, sentence]
    lines       [[first byte, bytes, name], ...], [[core, [[first byte, bytes], ...] read, likewise written], ...]
    findings    [variable, place in `_SHARINGS`, access, access, field, field, line, kind, technique, role,
                 what else of the line is in use]
    causes      [title, technique]
    explained   [[cause, sentence, [place in the test's findings, ...]], ...]: what the lines of a test follow from
    techniques  [heading, advice, anchor in docs/guides/patterns.md]
    variables   names, in the order of the ranking
    sets        [[calls], tests]; calls as strings
    tests       one column per property, each as long as there are tests

Of two runs, `outcome` and `findings` are those of the newer, `before` and `was` those of the older; the outcome is -1
in the run that did not judge a test. `badness` says, per outcome, which is worse (-1: says nothing).

All texts are made here, by `commutant.report.describe`, so that the page's scripts arrange and never phrase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from typing import Any, Generic, TypeVar, get_args

from commutant.campaign import Outcome
from commutant.corpus import (
    Order,
    PlacedCall,
    SetupStep,
    Step,
    TestCase,
    Value,
    call_text,
    headline,
    order_text,
    place_text,
    placement_text,
    processes,
    result_text,
    same_in_every_order,
    sentence,
    step_text,
    value_text,
)
from commutant.mtrace import Access, Finding, Sharing
from commutant.report.causes import causes
from commutant.report.cprogram import Programs, Unsupported
from commutant.report.data import BADNESS, OUTCOME_WORDS, JudgedTest
from commutant.report.describe import access_fields, access_text, line_in_use
from commutant.report.groups import has_failing_call, has_idle_call
from commutant.report.hints import Technique, hint
from commutant.report.ranking import SharedVariable
from commutant.report.roles import role
from commutant.support import IdentityCache, map_unique, safe_lines, safe_text

SCHEMA_VERSION = 1

_OUTCOMES = tuple(Outcome)
_SHARINGS = get_args(Sharing)
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


Row = tuple[TestCase, JudgedTest | None, JudgedTest | None]
"""A test, as the run judged it and as an earlier one did."""


class Pack:
    """The tables, filled by the columns of all tests: what tests share is made once."""

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
        self._causes: Table[tuple[int, int]] = Table()
        self._explained: Table[tuple[object, ...]] = Table()
        self._call = IdentityCache(lambda call: self._strings.add(call_text(call)))
        self._result = IdentityCache(lambda step, result: self._strings.add(result_text(step, result)))
        self._results = IdentityCache(self._new_results)
        self._observation = IdentityCache(self._new_observation)
        self._finding = IdentityCache(self._new_finding)
        self._variable_names = unique_names([variable.name for variable in ranking])
        self._variables = {variable.name: index for index, variable in enumerate(ranking)}

    def tables(self, rows: Sequence[Row], is_comparison: bool) -> dict[str, object]:
        """The tables as JSON values."""
        columns = self._columns(rows)
        sets = Counter(tuple(call.call for call in test.calls) for test, _, _ in rows)
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
            "causes": self._causes.items(),
            "explained": self._explained.items(),
            "variables": self._variable_names,
            "sets": [[list(map(safe_text, calls)), count] for calls, count in sets.items()],
            "tests": columns,
        }

    def _columns(self, rows: Sequence[Row]) -> dict[str, list[Any]]:
        """One column per property of a test."""
        tests = [test for test, _, _ in rows]
        calls, setups, observes = ([getattr(test, part) for test in tests] for part in ("calls", "setup", "observe"))
        orders = [test.orders for test in tests]
        placed = map_unique(processes, calls)
        together = zip(placed, map_unique(processes, setups), map_unique(processes, observes), strict=True)
        names_process = [len(one | setup | observe) > 1 for one, setup, observe in together]
        same = map_unique(same_in_every_order, orders)
        sets: Table[tuple[str, ...]] = Table()
        sentences = cache(lambda *about: self._strings.add(sentence(*about)))
        programs = Programs(self._new_block).of(tests)
        fails = IdentityCache(has_failing_call)
        failing = [has_idle_call(test, fails) for test in tests]
        return {
            "id": [safe_text(test.id) for test in tests],
            "set": map_unique(lambda calls: sets.add(tuple(call.call for call in calls)), calls),
            "outcome": [_OUTCOMES.index(judged.outcome) if judged else -1 for _, judged, _ in rows],
            "before": [_OUTCOMES.index(before.outcome) if before else -1 for _, _, before in rows],
            "class": [self._string(test.equivalence_class) for test in tests],
            "headline": map_unique(lambda calls: self._strings.add(headline(calls)), calls),
            "placement": map_unique(lambda calls: self._strings.add(placement_text(calls)), calls),
            "sentence": [
                sentences(len(test.calls), len(one), len(test.setup), alike)
                for test, one, alike in zip(tests, placed, same, strict=True)
            ],
            "detail": [self._detail(judged, before) for _, judged, before in rows],
            "calls": map_unique(lambda calls: self._lists.add(tuple(map(self._call, calls))), calls),
            "places": map_unique(self._new_places, calls),
            "setup": map_unique(self._new_setup, setups, names_process),
            "orders": self._orders_of(tests, same),
            "program": [[] if isinstance(program, Unsupported) else program for program in programs],
            "refusal": [self._string(program.why if isinstance(program, Unsupported) else "") for program in programs],
            "findings": [self._findings_of(row[1], fails) for row, fails in zip(rows, failing, strict=True)],
            "was": [self._findings_of(row[2], fails) for row, fails in zip(rows, failing, strict=True)],
            "explained": [self._explained_of(row[1]) for row in rows],
        }

    def _string(self, text: str) -> int:
        return self._strings.add(safe_text(text))

    def _detail(self, *judged: JudgedTest | None) -> int:
        """What the first of these has to say beyond its verdict."""
        for one in judged:
            if one is not None and one.detail:
                return self._strings.add(safe_lines(one.detail))
        return self._strings.add("")

    def _new_places(self, calls: Sequence[PlacedCall]) -> int:
        return self._lists.add(tuple(self._strings.add(place_text(call)) for call in calls))

    def _new_setup(self, steps: Sequence[SetupStep], names_process: bool) -> int:
        return self._lists.add(tuple(self._strings.add(step_text(step, names_process)) for step in steps))

    def _orders_of(self, tests: Sequence[TestCase], same: Sequence[bool]) -> list[int]:
        """Orders that accept the same stand there as one, in which the names of the calls do not matter."""
        any_order: tuple[PlacedCall, ...] = ()
        return map_unique(
            self._new_orders,
            [
                any_order if alike and len(test.orders) > 1 else test.calls
                for test, alike in zip(tests, same, strict=True)
            ],
            [test.observe for test in tests],
            [test.orders for test in tests],
        )

    def _new_orders(self, calls: Sequence[PlacedCall], observe: Sequence[Step], orders: Sequence[Order]) -> int:
        if calls:
            shown = [(order_text(calls, order.order), order) for order in orders]
        else:
            shown = [("in every order", orders[0])]
        return self._orders.add(
            tuple((self._strings.add(text), self._new_outcomes(order, observe)) for text, order in shown)
        )

    def _new_outcomes(self, order: Order, observe: Sequence[Step]) -> tuple[tuple[int, int], ...]:
        return tuple(
            (self._results(outcome.results), self._observation(outcome.observation, observe))
            for outcome in order.outcomes
        )

    def _new_results(self, results: Sequence[Value]) -> int:
        return self._lists.add(tuple(self._strings.add(value_text(result)) for result in results))

    def _new_observation(self, results: Sequence[Value], steps: Sequence[Step]) -> int:
        return self._lists.add(tuple(map(self._result, steps, results)))

    def _new_block(self, parts: Iterable[str]) -> int:
        return self._blocks.add(tuple(map(self._parts.add, parts)))

    def _findings_of(self, judged: JudgedTest | None, failing: bool) -> list[int]:
        if judged is None:
            return []
        parts = (role(judged.test, finding) for finding in judged.findings)
        return [self._finding(finding, failing, part) for finding, part in zip(judged.findings, parts, strict=True)]

    def _explained_of(self, judged: JudgedTest | None) -> int:
        """What the lines that a test shares follow from, the first cause first; or that this is not known."""
        found = causes(judged) if judged is not None else []
        untold = {id(found[0])} if found and not found[0].is_known else set()
        places = {id(finding): place for place, finding in enumerate(judged.findings)} if judged is not None else {}
        return self._explained.add(
            tuple(
                (
                    self._causes.add((self._string(cause.title), _TECHNIQUES.index(cause.hint.technique))),
                    self._strings.add(cause.sentence + "; no common cause can be found" * (id(cause) in untold)),
                    tuple(places[id(finding)] for finding in cause.lines),
                )
                for cause in found
            )
        )

    def _new_finding(self, finding: Finding, failing: bool, part: str) -> int:
        fields = access_fields(finding)
        advice = hint(finding, failing)
        return self._findings.add(
            (
                self._variables[finding.name],
                _SHARINGS.index(finding.sharing),
                self._access(finding.first),
                self._access(finding.second),
                self._strings.add(fields[0]),
                self._strings.add(fields[1]),
                self._line(finding),
                self._strings.add(advice.kind.value),
                _TECHNIQUES.index(advice.technique),
                self._string(part),
                self._strings.add(line_in_use(finding)),
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


def unique_names(names: Sequence[str]) -> list[str]:
    """The names as they are shown, distinguished by a number where two of them are shown alike."""
    shown: dict[str, int] = {}
    unique = []
    for name in map(safe_text, names):
        shown[name] = shown.get(name, 0) + 1
        unique.append(name if shown[name] == 1 else f"{name} ({shown[name]})")
    return unique
