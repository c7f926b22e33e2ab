"""What a program takes of the machine's memory and threads, and whether that is more than it may.

No limit of the kernel's that an ordinary user can set counts the memory that a process really has: that of addresses
(`RLIMIT_AS`) counts what the emulator sets aside and never touches. So it is looked at, several times in a second.
"""

from __future__ import annotations

import os
from pathlib import Path

from commutant.support import plural

MEMORY_LIMIT_BYTES = 4 << 30
THREAD_LIMIT = 1024

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def excess(process_id: int) -> str:
    """What the process has too much of, in words; empty if it keeps within the limits, or has ended."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()  # the name before may hold anything; proc(5) counts from 3 after it
    threads, resident_bytes = int(fields[17]), int(fields[21]) * _PAGE_BYTES
    if threads > THREAD_LIMIT:
        return f"more than {plural(THREAD_LIMIT, 'thread')}"
    if resident_bytes > MEMORY_LIMIT_BYTES:
        return f"more than {MEMORY_LIMIT_BYTES >> 30} GiB of memory"
    return ""
