"""What a run changes in a state, and whether two runs from one state have anything to do with each other.

A run works on a copy of a state, and the copy holds by itself what the run looked at and changed (`Record`,
`SymbolicMap`). Two runs that started from one state and of which neither changes what the other looked at are
independent: after one of them the other does the same again, and both orders end in one state.
"""

from __future__ import annotations

from typing import Any

from commutant.lang.types import Record
from commutant.symbolic.maps import SymbolicMap
from commutant.symbolic.state import clone


def independent(left: Record, right: Record) -> bool:
    """Whether neither of two runs, which left these states, changed what the other looked at. Decides nothing; False
    may also mean that this cannot be told."""
    return not _records_meet(left, right)


def transfer(run: Record, state: Record) -> None:
    """Changes a state as a run changed the copy that it left: one that is independent of what led to the state."""
    for name, value in vars(run).items():
        if _is_copy(run, name, value):
            if _is_changed(value):
                _transfer_part(value, getattr(state, name))
        elif value is not _before(run, name):
            setattr(state, name, clone(value))


def _transfer_part(part: Any, target: Any) -> None:
    if isinstance(part, Record):
        transfer(part, target)
        return
    if part.emptied:
        target.clear()
    for number, cell in part.cells:
        if cell.assigned:
            target.assign(number, cell.present, clone(cell.value))
        elif _is_changed(cell.value):
            _transfer_part(cell.value, target.value(number))


def _before(record: Record, name: str) -> Any:
    """The value that a record had when it was copied."""
    source = record._source
    return None if source is None else source._seen(name)


def _is_copy(record: Record, name: str, value: Any) -> bool:
    """Whether a value is a copy of what stood there before, perhaps changed inside."""
    return _is_copy_of(value, _before(record, name))


def _is_copy_of(value: Any, before: Any) -> bool:
    if isinstance(value, SymbolicMap):
        source: Any = value.source
    elif isinstance(value, Record):
        source = value._source
    else:
        return False
    return source is not None and source is before


def _is_changed(part: Any) -> bool:
    """Whether a copy of a map or record has been changed."""
    if isinstance(part, SymbolicMap):
        return part.emptied or any(cell.assigned or _is_changed(cell.value) for _, cell in part.cells)
    if not isinstance(part, Record):
        return True
    return any(
        _is_changed(value) if _is_copy(part, name, value) else value is not _before(part, name)
        for name, value in vars(part).items()
    )


def _records_meet(left: Record, right: Record) -> bool:
    theirs = vars(right)
    for name, mine in vars(left).items():
        if name not in theirs:
            continue
        other = theirs[name]
        before = _before(left, name)
        before_other = before if left._source is right._source else _before(right, name)
        if _is_copy_of(mine, before) and _is_copy_of(other, before_other):
            if _parts_meet(mine, other):
                return True
        elif mine is not before or other is not before_other:
            return True
    return False


def _parts_meet(left: Any, right: Any) -> bool:
    if isinstance(left, SymbolicMap) and isinstance(right, SymbolicMap):
        return left.meets(right, _parts_meet)
    return not (isinstance(left, Record) and isinstance(right, Record)) or _records_meet(left, right)
