"""What runs have seen, so that a finding of another run is known or new.

A finding is known if its fingerprint was seen, if only in an unstable test. A false sharing is known, too, if the same
calls falsely shared a line by writing the same field: which of its neighbours the other core happens to read (one on
the slow path of a look-up, one on the quick path) depends on where objects lie and on what ran before, and is not new.
"""

from __future__ import annotations

from collections.abc import Iterable

from commutant.mtrace import Access, Finding, Fingerprint
from commutant.report import FindingGroup, FingerprintTable, JudgedTest

LineMark = tuple[tuple[str, ...], tuple[str, ...]]
"""Calls, sorted, and the fields that were written."""


class Known:
    """All that some runs saw."""

    def __init__(self, *runs: Iterable[JudgedTest]) -> None:
        self._marks: set[Fingerprint] = set()
        self._lines: set[LineMark] = set()
        table = FingerprintTable()
        for run in runs:
            for judged in run:
                for finding in judged.findings:
                    mark = table.of(judged.calls, finding)
                    if mark not in self._marks:
                        self._marks.add(mark)
                        if finding.sharing == "false":
                            self._lines.add(_line_mark(mark, finding))

    def has(self, group: FindingGroup) -> bool:
        """Whether the group's finding is known."""
        if group.fingerprint in self._marks:
            return True
        return group.example.sharing == "false" and _line_mark(group.fingerprint, group.example) in self._lines


def _line_mark(mark: Fingerprint, finding: Finding) -> LineMark:
    written = {_field(finding, access) for access in (finding.first, finding.second) if access.write}
    return mark.calls, tuple(sorted(written))


def _field(finding: Finding, access: Access) -> str:
    """The field in which an access begins; where the line's fields are not known, all that the finding names."""
    for field in finding.fields:
        if field.offset <= access.offset < field.offset + field.size_bytes:
            return field.name
    return finding.name
