"""Names that a reader owns: of an access's stack, the innermost function in files of the reader's own.

What a library shares it mostly touches in code of others: in a language's library, in the C library, in the wrapper
that an adapter adds. Debug information says which file a frame is of; where it says nothing, the accessing function
stays.
"""

from __future__ import annotations

import re

from commutant.mtrace import Access

_SOURCE = re.compile(r" (\S+):([0-9]+)$")
_OTHERS = re.compile(
    r"library/|\./|bits/|ext/|debug/|[\w.-]+-[0-9]+\.[0-9][^/]*/src/|foreign\.rs|.*/foreign\.rs$|commutant/|.*/commutant\.hpp?$"
    r"|.*/commutant/interfaces/"
)
"""Files of others, as the tracer shortens their paths: Rust's and C++'s libraries, a package of the system, a crate
from a registry, and what adapters are built with."""
_WRAPPERS = ("commutant::call<", "commutant_adapter::foreign::call", "foreign::call", "foreign::visit")


def source_of(frame: str) -> tuple[str, int] | None:
    """File and line of a frame, if debug information tells them."""
    found = _SOURCE.search(frame)
    return (found[1], int(found[2])) if found else None


def own_frame(access: Access) -> str | None:
    """The innermost frame of the access in a file of the reader's own; None where no frame is known to be."""
    for frame in access.stack:
        source = source_of(frame)
        if source and not _OTHERS.match(source[0]) and not any(name in frame for name in _WRAPPERS):
            return frame
    return None


def own_function(access: Access) -> str:
    """The function that a reader is shown: the accessing one, unless its code is of others.

    >>> from commutant.mtrace import Access
    >>> stack = ("lll_lock ./nptl/lock.c:3", "pthread_mutex_lock+0x1 ./nptl/lock.c:9", "Map::put+0x8 src/map.cpp:12")
    >>> own_function(Access(0, True, 0, 4, "pthread_mutex_lock", stack))
    'Map::put'
    """
    inner = source_of(access.stack[0]) if access.stack else None
    is_wrapper = any(name in access.function for name in _WRAPPERS)
    if not is_wrapper and (inner is None or not _OTHERS.match(inner[0])):
        return access.function
    frame = own_frame(access)
    return access.function if frame is None else re.split(r"\+0x| ", frame, maxsplit=1)[0]
