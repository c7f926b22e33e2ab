"""A finding's accesses and fields in words, for the terminal and for the page; safe to show."""

from __future__ import annotations

from commutant.mtrace import Access, Finding, Sharing
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
