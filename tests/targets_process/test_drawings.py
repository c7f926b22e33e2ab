"""Pictures of a program's objects: lines of one object are joined, with offsets in it; others lose their address."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from commutant.mtrace import LineField, ObjectCourse, Picture, PictureLine, Touched, TracedWindow, WindowCourse
from commutant.targets.process.drawings import Drawings
from commutant.targets.process.objects import ObjectMap
from tests.campaign.fakes import make_finding

LISTING = b"kind 256 inode\nfield 0 type\nfield 72 size\nmemory 10000 20000\n"
TOUCHED = (Touched(0, (), ((0, 8),)), Touched(1, ((8, 8),), ()))


@pytest.fixture
def objects() -> Iterator[ObjectMap]:
    descriptor = os.memfd_create("objects")
    os.write(descriptor, LISTING)
    yield ObjectMap(descriptor)
    os.close(descriptor)


def window(*addresses: int) -> TracedWindow:
    pictures = tuple(Picture("", (PictureLine(address, (), TOUCHED),)) for address in addresses)
    course = WindowCourse((9, 7), tuple(ObjectCourse(one, (b"%x" % one.lines[0].offset,)) for one in pictures))
    return TracedWindow(0, (make_finding(),) * len(pictures), {}, (), pictures, course)


def test_lines_of_one_object_are_one_picture(objects: ObjectMap) -> None:
    drawings = Drawings()
    (two, one, other, none), course = drawings.of(window(0x10040, 0x10000, 0x10140, 0x90000), objects)
    assert two is one
    assert (one.holder, [line.offset for line in one.lines]) == ("inode", [0, 64])
    assert one.lines[1].fields == (LineField(0, 8, "inode.type"), LineField(8, 56, "inode.size"))
    assert (other.holder, [line.offset for line in other.lines]) == ("inode", [64])
    assert none == Picture("", (PictureLine(0, (), TOUCHED),))
    assert course is not None
    assert course.periods == (9, 7)
    assert [(met.picture, met.lines) for met in course.objects] == [
        (none, (b"90000",)),
        (one, (b"10000", b"10040")),
        (other, (b"10140",)),
    ]
    ((again,), _) = drawings.of(window(0x10240), objects)
    assert again is other  # another object with the same picture
