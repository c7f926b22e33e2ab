"""The lock view (syncchar): which critical sections touch disjoint data, and what a change of a lock would gain.

program ── crate locks-plugin ──► lock record ──► names ──► classes of locks ──► tables, JSON
"""

from commutant.lock_view.record import LockRecord, MappedFile, Recording, read_record
from commutant.lock_view.recording.program import record_program
from commutant.lock_view.study.classes import LockClass, LockStudy, study
from commutant.lock_view.study.simulation import HAND_OVERS
from commutant.lock_view.study.verdict import LockVerdict, verdict
from commutant.lock_view.study.what_if import Gain, Prediction, predictions

__all__ = [
    "HAND_OVERS",
    "Gain",
    "LockClass",
    "LockRecord",
    "LockStudy",
    "LockVerdict",
    "MappedFile",
    "Prediction",
    "Recording",
    "predictions",
    "read_record",
    "record_program",
    "study",
    "verdict",
]
