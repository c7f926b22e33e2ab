"""A run as the arithmetic of changes needs it: for each test the objects that it shares, their lines as bit masks.

A test is freed by a change if nothing stays of what it shares. What it shares are its findings, each with the objects
that showed it; of an object only the lines of the finding are asked for. Equal ones of different tests are one *case*,
so a change is tried on some thousand cases instead of on all tests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from commutant.campaign import Outcome, Verdict
from commutant.mtrace import AccessKind, ByteRange, Finding, LineField, Picture, PictureLine, what_was_done
from commutant.remedy.divide import lock_of, locks_in
from commutant.remedy.places import lies_in, member_of, parts_of, place_of
from commutant.support import UsageError

ALL_BYTES = (1 << 64) - 1

_SHARED = (Outcome.CONFLICTING, Outcome.UNSTABLE)


class Fields:
    """What the bytes of a line at its place in an object are called, by mask: `named` by field, `members` by member of
    the outermost type, and of a variable as a whole; `arrays` are the members that have entries. `parts` has for a name
    the place within its member, where a program's type is around what has several."""

    def __init__(self, holder: str, offset: int, fields: Sequence[LineField]) -> None:
        self.holder = holder
        self.offset = offset
        self.members: dict[str, int] = {}
        self.whole = ""
        self.arrays: set[str] = set()
        self.named = [(one.name, _mask((one.offset, one.size_bytes))) for one in fields]
        self.parts: dict[str, str] = {}
        self._places: dict[str, int] = {}
        self._members_of: dict[int, tuple[str, ...]] = {}
        for one in fields:
            member, is_array = member_of(one.name)
            self.members[member] = self.members.get(member, 0) | _mask((one.offset, one.size_bytes))
            if is_array:
                self.arrays.add(member)
        if holder and not holder.startswith("struct "):
            whole = sum(mask for member, mask in self.members.items() if member.startswith(f"{holder}."))
            if whole:
                self.members[holder] = whole
                self.whole = holder
            self._part(fields)

    def _part(self, fields: Sequence[LineField]) -> None:
        """What a program wraps has places of its own: the parts of a member count as members."""
        of_member: dict[str, dict[str, int]] = {}
        for one in fields:
            of_member.setdefault(member_of(one.name)[0], {})[one.name] = _mask((one.offset, one.size_bytes))
        for known in of_member.values():
            for name, part in parts_of(known).items():
                self.parts[name] = part
                self.members[part] = self.members.get(part, 0) | known[name]

    def mask(self, place: str) -> int:
        """The bytes that lie in a place."""
        mask = self.members.get(place)
        if mask is None:
            mask = self._places.get(place)
        if mask is None:
            mask = sum(bytes_ for name, bytes_ in self.named if lies_in(name, place))
            self._places[place] = mask
        return mask

    def members_of(self, mask: int) -> tuple[str, ...]:
        """The members that have some of these bytes, in the order of their places; no variable as a whole."""
        found = self._members_of.get(mask)
        if found is None:
            overlap = {self.whole, *self.parts.values()}
            within = [one for one, bytes_ in self.members.items() if bytes_ & mask and one not in overlap]
            found = self._members_of[mask] = tuple(within)
        return found

    def mask_of(self, places: Iterable[str]) -> int:
        """The bytes that lie in any of several places."""
        mask = 0
        for place in places:
            mask |= self.mask(place)
        return mask


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an object: its names, and per core the bytes that it read and wrote.

    `prefetched` are the written ones that no core wrote, but some only prefetched for writing.
    """

    fields: Fields
    touched: tuple[tuple[int, int, int], ...]
    prefetched: int = 0

    @property
    def touched_bytes(self) -> int:
        """Those that any core read or wrote."""
        mask = 0
        for _, read, written in self.touched:
            mask |= read | written
        return mask

    @property
    def written_bytes(self) -> int:
        """Those that any core wrote, or prefetched for writing."""
        mask = 0
        for _, _, written in self.touched:
            mask |= written
        return mask

    def is_looked_at(self, member: str) -> bool:
        """Whether a core touched what another wrote of a member: then the write changed something for it."""
        mask = self.fields.mask(member)
        return any(
            (read | wrote) & written & mask
            for core, _, written in self.touched
            for other, read, wrote in self.touched
            if other != core
        )


@dataclass(frozen=True, slots=True)
class Case:
    """An object that shows a finding: its lines, and which of them are the finding's (indices). `name` is the
    finding's, `lock` the one that it goes with, as a place; empty if none."""

    name: str
    lines: tuple[Line, ...]
    examined: tuple[int, ...]
    lock: str = ""


@dataclass(slots=True)
class Scene:
    """A run's cases, and its tests with the numbers of theirs.

    `tests` holds those that are not conflict-free: their cases, each once. `by_case` names for each case the tests.
    `lines` are those of pictures, with these, by the type of the object and the identity of the picture's line.
    `starts` says where a place begins in an object, as far as any shared line of it tells; `entries` how long an entry
    of an array is, by the shortest access to it.
    """

    cases: list[Case] = field(default_factory=list)
    tests: dict[str, tuple[int, ...]] = field(default_factory=dict)
    by_case: list[list[str]] = field(default_factory=list)
    starts: dict[tuple[str, str], int] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)
    judged: int = 0
    has_pictures: bool = True
    lines: dict[tuple[str, int], tuple[Line, PictureLine]] = field(default_factory=dict)

    def line(self, holder: str, drawn: PictureLine) -> Line:
        """The line of a picture that shows a finding of the run."""
        return self.lines[holder, id(drawn)][0]

    def start(self, fields: Fields, place: str) -> int:
        """Where a place begins in the object of these fields."""
        key = fields.holder, place
        start = self.starts.get(key)
        if start is None:  # a part of a member: the lowest of its lines that were seen
            known = (one for case in self.cases for one in case.lines if one.fields.holder == fields.holder)
            firsts = (one.fields.offset + _first(one.fields.mask(place)) for one in known if one.fields.mask(place))
            start = self.starts[key] = min(firsts, default=fields.offset)
        return start

    def entry_bytes(self, place: str) -> int:
        """The size of an entry of an array; of one whose entries no call touched alone, a pointer's."""
        return self.entries.get(place, 8)

    def has(self, place: str) -> bool:
        """Whether the run tells of a place."""
        return any(line.fields.mask(place) for case in self.cases for line in case.lines)

    def joined(self, place: str) -> str:
        """The name of bytes that are this field's and others', as of bit fields (`first..last`); empty if none are."""
        holder, _, field_ = place.rpartition(".")
        for line in {id(line): line for case in self.cases for line in case.lines}.values():
            for name, _ in line.fields.named:
                known = place_of(name)
                ends = known.removeprefix(f"{holder}.").split("..")
                if len(ends) > 1 and known.startswith(f"{holder}.") and field_ in ends:
                    return known
        return ""

    def locks(self) -> list[str]:
        """All locks that any case goes with, in alphabetical order."""
        return sorted({case.lock for case in self.cases if case.lock})

    def members(self) -> list[str]:
        """All members that any shared line has, in alphabetical order."""
        return sorted({member for case in self.cases for line in case.lines for member in line.fields.members})


def scene_of(verdicts: Iterable[Verdict]) -> Scene:
    """The scene of a run's verdicts; raises UsageError if none of them says what was touched."""
    known = list(verdicts)
    shared = (verdict for verdict in known if verdict.outcome in _SHARED)
    locks = locks_in({id(one): one for verdict in shared for one in verdict.findings}.values())
    builder = _Builder(_prefetched(known), locks)
    for verdict in known:
        builder.add(verdict)
    scene = builder.scene
    if scene.tests and not any(line.touched for case in scene.cases for line in case.lines):
        raise UsageError("the run does not say which bytes were touched: it is of an earlier version")
    return scene


def _prefetched(verdicts: Iterable[Verdict]) -> dict[int, int]:
    """For lines of pictures, by identity, the bytes that were prefetched for writing in some course, and written in
    none."""
    prefetched: dict[int, int] = {}
    written: dict[int, int] = {}
    looked_at: set[tuple[int, bytes]] = set()
    for verdict in verdicts:
        for window in verdict.courses:
            for one in window.objects if window is not None else ():
                for line, course in zip(one.picture.lines, one.lines, strict=True):
                    if (id(line), course) in looked_at:
                        continue
                    looked_at.add((id(line), course))
                    for kind, offset, size_bytes in what_was_done(course):
                        if kind != AccessKind.READ:
                            kept = prefetched if kind == AccessKind.PREFETCH_FOR_WRITE else written
                            kept[id(line)] = kept.get(id(line), 0) | _mask((offset, size_bytes))
    found = {line: mask & ~written.get(line, 0) for line, mask in prefetched.items()}
    return {line: mask for line, mask in found.items() if mask}


class _Builder:
    def __init__(self, prefetched: Mapping[int, int], locks: Collection[str]) -> None:
        self.scene = Scene()
        self._locks = locks
        self._prefetched = prefetched
        self._fields: dict[tuple[str, int, int], tuple[Fields, object]] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._known: dict[tuple[str, str, int, tuple[int, ...]], int] = {}
        self._kept: list[object] = []

    def add(self, verdict: Verdict) -> None:
        if verdict.outcome in (*_SHARED, Outcome.CONFLICT_FREE):
            self.scene.judged += 1
        if verdict.outcome not in _SHARED:
            return
        if any(finding.sharing == "neighbour" for finding in verdict.findings):
            raise UsageError("the run counted neighbouring lines; expected one whose target has no neighbours=on")
        pictures = verdict.pictures
        if not pictures:
            self.scene.has_pictures = False
            pictures = tuple((_first_meeting(one),) for one in verdict.findings)
        numbers = dict.fromkeys(
            self._number(finding, picture)
            for finding, shown in zip(verdict.findings, pictures, strict=True)
            for picture in shown
        )
        self.scene.tests[verdict.test_id] = tuple(numbers)
        for number in numbers:
            self.scene.by_case[number].append(verdict.test_id)

    def _number(self, finding: Finding, picture: Picture) -> int:
        # By identity: a run's verdicts share one object per distinct finding and picture.
        key = id(finding), id(picture)
        number = self._numbers.get(key)
        if number is None:
            self._kept += (finding, picture)
            examined = _lines_of(finding, picture)
            self._learn_entries(finding)
            number = self._numbers[key] = self._case(finding, picture, examined)
        return number

    def _case(self, finding: Finding, picture: Picture, examined: tuple[int, ...]) -> int:
        lock = lock_of(finding, self._locks)
        key = finding.name, lock, id(picture), examined
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.scene.cases)
            lines = tuple(self._line(picture.holder, line) for line in picture.lines)
            self.scene.cases.append(Case(finding.name, lines, examined, lock))
            self.scene.by_case.append([])
        return number

    def _line(self, holder: str, line: PictureLine) -> Line:
        known = self.scene.lines.get((holder, id(line)))
        if known is None:
            key = holder, line.offset, id(line.fields)
            named = self._fields.get(key)
            if named is None:
                named = self._fields[key] = Fields(holder, line.offset, line.fields), line.fields
                for member, mask in named[0].members.items():
                    start = line.offset + _first(mask)
                    place = holder, member
                    self.scene.starts[place] = min(start, self.scene.starts.get(place, start))
            touched = tuple((one.core, _masks(one.read), _masks(one.written)) for one in line.touched)
            prefetched = self._prefetched.get(id(line), 0)
            known = self.scene.lines[holder, id(line)] = Line(named[0], touched, prefetched), line
        return known[0]

    def _learn_entries(self, finding: Finding) -> None:
        for access in (finding.first, finding.second):
            for one in finding.fields:
                if one.offset <= access.offset < one.offset + one.size_bytes and one.name.endswith("[]"):
                    place = place_of(one.name)
                    known = self.scene.entries.get(place, access.size_bytes)
                    self.scene.entries[place] = max(1, min(known, access.size_bytes))


def _first_meeting(finding: Finding) -> Picture:
    """What runs of earlier versions have: the line where the finding was met first, wherever in its object it lies."""
    return Picture("", (PictureLine(0, finding.fields, finding.touched),))


def _lines_of(finding: Finding, picture: Picture) -> tuple[int, ...]:
    """The lines of an object that may be the finding's: on which its two cores did what its accesses do, and where the
    bytes have its name. All lines if none is."""
    if len(picture.lines) == 1:
        return (0,)
    did = [number for number, line in enumerate(picture.lines) if _did(finding, line)]
    part = finding.object
    named = [
        number
        for number in did
        if any(
            one.offset <= finding.first.offset < one.offset + one.size_bytes and one.name.startswith(part)
            for one in picture.lines[number].fields
        )
    ]
    return tuple(named or did or range(len(picture.lines)))


def _did(finding: Finding, line: PictureLine) -> bool:
    return all(
        any(
            one.core == access.core and _masks(one.written if access.write else one.read) >> access.offset & 1
            for one in line.touched
        )
        for access in (finding.first, finding.second)
    )


def _mask(one: ByteRange) -> int:
    offset, size_bytes = one
    return ((1 << size_bytes) - 1) << offset


def _masks(ranges: Iterable[ByteRange]) -> int:
    mask = 0
    for one in ranges:
        mask |= _mask(one)
    return mask


def _first(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
