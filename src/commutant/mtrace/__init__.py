"""Drives the tracer, judges what tests share, and counts what a campaign found."""

from commutant.mtrace.course import (
    AccessKind,
    CourseAccess,
    ObjectCourse,
    WindowCourse,
    pack_course,
    unpack_course,
    what_was_done,
)
from commutant.mtrace.finding import (
    LINE_BYTES,
    NOTHING_IGNORED,
    PAIR_BYTES,
    Access,
    ByteRange,
    Finding,
    Identity,
    LineField,
    Sharing,
    Touched,
)
from commutant.mtrace.fingerprint import (
    DIGEST_CHARACTERS,
    NAMING,
    Fingerprint,
    fingerprint,
    former_digest,
    stable_function,
    stable_variable,
)
from commutant.mtrace.picture import Picture, PictureLine
from commutant.mtrace.trace import TracedWindow, TraceReader, kernel_layout, kernel_names

__all__ = [
    "DIGEST_CHARACTERS",
    "LINE_BYTES",
    "NAMING",
    "NOTHING_IGNORED",
    "PAIR_BYTES",
    "Access",
    "AccessKind",
    "ByteRange",
    "CourseAccess",
    "Finding",
    "Fingerprint",
    "Identity",
    "LineField",
    "ObjectCourse",
    "Picture",
    "PictureLine",
    "Sharing",
    "Touched",
    "TraceReader",
    "TracedWindow",
    "WindowCourse",
    "fingerprint",
    "former_digest",
    "kernel_layout",
    "kernel_names",
    "pack_course",
    "stable_function",
    "stable_variable",
    "unpack_course",
    "what_was_done",
]
