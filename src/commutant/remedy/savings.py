"""Which changes save most transfers of lines, whether or not they free a test; and which cost some.

Layouts come first: parting a line into what is written and what is mostly read, and moving or spreading single members.
Then what changes code: dividing per core, and leaving accesses out. Of each change the share of a test's transfers that
it saves is taken, averaged over the tests of a set of calls and then over sets, so that a set with many transfers does
not drown the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from commutant.mtrace import AccessKind, what_was_done
from commutant.remedy.change import Change, Way
from commutant.remedy.foretell import foretell
from commutant.remedy.mix import Mix
from commutant.remedy.places import path_of
from commutant.remedy.scene import Fields
from commutant.remedy.sense import Sense
from commutant.remedy.traffic import Meeting, Traffic, Transfers

LAYOUTS = (Way.PART, Way.MOVE, Way.SPREAD)
"""Ways that change no code."""

_WRITTEN_SHARE = 0.2
"""A member is written if more than this share of its accesses on shared lines are writes; others are mostly read."""
_LEAST = 1e-6
_WORTH_NAMING = 0.05
"""A neighbour is named where a meeting saves this many transfers."""
_NEIGHBOURS = 6


@dataclass(frozen=True, slots=True)
class BestTest:
    """The test of which a change saves the largest share."""

    test: str
    saved: Transfers
    of: Transfers


@dataclass(frozen=True, slots=True)
class Saving:
    """What changes save: the share of all, by the weights; the mean `saved` of `of` in the tests that they change.

    `worse` are those tests that have more transfers than before, and `freed` counts tests that share nothing any more.
    `neighbours` are members that have the line with what leaves it, the most common first.
    """

    changes: tuple[Change, ...]
    share: Transfers
    saved: Transfers
    of: Transfers
    tests: tuple[str, ...]
    worse: tuple[str, ...]
    best: BestTest | None
    sets: tuple[tuple[tuple[str, ...], Transfers], ...]
    freed: int
    neighbours: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Savings:
    """The list: layouts, what changes code, and layouts that make it worse; `total` is the mean of a test."""

    layouts: tuple[Saving, ...]
    accesses: tuple[Saving, ...]
    worse: tuple[Saving, ...]
    total: Transfers
    sets: int
    tests: int


def rank_savings(traffic: Traffic, sense: Sense, mix: Mix, count: int) -> Savings:
    """The changes of single places, and partings of lines, that save most; at most `count` of layouts and of others."""
    weigh = _Weights(traffic, mix)
    written = _written_shares(traffic)
    saved = _saved_by_change(traffic, sense, written)
    share = {change: weigh.share(found) for change, found in saved.items()}

    def order(change: Change) -> tuple[float, int, float, int, str]:
        # Of two that save the same, the one that moves less; of two that share a line, the one that is written more.
        most = max(written.get(place, 0.0) for place in change.places)
        moved, way = len(change.places), list(Way).index(change.way)
        return -round(share[change].plain, 6), moved, -round(most, 6), way, change.place

    ordered = sorted((change for change in share if share[change].plain > _LEAST), key=order)
    layouts = [change for change in ordered if change.way in LAYOUTS][:count]
    accesses = [change for change in ordered if change.way not in LAYOUTS][:count]
    worst = sorted(share, key=lambda change: (share[change].plain, change.place))
    worse = [change for change in worst if change.way in LAYOUTS and share[change].plain < -_LEAST][
        : max(1, count // 4)
    ]

    def rows(changes: Iterable[Change]) -> tuple[Saving, ...]:
        return tuple(weigh.saving((change,), saved[change]) for change in changes)

    return Savings(rows(layouts), rows(accesses), rows(worse), weigh.total(), len(traffic.sets), len(traffic.tests))


def saving_of(traffic: Traffic, changes: Sequence[Change], mix: Mix) -> Saving:
    """What given changes save, made together."""
    found: dict[int, Transfers] = {}
    for number in traffic.touching(changes):
        ((after,),) = traffic.after([number], [changes])
        found[number] = traffic.before[number] - after
    return _Weights(traffic, mix).saving(tuple(changes), found)


def mean_transfers(traffic: Traffic, mix: Mix) -> Transfers:
    """The mean transfers of a test, by the weights of the mix."""
    return _Weights(traffic, mix).total()


class _Weights:
    """Adds up what meetings save to tests, and tests by the weight of their set."""

    def __init__(self, traffic: Traffic, mix: Mix) -> None:
        self._traffic = traffic
        self._weights = mix.weights(traffic.sets)
        self._of_meeting: list[Transfers] = []
        """What a transfer that a meeting has less is of all, by the weights of its tests: a share is linear in them."""

    def total(self) -> Transfers:
        """The mean transfers of a test."""
        total = Transfers()
        for calls, tests in self._traffic.sets.items():
            for test in tests:
                total += self._traffic.totals[test] * (self._weights[calls] / len(tests))
        return total

    def _tests(self, found: Mapping[int, Transfers]) -> dict[str, Transfers]:
        tests: dict[str, Transfers] = {}
        for number, saved in found.items():
            for test, count in self._traffic.by_meeting[number].items():
                if self._weights[self._traffic.calls[test]]:
                    tests[test] = tests.get(test, Transfers()) + saved * count
        return tests

    def _weight(self, test: str) -> float:
        calls = self._traffic.calls[test]
        return self._weights[calls] / len(self._traffic.sets[calls])

    def share(self, found: Mapping[int, Transfers]) -> Transfers:
        """The share of all transfers that goes."""
        of_meeting = self._of_meeting or self._meeting_weights()
        plain = sum(saved.plain * of_meeting[number].plain for number, saved in found.items())
        taken_over = sum(saved.taken_over * of_meeting[number].taken_over for number, saved in found.items())
        return Transfers(plain, taken_over)

    def _meeting_weights(self) -> list[Transfers]:
        of_test = {
            test: _part(Transfers(1.0, 1.0), total) * self._weight(test) for test, total in self._traffic.totals.items()
        }
        for tests in self._traffic.by_meeting:
            weight = Transfers()
            for test, count in tests.items():
                weight += of_test[test] * count
            self._of_meeting.append(weight)
        return self._of_meeting

    def saving(self, changes: tuple[Change, ...], found: Mapping[int, Transfers]) -> Saving:
        """All that is to be said of changes that save this, by meeting."""
        traffic = self._traffic
        tests = {test: saved for test, saved in self._tests(found).items() if max(map(abs, saved.ends)) > _LEAST}
        saved, of, weights = Transfers(), Transfers(), 0.0
        sets: dict[tuple[str, ...], Transfers] = defaultdict(Transfers)
        for test, one in tests.items():
            weight = self._weight(test)
            saved, of, weights = saved + one * weight, of + traffic.totals[test] * weight, weights + weight
            calls = traffic.calls[test]
            sets[calls] += _part(one, traffic.totals[test]) * (1 / len(traffic.sets[calls]))
        best = max(tests, key=lambda test: (_part(tests[test], traffic.totals[test]).plain, test), default=None)
        return Saving(
            changes=changes,
            share=self.share(found),
            saved=saved * (1 / weights) if weights else saved,
            of=of * (1 / weights) if weights else of,
            tests=tuple(sorted(tests)),
            worse=tuple(sorted(test for test, one in tests.items() if one.plain < -_LEAST)),
            best=BestTest(best, tests[best], traffic.totals[best]) if best is not None else None,
            sets=tuple(sorted(sets.items(), key=lambda one: (-one[1].plain, one[0]))),
            freed=len(foretell(traffic.scene, changes).freed),
            neighbours=_neighbours(traffic, changes, found, tests),
        )


def _part(saved: Transfers, of: Transfers) -> Transfers:
    return Transfers(
        saved.plain / of.plain if of.plain > _LEAST else 0.0,
        saved.taken_over / of.taken_over if of.taken_over > _LEAST else 0.0,
    )


def _neighbours(
    traffic: Traffic, changes: Sequence[Change], found: Mapping[int, Transfers], tests: Collection[str]
) -> tuple[str, ...]:
    """What else is touched on lines that changed places leave, where that saves something."""
    places = [place for change in changes for place in change.places]
    named: Counter[str] = Counter()
    for number, saved in found.items():
        times = sum(test in tests for test in traffic.by_meeting[number])
        if saved.plain < _WORTH_NAMING or not times:
            continue
        for line in traffic.meetings[number].lines:
            mask = line.fields.mask_of(places)
            if mask & line.touched_bytes:
                others = line.fields.members_of(line.touched_bytes & ~mask)
                named.update(dict.fromkeys(others, times))
    return tuple(member for member, _ in sorted(named.items(), key=lambda one: (-one[1], one[0]))[:_NEIGHBOURS])


def _saved_by_change(
    traffic: Traffic, sense: Sense, written: Mapping[str, float]
) -> dict[Change, dict[int, Transfers]]:
    """For each change that makes sense what it saves in each meeting that it changes."""
    partings = _partings(traffic, written)
    saved: dict[Change, dict[int, Transfers]] = defaultdict(dict)
    for alike in traffic.alike():
        numbers = [number for number in alike if max(traffic.before[number].ends) > _LEAST]
        if not numbers:
            continue
        changes = list(dict.fromkeys(_changes(traffic.meetings[numbers[0]], sense, partings)))
        after = traffic.after(numbers, [(change,) for change in changes])
        for number, costs in zip(numbers, after, strict=True):
            for change, cost in zip(changes, costs, strict=True):
                gain = traffic.before[number] - cost
                if abs(gain.plain) > _LEAST or abs(gain.taken_over) > _LEAST:
                    saved[change][number] = gain
    for change in [change for change in saved if change.way is Way.SPREAD]:
        # Entries of which each core uses its own, and all on one line, need not be apart from each other.
        if _alike(saved[change], saved.get(Change(Way.MOVE, change.place), {})):
            del saved[change]
    return saved


def _alike(one: Mapping[int, Transfers], other: Mapping[int, Transfers]) -> bool:
    return one.keys() == other.keys() and all(
        max(map(abs, (one[number] - other[number]).ends)) <= _LEAST for number in one
    )


def _changes(meeting: Meeting, sense: Sense, partings: Mapping[str, Sequence[Change]]) -> Iterable[Change]:
    """The changes of a meeting's lines that make sense."""
    for line in meeting.lines:
        fields = line.fields
        members = fields.members_of(line.touched_bytes)
        for member in members:
            yield from partings.get(member, ())
            for way in sense.ways(member, member in fields.arrays):
                changes_something = way is Way.DROP_WRITE and not sense.in_vain(member) and line.is_looked_at(member)
                if not changes_something:
                    yield Change(way, member)
        for part in dict.fromkeys(fields.parts.values()):
            if fields.mask(part) & line.touched_bytes:
                yield Change(Way.MOVE, part)


def _written_shares(traffic: Traffic) -> dict[str, float]:
    """For each member the share of writes among the accesses to it on shared lines."""
    made: dict[tuple[Fields, int, int, bool], int] = {}
    for number, meeting in enumerate(traffic.meetings):
        times = len(traffic.by_meeting[number])
        for line, course in zip(meeting.lines, meeting.courses, strict=True):
            for kind, offset, size_bytes in what_was_done(course):
                key = line.fields, offset, size_bytes, kind != AccessKind.READ
                made[key] = made.get(key, 0) + times
    reads: Counter[str] = Counter()
    writes: Counter[str] = Counter()
    for (fields, offset, size_bytes, takes), times in made.items():
        for member in fields.members_of(((1 << size_bytes) - 1) << offset):
            (writes if takes else reads)[member] += times
    return {member: writes[member] / (reads[member] + writes[member]) for member in {*reads, *writes}}


def _partings(traffic: Traffic, written: Mapping[str, float]) -> dict[str, list[Change]]:
    """By member the partings of lines: all members of a type that are written leave a line, where others are mostly
    read."""
    on: dict[tuple[str, int], set[str]] = defaultdict(set)
    for meeting in traffic.meetings:
        for line in meeting.lines:
            on[line.fields.holder, line.fields.offset].update(line.fields.members_of(line.touched_bytes))
    leaving: set[tuple[str, ...]] = set()
    for members in on.values():
        of_type: dict[str, list[str]] = defaultdict(list)
        for member in sorted(members):
            if written.get(member, 0.0) > _WRITTEN_SHARE:
                of_type[path_of(member)[0]].append(member)
        leaving |= {tuple(found) for found in of_type.values() if 1 < len(found) < len(members)}
    partings: dict[str, list[Change]] = defaultdict(list)
    for found in sorted(leaving):
        for member in found:  # one alone moves, which is tried of all
            partings[member].append(Change(Way.PART, ",".join(found)))
    return partings
