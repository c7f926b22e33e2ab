"""What changes of the fields of one finding are worth: next to the hint that says which technique to look at."""

from __future__ import annotations

from commutant.mtrace import Finding
from commutant.remedy.change import Change, Way
from commutant.remedy.divide import lock_of
from commutant.remedy.foretell import freed_by, touches
from commutant.remedy.places import member_of
from commutant.remedy.rank import cured_by
from commutant.remedy.scene import Scene
from commutant.remedy.sense import Sense

_SHOWN = 3


def worth_of(scene: Scene, sense: Sense, finding: Finding) -> list[str]:
    """To divide the finding's lock, and the best changes of what its two accesses touch, with the tests of the run that
    each frees alone; none where no single change frees a test."""
    members: dict[str, bool] = {}
    for access in (finding.first, finding.second):
        for one in finding.fields:
            if one.offset <= access.offset < one.offset + one.size_bytes:
                member, is_array = member_of(one.name)
                members[member] = is_array
    changes = [Change(way, member) for member, is_array in members.items() for way in sense.ways(member, is_array)]
    worth = [(len(_freed(scene, sense, change)), change) for change in changes]
    best = sorted((one for one in worth if one[0]), key=lambda one: -one[0])[:_SHOWN]
    if lock := lock_of(finding, scene.locks()):
        divided = Change(Way.DIVIDE, lock)
        freed = len(_freed(scene, sense, divided))
        best = [(freed, divided), *best] if freed else best
    return [f"{change}: frees {freed:,}" for freed, change in best]


def _freed(scene: Scene, sense: Sense, change: Change) -> list[str]:
    """The tests that a change frees, by the rules of the list of changes."""
    touched = [number for number, case in enumerate(scene.cases) if touches(case, (change,))]
    return freed_by(scene, cured_by(scene, sense, change, touched))[0]
