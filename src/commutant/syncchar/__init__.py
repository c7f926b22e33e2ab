"""The lock view (syncchar): which critical sections touch disjoint data, and what a change of a lock would gain.

program ── crate locks-plugin ──► lock record ──► names ──► classes of locks ──► tables, JSON
"""

from commutant.syncchar.classes import LockClass, LockStudy, study
from commutant.syncchar.program import record_program
from commutant.syncchar.record import LockRecord, Record, read_record
from commutant.syncchar.what_if import Prediction, predictions

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
