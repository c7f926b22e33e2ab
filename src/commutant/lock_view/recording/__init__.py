"""From a program or a kernel to a lock record."""

from commutant.lock_view.recording.folder import plain_folder
from commutant.lock_view.recording.guest_image import read_workload
from commutant.lock_view.recording.kernel import (
    DEFAULT_TIMEOUT_SECONDS,
    DEFAULT_WORKLOAD,
    KernelRun,
    KernelTarget,
    record_kernel,
)
from commutant.lock_view.recording.program import executable_path
from commutant.lock_view.recording.span import RecordedSpan

__all__ = [
    "DEFAULT_TIMEOUT_SECONDS",
    "DEFAULT_WORKLOAD",
    "KernelRun",
    "KernelTarget",
    "RecordedSpan",
    "executable_path",
    "plain_folder",
    "read_workload",
    "record_kernel",
]
