"""Models kept within bounds: their faults reported by place, their time limited, their sources checked."""

from commutant.guard.faults import (
    CHANGES_STATE,
    ChoiceRefused,
    Endless,
    Kinds,
    ModelFault,
    at_method,
    begin_path,
    faults_of,
    no_state,
    placed,
    time_limit,
)
from commutant.guard.source_checks import check_source

__all__ = [
    "CHANGES_STATE",
    "ChoiceRefused",
    "Endless",
    "Kinds",
    "ModelFault",
    "at_method",
    "begin_path",
    "check_source",
    "faults_of",
    "no_state",
    "placed",
    "time_limit",
]
