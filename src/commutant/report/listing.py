"""Tests as lines of text: which there are of some calls, a shared variable or a first cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from commutant.campaign import Outcome
from commutant.corpus import TestCase, call_text, headline
from commutant.report.causes import causes
from commutant.report.data import OUTCOME_WORDS, JudgedTest
from commutant.support import plural, safe_text

_OUTCOME_WIDTH = 13
_LONGEST_STATE = 200


def chosen_tests(
    tests: Iterable[JudgedTest], calls: Sequence[str] | None, variable: str | None, cause: str | None
) -> list[JudgedTest]:
    """The tests of exactly these calls (of more names than a test has calls: of any of them), that share a variable of
    this pattern, and whose first cause has this text in its title (or is of this pattern); None asks for nothing."""
    wanted = sorted(calls or ())
    return [
        judged
        for judged in tests
        if (calls is None or _is_of(judged, wanted))
        and (variable is None or any(fnmatchcase(finding.name, variable) for finding in judged.findings))
        and (cause is None or _follows_from(judged, cause))
    ]


def _is_of(judged: JudgedTest, wanted: Sequence[str]) -> bool:
    names = sorted(judged.calls)
    return names == wanted if len(names) == len(wanted) else set(names) <= set(wanted)


def _follows_from(judged: JudgedTest, cause: str) -> bool:
    found = causes(judged)
    return bool(found) and (cause in found[0].title or fnmatchcase(found[0].name, cause))


def line_of_test(test: TestCase, outcome: Outcome | None) -> str:
    """A test on one line: id, verdict, and the calls with their arguments."""
    words = OUTCOME_WORDS[outcome] if outcome is not None else "not judged"
    return f"{test.id}  {words:<{_OUTCOME_WIDTH}}  {safe_text(headline(test.calls))}"


def rows_of_tests(tests: Sequence[tuple[TestCase, Outcome | None]]) -> list[str]:
    """The tests, a line each; those whose calls read alike also say in which state they are made, as far as they differ
    in it."""
    alike: dict[str, list[TestCase]] = {}
    for test, _ in tests:
        alike.setdefault(headline(test.calls), []).append(test)
    return [
        line_of_test(test, outcome) + safe_text(_apart(test, alike[headline(test.calls)]), _LONGEST_STATE)
        for test, outcome in tests
    ]


def _state(test: TestCase) -> str:
    return "; ".join(map(call_text, test.setup)) or "nothing"


def _apart(test: TestCase, alike: Sequence[TestCase]) -> str:
    """What tells a test from others whose calls read alike: its set-up, or else its class."""
    if len(alike) == 1:
        return ""
    if len({_state(one) for one in alike}) > 1:
        return f"  after {_state(test)}"
    parts = [set(one.equivalence_class.split("; ")) for one in alike]
    own = [part for part in test.equivalence_class.split("; ") if not all(part in other for other in parts)]
    return f"  where {'; '.join(own)}" if own else ""


def lines_of_tests(tests: Iterable[JudgedTest]) -> Iterator[str]:
    """The tests, a line each, with the first cause after those that share memory."""
    listed = list(tests)
    lines = rows_of_tests([(judged.test, judged.outcome) for judged in listed])
    for judged, line in zip(listed, lines, strict=True):
        found = causes(judged) if judged.outcome is Outcome.CONFLICTING else []
        first = ""
        if found and found[0].is_known:
            first = f"  <- {safe_text(found[0].title)}, {len(found[0].lines)} of {len(judged.findings)}"
        elif found:
            first = f"  <- no common cause can be found, {plural(len(judged.findings), 'line')}"
        yield f"{line}{first}\n"
