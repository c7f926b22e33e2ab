"""Courses: what each core did to the shared lines of objects in one window, in order.

A picture says which bytes cores touched. Whether a line is away when a core comes back to it depends on what came
before what, and on the distance: that a course has. It is packed, eight bytes an access, as the native module gives and
takes it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from commutant.mtrace.picture import Picture

_ACCESS = struct.Struct("<IBBBB")


class AccessKind(IntEnum):
    """What an access of a course does; an update reads and writes its bytes by one instruction."""

    READ = 0
    WRITE = 1
    PREFETCH_FOR_WRITE = 2
    UPDATE = 3


class CourseAccess(NamedTuple):
    """One access: how many of its core's came before it in the window, and which bytes of the line it touched."""

    position: int
    core: int
    kind: int
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ObjectCourse:
    """What cores did to an object: for each line of its picture the accesses, core by core, each core's in order."""

    picture: Picture
    lines: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class WindowCourse:
    """What cores did to the objects that show findings in a window; `periods` are the accesses of each core's call."""

    periods: tuple[int, ...]
    objects: tuple[ObjectCourse, ...]


def what_was_done(course: bytes) -> Iterable[tuple[int, int, int]]:
    """Kind, first byte and number of bytes of each access of a line's course.

    >>> list(what_was_done(pack_course([CourseAccess(805, 1, AccessKind.READ, 24, 4)])))
    [(0, 24, 4)]
    """
    return zip(course[5::8], course[6::8], course[7::8], strict=True)


def pack_course(accesses: Iterable[CourseAccess]) -> bytes:
    """The bytes of a line's course."""
    return b"".join(_ACCESS.pack(*access) for access in accesses)


def unpack_course(course: bytes) -> list[CourseAccess]:
    """The accesses of a line's course.

    >>> unpack_course(pack_course([CourseAccess(805, 1, AccessKind.READ, 24, 4)]))
    [CourseAccess(position=805, core=1, kind=0, offset=24, size_bytes=4)]
    """
    return [CourseAccess(*fields) for fields in _ACCESS.iter_unpack(course)]
