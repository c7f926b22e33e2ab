"""A run's findings as SARIF 2.1.0, the format that code scanning services and editors read.

One result per fingerprint, so that a result is the same one from run to run (`partialFingerprints`). Where frames carry
file and line, a result is at the access. Without debug information it names the function and is at the call's model:
code scanning services take no result without a file (GitHub's "SARIF support for code scanning" requires `locations`
with a `physicalLocation`). The sections named here are those of the OASIS standard "Static Analysis Results
Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from commutant import __version__
from commutant.campaign import Outcome
from commutant.corpus import headline
from commutant.mtrace import Access
from commutant.report.data import JudgedTest, RunReport
from commutant.report.describe import access_text
from commutant.report.groups import FindingGroup
from commutant.report.hints import HintKind, Technique
from commutant.report.own_frames import own_frame, source_of
from commutant.support import plural, safe_text

SARIF_VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "commutant/v1"

_FALSE_SHARING = "false-sharing"
_NEIGHBOURS = "neighbouring-lines"
_WRONG_RESULT = "wrong-result"
_CRASH = "crash"
_RULES: dict[str, tuple[str, str]] = {
    _FALSE_SHARING: (
        "Two fields share a cache line without need",
        "Two calls that commute touched different bytes of one cache line, and at least one of them wrote.",
    ),
    _NEIGHBOURS: (
        "Two fields lie in neighbouring cache lines without need",
        "Two calls that commute touched the two lines of one pair of 128 bytes, and at least one of them wrote.",
    ),
    **{
        f"shared-{kind.value.replace(' ', '-')}": (
            f"A {kind.value} is shared without need" if kind is not HintKind.DATA else "Data is shared without need",
            "Two calls that commute touched the same bytes of one cache line, and at least one of them wrote.",
        )
        for kind in HintKind
    },
    _WRONG_RESULT: (
        "A call returned what its model does not allow",
        "The outcome of a test is not among those that the interface's model accepts.",
    ),
    _CRASH: ("The implementation died in a test", "The implementation under test ended while the calls ran."),
}
_OFFSET = re.compile(r"\+0x[0-9a-f]+(?: |$)")


Places = Mapping[str, tuple[str, int]]
"""File and line of the model of each call."""

_CORPUS = "corpus.jsonl.gz", 1
"""Where the tests of a call stand whose model is not known."""


def sarif(run: RunReport, groups: Sequence[FindingGroup], is_complete: bool, places: Places | None = None) -> str:
    """The SARIF log; `groups` are the run's findings, marked against a baseline and suppressions if there were any;
    `places` says where the models of the calls are."""
    known = places or {}
    failed = [judged for judged in run.tests if judged.outcome in (Outcome.WRONG_RESULT, Outcome.CRASHED)]
    invocation: dict[str, object] = {"executionSuccessful": is_complete}
    if run.facts.get("command"):
        invocation["commandLine"] = safe_text(run.facts["command"])
    subject = safe_text(f"{run.summary.get('interface')} on {run.summary.get('target')}")
    document = {
        "$schema": SCHEMA,
        "version": SARIF_VERSION,
        "runs": [
            {
                "tool": {"driver": {"name": "commutant", "version": __version__, "rules": _rules()}},
                "automationDetails": {"description": _message(subject)},
                "columnKind": "unicodeCodePoints",
                "invocations": [invocation],
                "results": [*(_result(one, known) for one in groups), *(_failure(one, known) for one in failed)],
            }
        ],
    }
    return json.dumps(document, ensure_ascii=True, allow_nan=False, indent=1) + "\n"


def _rules() -> list[dict[str, object]]:
    advice = "\n".join(f"{technique.title}: {technique.advice}" for technique in Technique)
    return [
        {
            "id": name,
            "shortDescription": {"text": short},
            "fullDescription": {"text": full},
            "help": {"text": advice},
            "defaultConfiguration": {"level": "error" if name in (_WRONG_RESULT, _CRASH) else "warning"},
        }
        for name, (short, full) in _RULES.items()
    ]


def _rule(name: str) -> dict[str, object]:
    return {"ruleId": name, "ruleIndex": list(_RULES).index(name)}


def _result(group: FindingGroup, places: Places) -> dict[str, object]:
    example, advice = group.example, group.hint
    rule = {"false": _FALSE_SHARING, "neighbour": _NEIGHBOURS}.get(
        example.sharing, f"shared-{advice.kind.value.replace(' ', '-')}"
    )
    calls = " and ".join(map(safe_text, group.fingerprint.calls))
    text = f"{safe_text(group.name)} is shared by {calls} in {plural(group.tests, 'test')}. {advice.sentence}"
    accesses = (example.first, example.second)
    result: dict[str, object] = {
        **_rule(rule),
        "level": "warning",
        "message": _message(text),
        "locations": [_placed(_location(example.first), group.fingerprint.calls, places)],
        "relatedLocations": [
            {"id": number, **_location(access), "message": _message(access_text(access))}
            for number, access in enumerate(accesses)
        ],
        "stacks": [
            {
                "message": _message(access_text(access)),
                "frames": [{"location": _frame(frame)} for frame in access.stack],
            }
            for access in accesses
        ],
        "occurrenceCount": group.tests,
        "partialFingerprints": {FINGERPRINT: group.fingerprint.digest},
        "properties": {
            "variable": safe_text(group.name),
            "calls": list(map(safe_text, group.fingerprint.calls)),
            "sharing": example.sharing,
            "technique": advice.technique.anchor,
            "tests": list(map(safe_text, group.examples)),
        },
    }
    if group.is_new is not None:
        result["baselineState"] = "new" if group.is_new else "unchanged"
    if group.accepted:
        result["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": safe_text(group.accepted)}
        ]
    return result


def _failure(judged: JudgedTest, places: Places) -> dict[str, object]:
    rule = _CRASH if judged.outcome is Outcome.CRASHED else _WRONG_RESULT
    names = ({"name": safe_text(call), "kind": "function"} for call in dict.fromkeys(judged.calls))
    return {
        **_rule(rule),
        "level": "error",
        "message": _message(f"{headline(judged.test.calls)}: {safe_text(judged.detail)}"),
        "locations": [_placed({"logicalLocations": list(names)}, judged.calls, places)],
        "partialFingerprints": {FINGERPRINT: safe_text(judged.test.id)},
    }


def _location(access: Access) -> dict[str, object]:
    """Where an access is: its innermost frame in a file of the reader's own, else its innermost frame, or its function
    alone where there is no stack."""
    return _frame(own_frame(access) or (access.stack[0] if access.stack else access.function))


def _placed(location: dict[str, object], calls: Sequence[str], places: Places) -> dict[str, object]:
    """The location, with the model of the first call whose file is known if it has no file of its own."""
    if "physicalLocation" not in location:
        file, line = next((places[call] for call in calls if call in places), _CORPUS)
        location["physicalLocation"] = {"artifactLocation": _artifact(file), "region": {"startLine": line}}
    return location


def _frame(frame: str) -> dict[str, object]:
    """A frame, `function+0xoffset`, `function+0xoffset file:line` or (inlined) `function file:line`, as a location."""
    offset, inlined = _OFFSET.search(frame), source_of(frame)
    function, source = (frame[: offset.start()], frame[offset.end() :]) if offset else (frame, "")
    if not offset and inlined:
        source = ":".join(map(str, inlined))
        function = frame.removesuffix(f" {source}")
    name = safe_text(function or frame) or "unknown code"
    location: dict[str, object] = {"logicalLocations": [{"fullyQualifiedName": name, "kind": "function"}]}
    file, _, line = source.rpartition(":")
    if file and line.isascii() and line.isdigit() and len(line) < 10 and int(line):
        location["physicalLocation"] = {"artifactLocation": _artifact(file), "region": {"startLine": int(line)}}
    return location


def _artifact(path: str) -> dict[str, str]:
    """A file as a URI reference (section 3.4): relative to the root of the sources, or absolute as it is."""
    uri = quote(safe_text(path))
    return {"uri": f"file://{uri}"} if uri.startswith("/") else {"uri": uri, "uriBaseId": "SRCROOT"}


def _message(text: str) -> dict[str, str]:
    """A message (section 3.11), in which braces are no placeholder (doubled) and nothing is a link (`](` parted)."""
    return {"text": text.replace("{", "{{").replace("}", "}}").replace("](", "] (")}
