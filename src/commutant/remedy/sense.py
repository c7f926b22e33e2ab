"""Which ways make sense of a member: by the names of what is written in it, as the report's hints judge them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from commutant.remedy.change import Way
from commutant.remedy.places import member_of, path_of, place_of
from commutant.remedy.scene import Line, Scene
from commutant.report import HintKind, kind_by_name


class Sense:
    """What a run's members are used for.

    Counters may be divided per core. The write of a lock's word is never left out: who needs the lock takes it, and to
    divide it is a change of its own (`commutant.remedy.divide`). A read may be left out of plain data. Any other write
    may be left out, but not where the other core looks at what is written: there it changes something. Of what is only
    prefetched for writing the prefetch may be left out. A variable as a whole (the accounting of a user) may be left
    alone.
    """

    def __init__(self, scene: Scene, failing: Collection[str]) -> None:
        """`failing` are the tests in which one of the calls can only fail."""
        kinds: dict[str, set[HintKind | None]] = {}
        lines = {id(line): line for case in scene.cases for line in case.lines}
        for line in lines.values():
            for name, mask in line.fields.named:
                if any(written & mask for _, _, written in line.touched):
                    path = ".".join(path_of(place_of(name))[1:]) or name
                    for place in {member_of(name)[0], line.fields.parts.get(name, member_of(name)[0])}:
                        kinds.setdefault(place, set()).add(kind_by_name(path))
        # A prefetch for writing counts as a write, but is none: what is only prefetched is neither written nor taken.
        self._prefetched = _members_with(lines.values(), lambda line: line.prefetched)
        self._written = _members_with(lines.values(), lambda line: line.written_bytes & ~line.prefetched)
        named = {member_of(lock.partition(" (")[0])[0] for lock in scene.locks()}
        locks = {member for member, found in kinds.items() if HintKind.LOCK in found or member in named}
        tests: dict[str, set[str]] = {lock: set() for lock in locks}
        for case, ids in zip(scene.cases, scene.by_case, strict=True):
            for at in case.examined:
                for member in locks.intersection(case.lines[at].fields.members):
                    tests[member].update(ids)
        self._kinds = kinds
        self._locks = locks
        self._in_vain = {one for one in locks if 2 * len(tests[one].intersection(failing)) > len(tests[one])}

    def ways(self, member: str, is_array: bool) -> list[Way]:
        """The ways to try."""
        if len(path_of(member)) < 2:
            if is_array:
                return [Way.SPREAD]
            return [Way.DROP] if any(one.startswith(f"{member}.") for one in self._kinds) else []
        if member in self._prefetched and member not in self._written:
            return [Way.DROP_PREFETCH]
        kinds = self._kinds.get(member, set())
        ways = [Way.MOVE]
        if member in self._prefetched:
            ways.append(Way.DROP_PREFETCH)
        if is_array:
            ways.append(Way.SPREAD)
        if member not in self._locks:
            ways.append(Way.DROP_WRITE)
        if kinds & {HintKind.REFERENCE_COUNT, HintKind.STATISTICS}:
            ways.append(Way.SPLIT)
        if kinds <= {None} and not is_array:
            ways.append(Way.DROP_READ)
        return ways

    def is_written(self, member: str) -> bool:
        """Whether any core wrote it on a shared line."""
        return member in self._kinds or any(one.startswith(f"{member}.") for one in self._kinds)

    def in_vain(self, member: str) -> bool:
        """Whether it is a lock that is mostly taken in vain."""
        return member in self._in_vain


def _members_with(lines: Iterable[Line], bytes_of: Callable[[Line], int]) -> set[str]:
    """The members that have some of these bytes of a line."""
    return {member for line in lines for member in line.fields.members_of(bytes_of(line))}
