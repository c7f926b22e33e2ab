"""The study in the terminal, as JSON, as a page and as a table."""

from commutant.lock_view.shown import export, page
from commutant.lock_view.shown.documents import LockEntry, LocksDocument, locks_document, read_locks
from commutant.lock_view.shown.kernel_table import print_kernel_study
from commutant.lock_view.shown.table import check_sort_key, print_study, sorted_classes
from commutant.lock_view.study.classes import Caller

__all__ = [
    "Caller",
    "LockEntry",
    "LocksDocument",
    "check_sort_key",
    "export",
    "locks_document",
    "page",
    "print_kernel_study",
    "print_study",
    "read_locks",
    "sorted_classes",
]
