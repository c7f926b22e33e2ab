"""Drives the tracer, judges what tests share, and counts what a campaign found."""

from commutant.mtrace.finding import LINE_BYTES, NOTHING_IGNORED, Access, Finding, Identity, LineField
from commutant.mtrace.fingerprint import DIGEST_CHARACTERS, Fingerprint, fingerprint
from commutant.mtrace.trace import TracedWindow, TraceReader, kernel_layout, kernel_names

__all__ = [
    "DIGEST_CHARACTERS",
    "LINE_BYTES",
    "NOTHING_IGNORED",
    "Access",
    "Finding",
    "Fingerprint",
    "Identity",
    "LineField",
    "TraceReader",
    "TracedWindow",
    "fingerprint",
    "kernel_layout",
    "kernel_names",
]
