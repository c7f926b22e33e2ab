"""Shared lines of a program's objects drawn together: the trace knows addresses, the program's list knows objects."""

from __future__ import annotations

from collections.abc import Mapping

from commutant.mtrace import ObjectCourse, Picture, PictureLine, TracedWindow, WindowCourse
from commutant.targets.process.objects import ObjectMap

Drawn = tuple[tuple[Picture, ...], WindowCourse | None]
"""The pictures of a window's findings, one with each, and the course of their lines."""


class Drawings:
    """Pictures of one program's objects; equal ones are one object."""

    def __init__(self) -> None:
        self._known: dict[Picture, Picture] = {}

    def of(self, window: TracedWindow, objects: ObjectMap) -> Drawn:
        """The window's pictures, those of one object joined, with offsets within the object and names of its fields;
        and the course of their lines.

        A line in no object that the program lists stays as it is, but for its address, which the next run changes.
        """
        places: list[tuple[str, int] | None] = []
        members: dict[tuple[str, int], dict[int, PictureLine]] = {}
        for picture in window.pictures:
            line = picture.lines[0]  # of a program each line is a picture of its own
            place = objects.place(line.offset)
            places.append(place)
            if place is not None:
                members.setdefault(place, {})[line.offset] = line
        drawn = {place: objects.drawn(*place, list(lines.values())) for place, lines in members.items()}
        pictures = (
            drawn[place] if place is not None else _without_address(picture)
            for place, picture in zip(places, window.pictures, strict=True)
        )
        known = tuple([self._known.setdefault(picture, picture) for picture in pictures])
        return known, None if window.course is None else self._joined(window.course, objects, drawn)

    def _joined(
        self, course: WindowCourse, objects: ObjectMap, drawn: Mapping[tuple[str, int], Picture]
    ) -> WindowCourse:
        lines: dict[tuple[str, int], dict[int, bytes]] = {}
        joined: list[ObjectCourse] = []
        for one in course.objects:
            address = one.picture.lines[0].offset
            place = objects.place(address)
            if place is None:
                picture = _without_address(one.picture)
                joined.append(ObjectCourse(self._known.setdefault(picture, picture), one.lines))
            else:
                lines.setdefault(place, {})[address] = one.lines[0]
        for place, parts in lines.items():
            picture = drawn[place]
            in_order = tuple(parts[address] for address in sorted(parts))
            joined.append(ObjectCourse(self._known.setdefault(picture, picture), in_order))
        return WindowCourse(course.periods, tuple(joined))


def _without_address(picture: Picture) -> Picture:
    lines = (PictureLine(0, line.fields, line.touched) for line in picture.lines)
    return Picture(picture.holder, tuple(lines))
