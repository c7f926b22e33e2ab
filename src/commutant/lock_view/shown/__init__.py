"""The study in the terminal, as JSON, as a page and as a table."""

from commutant.lock_view.shown import export, page
from commutant.lock_view.shown.kernel_table import kernel_json, print_kernel_study
from commutant.lock_view.shown.table import check_sort_key, print_study, sorted_classes, study_json

__all__ = [
    "check_sort_key",
    "export",
    "kernel_json",
    "page",
    "print_kernel_study",
    "print_study",
    "sorted_classes",
    "study_json",
]
