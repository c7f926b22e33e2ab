"""A run as the measure of transfers needs it: for each test the objects that its calls met, each with its course.

The calls of a test are made again and again, each by a core, at random phases; how often lines then go from core to
core per round is computed by the crate `transfers`, which docs/guides/remedies.md explains. Objects that are alike in
all that counts are one *meeting*, so a change is tried on each once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from commutant import _native
from commutant.campaign import Outcome, Verdict
from commutant.mtrace import ObjectCourse
from commutant.remedy.change import Change
from commutant.remedy.layout import LINE_BYTES, pieces
from commutant.remedy.scene import Line, Scene
from commutant.support import UsageError

DEFAULT_CORES = 32
"""Near what many cores do: who lets go of a line finds it gone."""
MAX_CORES = 4096


@dataclass(frozen=True, slots=True)
class Transfers:
    """Expected transfers per round of a test's calls: `plain` for caches that share a modified line on a read,
    `taken_over` for those that hand it over whole. Real ones lie between, or near one of them."""

    plain: float = 0.0
    taken_over: float = 0.0

    def __add__(self, other: Transfers) -> Transfers:
        """Both."""
        return Transfers(self.plain + other.plain, self.taken_over + other.taken_over)

    def __sub__(self, other: Transfers) -> Transfers:
        """What is saved by having the other instead."""
        return Transfers(self.plain - other.plain, self.taken_over - other.taken_over)

    def __mul__(self, factor: float) -> Transfers:
        """This many times as many."""
        return Transfers(self.plain * factor, self.taken_over * factor)

    @property
    def ends(self) -> tuple[float, float]:
        """The lower and the higher of the two."""
        return min(self.plain, self.taken_over), max(self.plain, self.taken_over)


def range_text(count: Transfers) -> str:
    """Both numbers; one where they look alike."""
    plain, taken_over = f"{count.plain:.2f}", f"{count.taken_over:.2f}"
    return plain if plain == taken_over else f"{plain} to {taken_over}"


@dataclass(frozen=True, slots=True)
class Meeting:
    """What cores did to one object: its lines with names, what each course holds, and the periods of the cores."""

    lines: tuple[Line, ...]
    courses: tuple[bytes, ...]
    periods: tuple[int, ...]

    def members(self, at: int) -> tuple[str, ...]:
        """The members that cores touched on the line of this number."""
        return self.lines[at].fields.members_of(self.lines[at].touched_bytes)

    def lines_of(self, members: Collection[str]) -> list[int]:
        """The numbers of the lines on which cores touched any of these members."""
        return [at for at in range(len(self.lines)) if any(name in members for name in self.members(at))]


@dataclass(slots=True)
class Traffic:
    """A run's meetings; `tests` are those whose calls all succeed, with the mean number of each meeting in their
    orders.

    `sets` holds for each set of calls its tests, and `before` what each meeting costs as it is.
    """

    scene: Scene
    cores: int
    meetings: list[Meeting] = field(default_factory=list)
    before: list[Transfers] = field(default_factory=list)
    tests: dict[str, dict[int, float]] = field(default_factory=dict)
    sets: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    calls: dict[str, tuple[str, ...]] = field(default_factory=dict)
    totals: dict[str, Transfers] = field(default_factory=dict)
    by_meeting: list[dict[str, float]] = field(default_factory=list)

    def after(self, numbers: Sequence[int], changes: Sequence[Sequence[Change]]) -> list[list[Transfers]]:
        """What meetings with the same lines cost, each with each of several sets of changes."""
        return self._costs(numbers, [_layout(self.scene, self.meetings[numbers[0]].lines, one) for one in changes])

    def cost_of(self, number: int, lines: Collection[int], changes: Sequence[Change] = ()) -> Transfers:
        """What some of a meeting's lines cost, with changes."""
        ((cost,),) = self._costs([number], [_layout(self.scene, self.meetings[number].lines, changes, lines)])
        return cost

    def _costs(self, numbers: Sequence[int], layouts: Sequence[_Layout]) -> list[list[Transfers]]:
        met = [(self.meetings[number].periods, self.meetings[number].courses) for number in numbers]
        try:
            found = _native.course_transfers(met, layouts, self.cores)
        except ValueError as error:
            raise UsageError(f"the run's courses are damaged: {error}") from None
        return [[Transfers(*one) for one in each] for each in found]

    def crosses_border(self, place: str) -> bool:
        """Whether a place that would fit into a line lies in two."""
        last = 1 << (LINE_BYTES - 1)
        for meeting in self.meetings:
            for one, other in zip(meeting.lines, meeting.lines[1:], strict=False):
                low, high = one.fields.mask(place), other.fields.mask(place)
                is_next = other.fields.offset - one.fields.offset == LINE_BYTES
                if is_next and low & last and high & 1 and low.bit_count() + high.bit_count() <= LINE_BYTES:
                    return True
        return False

    def alike(self) -> Iterable[list[int]]:
        """The meetings, those with the same lines together."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for number, meeting in enumerate(self.meetings):
            groups.setdefault(tuple(map(id, meeting.lines)), []).append(number)
        return groups.values()

    def touching(self, changes: Sequence[Change]) -> list[int]:
        """The meetings that changes are about."""
        places = [place for change in changes for place in change.places]
        return [
            number
            for number, meeting in enumerate(self.meetings)
            if any(line.fields.mask_of(places) & line.touched_bytes for line in meeting.lines)
        ]


_Layout = list[list[tuple[int, int, int, int]]]


def traffic_of(
    verdicts: Iterable[Verdict],
    scene: Scene,
    calls: Mapping[str, tuple[str, ...]],
    failing: Collection[str],
    cores: int = DEFAULT_CORES,
) -> Traffic:
    """The traffic of a run's verdicts; `failing` are the tests in which a call may fail, which are left out.

    Raises UsageError if the run does not say in which order lines were touched.
    """
    traffic = Traffic(scene, cores)
    numbers: dict[tuple[int, tuple[bytes, ...], tuple[int, ...]], int] = {}
    has_courses = has_findings = False
    for verdict in verdicts:
        has_findings = has_findings or bool(verdict.findings)
        has_courses = has_courses or bool(verdict.courses)
        judged = verdict.outcome in (Outcome.CONFLICTING, Outcome.UNSTABLE, Outcome.CONFLICT_FREE)
        if not judged or verdict.test_id in failing:
            continue
        met: Counter[int] = Counter()
        for window in verdict.courses:
            for one in window.objects if window is not None else ():
                key = id(one.picture), one.lines, window.periods if window is not None else ()
                number = numbers.get(key)
                if number is None:
                    number = numbers[key] = len(traffic.meetings)
                    traffic.meetings.append(_meeting(scene, one, key[2]))
                met[number] += 1
        traffic.tests[verdict.test_id] = {number: count / len(verdict.courses) for number, count in met.items()}
    if has_findings and not has_courses:
        raise UsageError(
            "the run does not say in which order lines were touched, so transfers cannot be counted: it is of an "
            "earlier version"
        )
    _add_up(traffic, calls)
    return traffic


def _meeting(scene: Scene, one: ObjectCourse, periods: tuple[int, ...]) -> Meeting:
    return Meeting(tuple(scene.line(one.picture.holder, line) for line in one.picture.lines), one.lines, periods)


def _add_up(traffic: Traffic, calls: Mapping[str, tuple[str, ...]]) -> None:
    traffic.before = [Transfers()] * len(traffic.meetings)
    traffic.by_meeting = [{} for _ in traffic.meetings]
    for numbers in traffic.alike():
        for number, (cost,) in zip(numbers, traffic.after(numbers, [()]), strict=True):
            traffic.before[number] = cost
    for test, met in traffic.tests.items():
        traffic.calls[test] = calls[test]
        traffic.sets.setdefault(calls[test], []).append(test)
        total = Transfers()
        for number, count in met.items():
            total += traffic.before[number] * count
            traffic.by_meeting[number][test] = count
        traffic.totals[test] = total


def _layout(
    scene: Scene, lines: Sequence[Line], changes: Sequence[Change], numbers: Collection[int] | None = None
) -> _Layout:
    """Where changes put what cores do to these lines, or to those of some numbers."""
    made: dict[object, list[tuple[int, int, int, int]]] = {}
    for at, line in enumerate(lines):
        if numbers is not None and at not in numbers:
            continue
        for key, core, read, written in pieces(scene, line, at, changes):
            if read or written:
                made.setdefault(key, []).append((at, core, read, written))
    return list(made.values())
