"""The lines of `verdicts.jsonl` (docs/schemas/verdict.schema.json): what is written, and read back, one by one.

    {"finding": {...}, "number": 0}                                     a shared line, with both stacks
    {"fields": [[0, 4, "struct file.f_count"], ...], "number": 0}       what the bytes of a line are called
    {"picture": {"holder": "struct file", "lines": [[64, 0, [[0, [], [[0, 4]]], [1, [[0, 4]], []]]]]}, "number": 0}
    {"course": [[0, [[577, 3, 24, 4]]], [1, [[512, 0, 0, 8], [580, 0, 24, 4]]]], "number": 0}
    {"test": "open-open-17fda557db39", "outcome": "conflicting", "findings": [0], "pictures": [[0]],
     "courses": [[[1204, 1190], [[0, [0]]]], null], ...}

Findings, fields, pictures and courses stand there once, numbered from 0 in the order of their lines, before the first
line that names them. A line of a picture is its offset in the object, the number of its fields, and per core the ranges
of bytes that it read and wrote, as first byte and number of bytes. A course is what was done to one line: per core its
accesses in order, each as the number of the core's accesses before it, its kind (0 read, 1 write, 2 prefetch for
writing, 3 read and write by one instruction), first byte and number of bytes. The courses of a test are, for each of
its orders, the accesses that each core's call made in all, and the objects: number of the picture, and for each of its
lines the number of the course.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

from msgspec import UNSET, Meta, Raw, UnsetType

from commutant.campaign import Outcome, Verdict
from commutant.documents import Count, Measure, Part, encode, read
from commutant.mtrace import (
    LINE_BYTES,
    NOTHING_IGNORED,
    AccessKind,
    ByteRange,
    CourseAccess,
    Finding,
    LineField,
    ObjectCourse,
    Picture,
    PictureLine,
    Touched,
    WindowCourse,
    pack_course,
    unpack_course,
)
from commutant.support import IdentityCache, plural

MAX_KNOWN = 1 << 14
"""This many findings, and pictures, a writer knows by their identity, whatever sessions build; others it compares."""

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


class CoursedAccess(Part, frozen=True, array_like=True):
    """An access of a course: how many of its core's came before it, what it does, and to which bytes."""

    position: Annotated[int, Meta(ge=0, lt=1 << 32)]
    kind: Annotated[int, Meta(ge=0, le=int(max(AccessKind)))]
    offset: Annotated[int, Meta(ge=0, lt=LINE_BYTES)]
    size_bytes: Annotated[int, Meta(ge=1, le=LINE_BYTES)]


CoursedCore = tuple[Annotated[int, Meta(ge=0, lt=256)], tuple[CoursedAccess, ...]]
"""A core, and its accesses to a line in order."""


class NumberedCourse(Part, frozen=True):
    """What cores did to a line, and the number by which tests name that."""

    course: tuple[CoursedCore, ...]
    number: Count


CoursedWindow = tuple[tuple[Count, ...], tuple[tuple[Count, tuple[Count, ...]], ...]]
"""The accesses of each core, and per object the number of its picture and the courses of its lines."""


class JudgedLine(Part, frozen=True, omit_defaults=True):
    """A verdict; its findings, and the pictures of each, are named by number.

    `seconds` is how long the campaign had run. Runs of earlier versions have no pictures, or no courses.
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
    courses: tuple[CoursedWindow | None, ...] | UnsetType = UNSET


VERDICT_LINES = (JudgedLine, NumberedFinding, NumberedPicture, NumberedFields, NumberedCourse)


class LineWriter:
    """Gives numbers to what verdicts share, and the lines that a file needs before they are named."""

    def __init__(
        self,
        findings: Sequence[Finding] = (),
        pictures: Sequence[Picture] = (),
        fields: Sequence[tuple[LineField, ...]] = (),
        courses: Sequence[bytes] = (),
    ) -> None:
        """All that is given stands in the file already."""
        self._numbers = {finding: number for number, finding in enumerate(findings)}
        self._first = list(findings)  # by number
        self._pictures = {picture: number for number, picture in enumerate(pictures)}
        self._fields = {one: number for number, one in enumerate(fields)}
        self._courses = {course: number for number, course in enumerate(courses)}
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
            courses=tuple(map(self._coursed, verdict.courses)) or UNSET,
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

    def _coursed(self, course: WindowCourse | None) -> CoursedWindow | None:
        if course is None:
            return None
        objects = tuple(
            (self._picture_number(one.picture), tuple(map(self._number_course, one.lines))) for one in course.objects
        )
        return course.periods, objects

    def _number_course(self, course: bytes) -> int:
        number = self._courses.get(course)
        if number is None:
            number = self._courses[course] = len(self._courses)
            cores: dict[int, list[CoursedAccess]] = {}
            for position, core, *what in unpack_course(course):
                cores.setdefault(core, []).append(CoursedAccess(position, *what))
            self._new.append(NumberedCourse(tuple((core, tuple(made)) for core, made in cores.items()), number))
        return number

    def _number_fields(self, fields: tuple[LineField, ...]) -> int:
        number = self._fields.get(fields)
        if number is None:
            number = self._fields[fields] = len(self._fields)
            self._new.append(NumberedFields(fields, number))
        return number


class _Members(Part, frozen=True):
    """The members by which lines are distinguished, unread."""

    finding: Raw | UnsetType = UNSET
    picture: Raw | UnsetType = UNSET
    fields: Raw | UnsetType = UNSET
    course: Raw | UnsetType = UNSET


class LineReader:
    """Reads line by line; `findings`, `pictures`, `fields` and `courses` are those read so far, by number."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.pictures: list[Picture] = []
        self.fields: list[tuple[LineField, ...]] = []
        self.courses: list[bytes] = []
        self._periods: dict[tuple[int, ...], tuple[int, ...]] = {}
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
        if members.course is not UNSET:
            made = read(NumberedCourse, line)
            _expect(made.number, len(self.courses), "course")
            self.courses.append(_packed(made.course))
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
        courses = () if line.courses is UNSET else line.courses
        verdict = Verdict(
            line.test,
            line.outcome,
            tuple([self.findings[number] for number in line.findings]),
            line.windows,
            line.ignored or NOTHING_IGNORED,
            line.detail,
            line.collision,
            tuple([tuple([self.pictures[number] for number in numbers]) for numbers in shown]),
            tuple([self._course(course) for course in courses]),
        )
        return verdict, line.seconds

    def _course(self, window: CoursedWindow | None) -> WindowCourse | None:
        if window is None:
            return None
        periods, objects = window
        made: list[ObjectCourse] = []
        for picture, courses in objects:
            if picture >= len(self.pictures) or any(number >= len(self.courses) for number in courses):
                raise ValueError(f"courses names what does not stand before it: {(picture, courses)!r:.80}")
            if len(courses) != len(self.pictures[picture].lines):
                raise ValueError(f"courses is a number for each line of a picture: {(picture, courses)!r:.80}")
            made.append(ObjectCourse(self.pictures[picture], tuple([self.courses[number] for number in courses])))
        return WindowCourse(self._periods.setdefault(periods, periods), tuple(made))


def _packed(course: Iterable[CoursedCore]) -> bytes:
    """The course of a line; raises ValueError for bytes beyond it, and where a core's accesses are not in order."""
    accesses: list[CourseAccess] = []
    for core, made in course:
        last = 0
        for one in made:
            if one.offset + one.size_bytes > LINE_BYTES:
                raise ValueError(
                    f"{one.size_bytes} bytes from {one.offset} on do not lie within a line of {LINE_BYTES}"
                )
            if one.position < last:
                raise ValueError(f"a course is in order: {one.position} stands after {last}")
            last = one.position
            accesses.append(CourseAccess(last, core, one.kind, one.offset, one.size_bytes))
    return pack_course(accesses)


def _expect(number: int, expected: int, kind: str) -> None:
    if number != expected:
        raise ValueError(f"the {kind} has the number {number}, {expected} is next")
