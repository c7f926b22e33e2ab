"""A finding's accesses and fields in words, for the terminal and for the page; safe to show."""

from __future__ import annotations

from collections.abc import Iterable

from commutant.mtrace import Access, ByteRange, Finding, Sharing
from commutant.support import safe_text


def sharing_text(sharing: Sharing) -> str:
    """`true sharing`, `false sharing` or `neighbouring lines`."""
    return "neighbouring lines" if sharing == "neighbour" else f"{sharing} sharing"


def access_text(access: Access) -> str:
    """`core 0 writes bytes 24 to 31 in lockref_get`; a prefetch for writing is called so."""
    verb = "prefetches for writing" if access.prefetch else "writes" if access.write else "reads"
    last = access.offset + access.size_bytes - 1
    where = f"byte {access.offset}" if last <= access.offset else f"bytes {access.offset} to {last}"
    return f"core {access.core} {verb} {where} in {safe_text(access.function)}"


def access_fields(finding: Finding) -> tuple[str, str]:
    """The field that either access touched: both the same, or, unless they share bytes, one of the two each."""
    first, separator, second = finding.field.partition(" | ")
    return safe_text(first), safe_text(second if separator else first)


def line_in_use(finding: Finding) -> str:
    """What else of the line is in use where bytes are truly shared: whatever has the line with them waits for it, too;
    empty if nothing is, or the line is not known.

    `flags and name (read by both cores), limit (written by core 1)`.
    """
    if finding.sharing != "true":
        return ""
    shared = _mask(
        [(finding.first.offset, finding.first.size_bytes), (finding.second.offset, finding.second.size_bytes)]
    )
    by_use: dict[str, dict[str, None]] = {}
    for field in finding.fields:
        mask = _mask([(field.offset, field.size_bytes)])
        if mask & shared:
            continue
        wrote = [one.core for one in finding.touched if _mask(one.written) & mask]
        read = [one.core for one in finding.touched if _mask(one.read) & mask]
        cores, verb = (wrote, "written") if wrote else (read, "read")
        if cores:
            who = "both cores" if len(cores) > 1 else f"core {cores[0]}"
            name = field.name.removeprefix(f"{finding.object}.")
            by_use.setdefault(f"{verb} by {who}", {})[name] = None
    return "; ".join(f"{', '.join(map(safe_text, names))} ({use})" for use, names in by_use.items())


def _mask(ranges: Iterable[ByteRange]) -> int:
    mask = 0
    for offset, size_bytes in ranges:
        mask |= ((1 << size_bytes) - 1) << offset
    return mask
