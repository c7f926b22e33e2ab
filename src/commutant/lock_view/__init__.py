"""The lock view (syncchar): which critical sections touch disjoint data, and what a change of a lock would gain.

program ── crate locks-plugin ──► lock record ──► names ──► classes of locks ──► tables, JSON
"""

from commutant.lock_view.record import LockRecord, Record, read_record
from commutant.lock_view.recording.program import record_program
from commutant.lock_view.study.classes import LockClass, LockStudy, study
from commutant.lock_view.study.what_if import Prediction, predictions

__all__ = [
    "LockClass",
    "LockRecord",
    "LockStudy",
    "Prediction",
    "Record",
    "predictions",
    "read_record",
    "record_program",
    "study",
]
