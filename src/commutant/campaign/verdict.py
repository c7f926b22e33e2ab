"""The verdict on one test: a small state machine over the records of its windows.

A kernel's memory traffic is not the same in every run, so one window that shared a line proves little. The rule
(docs/reference/cli.md, "Verdicts"):

    round 1   one window for each order; all clean -> conflict-free
    round 2   for each order as many more as make `repeats` (three) in all
    then      a finding stands if it was in a majority (two of three) of the windows of *any* order
              one stands -> conflicting
              none, and at most one window had any finding -> conflict-free; else -> unstable

A window whose outcome was not acceptable makes the test `wrong_result`, whatever else was seen; one in which the
implementation died makes it `crashed`; both end the test with the round in which they happened. A test with a call that
the target does not know is `skipped` and has no window; so is one in which the target does not offer what the test
needs, which its windows show. A window whose set-up led elsewhere, by a choice that the model leaves open, says nothing
of the test: it is run again, as often as any window is, and if none of some order got there, the test is `skipped` as
not reached. Nothing in here runs anything or knows of time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from commutant.mtrace import NOTHING_IGNORED, Finding, Identity, Picture, WindowCourse
from commutant.targets import WindowRecord

if TYPE_CHECKING:
    from commutant.corpus import TestCase

DEFAULT_REPEATS = 3

NOT_REACHED = "set-up not reached"
"""How the detail of a test begins whose set-up an implementation leads elsewhere, as the model allows."""


class Outcome(StrEnum):
    """What a test can come to; every test of a campaign comes to exactly one."""

    CONFLICT_FREE = "conflict_free"
    CONFLICTING = "conflicting"
    UNSTABLE = "unstable"
    WRONG_RESULT = "wrong_result"
    SKIPPED = "skipped"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a test came to.

    `findings` are, of a conflicting test, those that stand; of an unstable one, all that were seen; of any other, none.
    They are sorted by identity, each as it was first seen. With each stand in `pictures` the objects that showed it,
    in the first window of each order that had it; none of targets that draw none, and of runs of earlier versions.
    `courses` has, for each order, in which order the lines of these were touched in the first window with findings;
    empty as `pictures` is. `windows` were run for it, `ignored` counts per ignoring rule the lines dropped in them.
    `detail` says what was wrong, how the implementation died, or why the test was skipped; empty otherwise. `collision`
    says of a conflicting test that it is conflict-free under another hash seed.
    """

    test_id: str
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    windows: int = 0
    ignored: Mapping[str, int] = field(default_factory=lambda: NOTHING_IGNORED)
    detail: str = ""
    collision: bool = False
    pictures: tuple[tuple[Picture, ...], ...] = ()
    courses: tuple[WindowCourse | None, ...] = ()

    @property
    def is_unreached(self) -> bool:
        """Whether the implementation led the test's set-up elsewhere, as the model allows."""
        return self.outcome is Outcome.SKIPPED and self.detail.startswith(NOT_REACHED)


def skipped(test: TestCase, reason: str) -> Verdict:
    """The verdict on a test that the target cannot run."""
    return Verdict(test.id, Outcome.SKIPPED, detail=reason)


class Judge:
    """Judges one test: ask `due` which windows to run, `add` their records, until `verdict` is not None.

    `repeats` is the number of windows per order that decide; with 1, the first window of each order decides alone.
    Windows run in rounds of one per order: the first alone, the others, if any has findings, together.
    """

    __slots__ = (
        "_courses",
        "_crashed",
        "_due_until",
        "_first_seen",
        "_ignored",
        "_pictures",
        "_reached",
        "_repeats",
        "_seen",
        "_unreached",
        "_unsupported",
        "_verdict",
        "_windows",
        "_with_findings",
        "_wrong",
        "test",
    )

    def __init__(self, test: TestCase, repeats: int = DEFAULT_REPEATS) -> None:
        if repeats < 1:
            raise ValueError(f"repeats must be at least 1, got {repeats}")
        self.test = test
        self._repeats = repeats
        self._windows = 0
        self._due_until = len(test.orders)
        # Most tests share nothing: what counts findings is made with the first one.
        self._seen: Counter[tuple[int, Identity]] | None = None
        self._first_seen: dict[Identity, Finding] | None = None
        # By identity, which is quicker than comparing: a session gives one object for equal pictures.
        self._pictures: dict[Identity, dict[int, Picture]] = {}
        self._courses: dict[int, WindowCourse] = {}
        self._ignored: Counter[str] | None = None
        self._with_findings = 0
        self._wrong = ""
        self._crashed = ""
        self._unsupported = ""
        self._unreached = ""
        self._reached: set[int] = set()
        self._verdict: Verdict | None = None

    @property
    def due(self) -> tuple[int, ...]:
        """The order indices of the windows that this round still needs, in the order to run them; empty at the end."""
        orders = len(self.test.orders)
        return tuple([window % orders for window in range(self._windows, self._due_until)])

    @property
    def due_count(self) -> int:
        """How many windows `due` holds."""
        return self._due_until - self._windows

    @property
    def verdict(self) -> Verdict | None:
        """The verdict, once enough windows were seen."""
        return self._verdict

    def add(self, record: WindowRecord) -> None:
        """Takes the record of the next window that was due."""
        order_index = self._windows % len(self.test.orders)
        if record.job.order_index != order_index or self._windows >= self._due_until:
            raise ValueError(f"{self.test.id}: expected a window of order {order_index}, got {record.job.order_index}")
        self._windows += 1
        if record.ignored:
            self._ignored = self._ignored or Counter()
            self._ignored.update(record.ignored)
        if record.unsupported is not None:
            self._unsupported = record.unsupported
        elif record.unreached is not None:
            self._unreached = record.unreached
        elif record.crashed is not None:
            self._crashed = self._crashed or record.crashed or "the implementation died"
        elif record.wrong is not None:
            self._wrong = self._wrong or record.wrong or "an outcome that is not acceptable"
        else:
            self._reached.add(order_index)
            if record.findings:
                self._take_findings(order_index, record)
        if self._windows == self._due_until:
            self._end_round()

    def _take_findings(self, order_index: int, record: WindowRecord) -> None:
        self._with_findings += 1
        if self._seen is None or self._first_seen is None:
            self._seen, self._first_seen = Counter(), {}
        # Of lines that nothing else tells apart, one that lies under no lock is the cause of more: it comes last.
        outer_last = sorted(record.findings, key=lambda finding: not finding.under)
        here = {finding.identity: finding for finding in outer_last}
        for identity, finding in here.items():
            self._seen[order_index, identity] += 1
            self._first_seen.setdefault(identity, finding)
        if record.course is not None:
            self._courses.setdefault(order_index, record.course)
        if record.pictures:
            for finding, picture in zip(record.findings, record.pictures, strict=True):
                if self._seen[order_index, finding.identity] == 1:
                    self._pictures.setdefault(finding.identity, {})[id(picture)] = picture

    def _end_round(self) -> None:
        orders = len(self.test.orders)
        if self._wrong:
            self._decide(Outcome.WRONG_RESULT, detail=self._wrong)
        elif self._crashed:
            self._decide(Outcome.CRASHED, detail=self._crashed)
        elif self._unsupported:
            self._decide(Outcome.SKIPPED, detail=self._unsupported)
        elif (self._with_findings or self._unreached) and self._windows < orders * self._repeats:
            self._due_until = orders * self._repeats
        else:
            majority = self._repeats // 2 + 1
            seen: Mapping[tuple[int, Identity], int] = self._seen or {}
            standing = {identity for (_, identity), count in seen.items() if count >= majority}
            if standing:
                self._decide(Outcome.CONFLICTING, standing)
            elif len(self._reached) < orders:
                self._decide(Outcome.SKIPPED, detail=f"{NOT_REACHED}: {self._unreached}")
            elif self._with_findings <= 1:
                self._decide(Outcome.CONFLICT_FREE)
            else:
                self._decide(Outcome.UNSTABLE, self._first_seen or ())

    def _decide(self, outcome: Outcome, identities: Iterable[Identity] = (), detail: str = "") -> None:
        first_seen = self._first_seen or {}
        ordered = sorted(identities)
        findings = tuple([first_seen[identity] for identity in ordered])
        pictures = tuple([tuple(self._pictures[identity].values()) for identity in ordered]) if self._pictures else ()
        courses = self._courses_of(pictures) if self._courses and ordered else ()
        ignored = NOTHING_IGNORED if self._ignored is None else dict(self._ignored)
        self._verdict = Verdict(
            self.test.id, outcome, findings, self._windows, ignored, detail, pictures=pictures, courses=courses
        )

    def _courses_of(self, pictures: Iterable[tuple[Picture, ...]]) -> tuple[WindowCourse | None, ...]:
        """For each order the course of the objects that show what stands."""
        shown = {id(picture) for each in pictures for picture in each}
        courses: list[WindowCourse | None] = []
        for order in range(len(self.test.orders)):
            course = self._courses.get(order)
            objects = () if course is None else tuple([one for one in course.objects if id(one.picture) in shown])
            courses.append(WindowCourse(course.periods, objects) if course is not None and objects else None)
        return tuple(courses)
