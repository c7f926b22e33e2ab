"""Shared lines of a program's objects drawn together: the trace knows addresses, the program's list knows objects."""

from __future__ import annotations

from collections.abc import Sequence

from commutant.mtrace import Picture, PictureLine, TracedWindow
from commutant.targets.process.objects import ObjectMap


class Drawings:
    """Pictures of one program's objects; equal ones are one object."""

    def __init__(self) -> None:
        self._known: dict[Picture, Picture] = {}

    def of(self, window: TracedWindow, objects: ObjectMap) -> Sequence[Picture]:
        """The window's pictures, those of one object joined, with offsets within the object and names of its fields.

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
        return [self._known.setdefault(picture, picture) for picture in pictures]


def _without_address(picture: Picture) -> Picture:
    lines = (PictureLine(0, line.fields, line.touched) for line in picture.lines)
    return Picture(picture.holder, tuple(lines))
