"""The lines of `verdicts.jsonl` (docs/schemas/verdict.schema.json): what is written, and read back, one by one.

    {"finding": {...}, "number": 0}                                     a shared line, with both stacks
    {"fields": [[0, 4, "struct file.f_count"], ...], "number": 0}       what the bytes of a line are called
    {"picture": {"holder": "struct file", "lines": [[64, 0, [[0, [], [[0, 4]]], [1, [[0, 4]], []]]]]}, "number": 0}
    {"test": "open-open-17fda557db39", "outcome": "conflicting", "findings": [0], "pictures": [[0]], ...}

Findings, fields and pictures stand there once, numbered from 0 in the order of their lines, before the first line that
names them. A line of a picture is its offset in the object, the number of its fields, and per core the ranges of bytes
that it read and wrote, as first byte and number of bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from msgspec import UNSET, Meta, Raw, UnsetType

from commutant.campaign import Outcome, Verdict
from commutant.documents import Count, Measure, Part, encode, read
from commutant.mtrace import NOTHING_IGNORED, ByteRange, Finding, LineField, Picture, PictureLine, Touched
from commutant.support import IdentityCache, plural

MAX_KNOWN = 1 << 14
"""So many findings, and pictures, a writer knows by their identity, whatever sessions build; others it compares."""

TimedVerdict = tuple[Verdict, float]
"""A verdict, and the seconds that the campaign had run when it came."""


class NumberedFinding(Part, frozen=True):
    """A finding and its number."""

    finding: Finding
    number: Count


class NumberedFields(Part, frozen=True):
    """What the bytes of a line are called, and the number by which pictures name that."""

    fields: tuple[LineField, ...]
    number: Count


class DrawnLine(Part, frozen=True, array_like=True):
    """A line of a picture; its fields are named by number."""

    offset: Annotated[int, Meta(ge=-(1 << 63))]
    fields: Count
    touched: tuple[tuple[Count, tuple[ByteRange, ...], tuple[ByteRange, ...]], ...]


class DrawnPicture(Part, frozen=True):
    """A picture, its lines as they stand in the file."""

    holder: str
    lines: Annotated[tuple[DrawnLine, ...], Meta(min_length=1)]


class NumberedPicture(Part, frozen=True):
    """A picture and its number."""

    picture: DrawnPicture
    number: Count


class JudgedLine(Part, frozen=True, omit_defaults=True):
    """A verdict; its findings, and the pictures beside each, are named by number.

    `seconds` is how long the campaign had run. Runs of earlier versions have no pictures.
    """

    test: str
    outcome: Outcome
    windows: Count
    ignored: dict[str, Count]
    detail: str
    findings: tuple[Count, ...]
    seconds: Measure
    pictures: tuple[Annotated[tuple[Count, ...], Meta(min_length=1)], ...] | UnsetType = UNSET
    collision: bool = False


VERDICT_LINES = (JudgedLine, NumberedFinding, NumberedPicture, NumberedFields)


class LineWriter:
    """Gives numbers to what verdicts share, and the lines that a file needs before they are named."""

    def __init__(
        self,
        findings: Sequence[Finding] = (),
        pictures: Sequence[Picture] = (),
        fields: Sequence[tuple[LineField, ...]] = (),
    ) -> None:
        """All that is given stands in the file already."""
        self._numbers = {finding: number for number, finding in enumerate(findings)}
        self._first = list(findings)  # by number
        self._pictures = {picture: number for number, picture in enumerate(pictures)}
        self._fields = {one: number for number, one in enumerate(fields)}
        self._new: list[Part] = []
        # Comparing takes time, and sessions give the same objects again and again.
        self._finding_number = IdentityCache(self._number_finding, MAX_KNOWN)
        self._picture_number = IdentityCache(self._number_picture, MAX_KNOWN)

    def lines(self, verdict: Verdict, seconds: float) -> tuple[bytes, Verdict]:
        """The lines to be appended for a verdict, and the verdict with one object for equal findings."""
        numbers = tuple(map(self._finding_number, verdict.findings))
        pictures = tuple(tuple(map(self._picture_number, shown)) for shown in verdict.pictures)
        judged = JudgedLine(
            test=verdict.test_id,
            outcome=verdict.outcome,
            windows=verdict.windows,
            ignored=dict(verdict.ignored),
            detail=verdict.detail,
            findings=numbers,
            seconds=round(seconds, 3),
            pictures=pictures or UNSET,
            collision=verdict.collision,
        )
        new, self._new = [*self._new, judged], []
        known = tuple([self._first[number] for number in numbers])
        return b"".join(encode(line) + b"\n" for line in new), replace(verdict, findings=known) if numbers else verdict

    def _number_finding(self, finding: Finding) -> int:
        """The number of a finding that another session may have met before: then an equal one has it."""
        number = self._numbers.setdefault(finding, len(self._first))
        if number == len(self._first):
            self._first.append(finding)
            self._new.append(NumberedFinding(finding, number))
        return number

    def _number_picture(self, picture: Picture) -> int:
        number = self._pictures.get(picture)
        if number is None:
            number = self._pictures[picture] = len(self._pictures)
            drawn = tuple(
                DrawnLine(
                    line.offset,
                    self._number_fields(line.fields),
                    tuple((one.core, one.read, one.written) for one in line.touched),
                )
                for line in picture.lines
            )
            self._new.append(NumberedPicture(DrawnPicture(picture.holder, drawn), number))
        return number

    def _number_fields(self, fields: tuple[LineField, ...]) -> int:
        number = self._fields.get(fields)
        if number is None:
            number = self._fields[fields] = len(self._fields)
            self._new.append(NumberedFields(fields, number))
        return number


class _Members(Part, frozen=True):
    """The members by which lines are told apart, unread."""

    finding: Raw | UnsetType = UNSET
    picture: Raw | UnsetType = UNSET
    fields: Raw | UnsetType = UNSET


class LineReader:
    """Reads line by line; `findings`, `pictures` and `fields` are those read so far, by number."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.pictures: list[Picture] = []
        self.fields: list[tuple[LineField, ...]] = []
        self._touched: dict[Touched, Touched] = {}
        self._lines: dict[PictureLine, PictureLine] = {}

    def take(self, line: bytes) -> Finding | TimedVerdict | None:
        """The finding or verdict of a line, None for one that later lines refer to; raises ValueError if damaged."""
        members = read(_Members, line)
        if members.finding is not UNSET:
            found = read(NumberedFinding, line)
            _expect(found.number, len(self.findings), "finding")
            self.findings.append(found.finding)
            return found.finding
        if members.picture is not UNSET:
            drawn = read(NumberedPicture, line)
            _expect(drawn.number, len(self.pictures), "picture")
            self.pictures.append(Picture(drawn.picture.holder, tuple(map(self._line, drawn.picture.lines))))
            return None
        if members.fields is not UNSET:
            named = read(NumberedFields, line)
            _expect(named.number, len(self.fields), "fields")
            self.fields.append(named.fields)
            return None
        return self._verdict(read(JudgedLine, line))

    def _line(self, drawn: DrawnLine) -> PictureLine:
        if drawn.fields >= len(self.fields):
            raise ValueError(f"a line names fields that do not stand before it: {drawn.fields}")
        touched = tuple([self._touched.setdefault(one, one) for one in (Touched(*core) for core in drawn.touched)])
        line = PictureLine(drawn.offset, self.fields[drawn.fields], touched)
        return self._lines.setdefault(line, line)

    def _verdict(self, line: JudgedLine) -> TimedVerdict:
        if any(number >= len(self.findings) for number in line.findings):
            raise ValueError(f"findings names one that does not stand before it: {list(line.findings)}")
        if bool(line.findings) != (line.outcome in (Outcome.CONFLICTING, Outcome.UNSTABLE)):
            found = plural(len(line.findings), "finding")
            raise ValueError(f"{line.outcome} with {found}: conflicting and unstable tests have some, no others")
        if line.collision and line.outcome is not Outcome.CONFLICTING:
            raise ValueError("collision is true of conflicting tests alone")
        shown = () if line.pictures is UNSET else line.pictures
        if shown and len(shown) != len(line.findings):
            raise ValueError("pictures is a list of numbers for each finding")
        if any(number >= len(self.pictures) for numbers in shown for number in numbers):
            raise ValueError(f"pictures names one that does not stand before it: {shown!r:.80}")
        verdict = Verdict(
            line.test,
            line.outcome,
            tuple([self.findings[number] for number in line.findings]),
            line.windows,
            line.ignored or NOTHING_IGNORED,
            line.detail,
            line.collision,
            tuple([tuple([self.pictures[number] for number in numbers]) for numbers in shown]),
        )
        return verdict, line.seconds


def _expect(number: int, expected: int, kind: str) -> None:
    if number != expected:
        raise ValueError(f"the {kind} has the number {number}, {expected} is next")
