"""A run as JUnit XML, which every continuous-integration service shows: a suite per set of calls, a case per test.

A test fails for findings that stand; if the run was compared with a baseline or a suppression file, only for those that
are new and that no one accepted. Known and accepted ones, unstable tests and tests that were not run are `skipped` with
their reason; wrong results and crashes are errors. Stacks are left out: `commutant show TEST --from RUN` prints them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from commutant.campaign import Outcome
from commutant.corpus import headline
from commutant.mtrace import Fingerprint
from commutant.report.data import JudgedTest, RunReport
from commutant.report.describe import access_text, sharing_text
from commutant.report.groups import FindingGroup, FingerprintTable
from commutant.support import safe_lines, safe_text

_ERRORS = (Outcome.WRONG_RESULT, Outcome.CRASHED)


def junit(run: RunReport, groups: Sequence[FindingGroup]) -> Iterator[str]:
    """The document in pieces, one per test; `groups` are the run's findings as `compare.findings_of` marks them."""
    marked = {group.fingerprint: group for group in groups}
    marks = FingerprintTable()
    suites: dict[tuple[str, ...], list[tuple[JudgedTest, str]]] = {}
    for judged in run.tests:
        suites.setdefault(judged.calls, []).append((judged, _state(judged, marked, marks)))
    name = f"{run.summary.get('interface')} on {run.summary.get('target')}"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    everything = [state for cases in suites.values() for _, state in cases]
    yield f"<testsuites name={_attribute(name)}{_counts(everything)}>\n"
    for calls, cases in suites.items():
        yield f"<testsuite name={_attribute(', '.join(calls))}{_counts([state for _, state in cases])}>\n"
        for judged, state in cases:
            yield _case(judged, state, marked, marks)
        yield "</testsuite>\n"
    yield "</testsuites>\n"


def _state(judged: JudgedTest, marked: Mapping[Fingerprint, FindingGroup], marks: FingerprintTable) -> str:
    """`failure`, `error`, `skipped`, or empty for a test that passed."""
    if judged.outcome in _ERRORS:
        return "error"
    if judged.outcome is Outcome.CONFLICTING:
        groups = [marked[mark] for mark in marks.of_test(judged) if mark in marked]
        fails = any(not group.accepted and group.is_new is not False for group in groups)
        return "failure" if fails else "skipped"
    return "" if judged.outcome is Outcome.CONFLICT_FREE else "skipped"


def _counts(states: Sequence[str]) -> str:
    counted = (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    return f' tests="{len(states)}"' + "".join(f' {name}="{states.count(state)}"' for name, state in counted)


def _case(judged: JudgedTest, state: str, marked: Mapping[Fingerprint, FindingGroup], marks: FingerprintTable) -> str:
    names = f"classname={_attribute('.'.join(judged.calls))} name={_attribute(judged.test.id)}"
    if not state:
        return f"<testcase {names}/>\n"
    message, lines = _reason(judged, state, marked, marks)
    kind = "" if state == "skipped" else f" type={_attribute(judged.outcome.value)}"
    body = escape("\n".join([headline(judged.test.calls), *lines]))
    return f"<testcase {names}><{state} message={_attribute(message)}{kind}>{body}</{state}></testcase>\n"


def _reason(
    judged: JudgedTest, state: str, marked: Mapping[Fingerprint, FindingGroup], marks: FingerprintTable
) -> tuple[str, list[str]]:
    """What is said of a test that did not pass: in a line, and in full."""
    if not judged.findings:
        return judged.detail or judged.outcome.value.replace("_", " "), [safe_lines(judged.detail)]
    lines = []
    known = accepted = 0
    for finding in judged.findings:
        mark = marks.of(judged.calls, finding)
        group = marked.get(mark)
        note = ""
        if group is not None and group.accepted:
            accepted += 1
            note = f" (accepted: {safe_text(group.accepted)})"
        elif group is not None and group.is_new is False:
            known += 1
            note = " (known)"
        lines.append(f"{safe_text(finding.name)}: {sharing_text(finding.sharing)}, {mark.digest}{note}")
        lines.extend(f"  {access_text(access)}" for access in (finding.first, finding.second))
    names = ", ".join(dict.fromkeys(safe_text(finding.name, 80) for finding in judged.findings))
    if state == "failure":
        return f"shares {names}", lines
    if judged.outcome is Outcome.UNSTABLE:
        return f"unstable, now and then shares {names}", lines
    return f"shares {names}: {known} known, {accepted} accepted", lines


def _attribute(text: str) -> str:
    return quoteattr(safe_text(text))
