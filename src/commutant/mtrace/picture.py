"""Pictures: the shared lines of one object in one window, with all that each core touched of them.

A finding is one pair of accesses, and the same in many tests. What else the calls touched on that line, and on the
lines next to it in the same object, differs from test to test; who asks what a change of the object's layout would free
needs that of each test. Addresses are no part of a picture, so a run has few distinct ones.
"""

from __future__ import annotations

from commutant.documents import Part
from commutant.mtrace.finding import LineField, Touched


class PictureLine(Part, frozen=True):
    """One shared line of an object.

    `offset` is where the line begins, in bytes from the object's start: below 0 where the object begins within the
    line. `fields` are what the line's bytes are called, `touched` is what each core touched of it.
    """

    offset: int
    fields: tuple[LineField, ...]
    touched: tuple[Touched, ...]


class Picture(Part, frozen=True):
    """The shared lines of one object in one window.

    `holder` is the object's type as it was allocated (`struct shmem_inode_info`), or the variable; empty where the line
    lies in no object that is known.
    """

    holder: str
    lines: tuple[PictureLine, ...]
