"""What became of a program's or a kernel's locks from one recording to another, as `commutant locks` writes them."""

from commutant.compare.locks.comparison import (
    ChangedCaller,
    ComparedLock,
    ComparedRecording,
    LockComparisonDocument,
    LockFigures,
    OneSidedLock,
    compare_locks,
)
from commutant.compare.locks.markdown import lock_comparison_markdown
from commutant.compare.locks.terminal import print_lock_comparison

__all__ = [
    "ChangedCaller",
    "ComparedLock",
    "ComparedRecording",
    "LockComparisonDocument",
    "LockFigures",
    "OneSidedLock",
    "compare_locks",
    "lock_comparison_markdown",
    "print_lock_comparison",
]
