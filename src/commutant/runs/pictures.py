"""Pictures in `verdicts.jsonl`: each distinct one on a line of its own, numbered, before the first test that has it.

    {"fields": [[0, 4, "struct file.f_count"], ...], "number": 0}       what the bytes of a line are called
    {"picture": {"holder": "struct file", "lines": [[64, 0, [[0, [], [[0, 4]]], [1, [[0, 4]], []]]]]}, "number": 0}

A line of a picture is its offset in the object, the number of its fields, and per core the ranges of bytes that it read
and wrote, as first byte and number of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commutant.mtrace import LineField, Picture, PictureLine, Touched, read_list, read_range, read_text
from commutant.support import Once

MAX_KNOWN_PICTURES = 1 << 14


class PictureNumbers:
    """Numbers for pictures that are written, and the lines that a file needs before they are named."""

    def __init__(self, pictures: Sequence[Picture] = (), fields: Sequence[tuple[LineField, ...]] = ()) -> None:
        """`pictures` and `fields` stand in the file already."""
        self._numbers: dict[Picture, int] = {picture: number for number, picture in enumerate(pictures)}
        self._fields = {one: number for number, one in enumerate(fields)}
        self._new: list[dict[str, object]] = []
        # Comparing pictures takes time, and sessions give the same objects again and again.
        self._once = Once(self._number, MAX_KNOWN_PICTURES)

    def of(self, pictures: Sequence[Sequence[Picture]]) -> list[list[int]]:
        """The numbers of a verdict's pictures."""
        return [[self._once(picture) for picture in one] for one in pictures]

    def take_new(self) -> list[dict[str, object]]:
        """The lines that have to be written first; each is given once."""
        new, self._new = self._new, []
        return new

    def _number(self, picture: Picture) -> int:
        number = self._numbers.get(picture)
        if number is None:
            number = self._numbers[picture] = len(self._numbers)
            lines = [[line.offset, self._fields_number(line.fields), _touched_json(line)] for line in picture.lines]
            self._new.append({"picture": {"holder": picture.holder, "lines": lines}, "number": number})
        return number

    def _fields_number(self, fields: tuple[LineField, ...]) -> int:
        number = self._fields.get(fields)
        if number is None:
            number = self._fields[fields] = len(self._fields)
            named = [[field.offset, field.size_bytes, field.name] for field in fields]
            self._new.append({"fields": named, "number": number})
        return number


class PicturesRead:
    """What a file has said of pictures so far."""

    def __init__(self) -> None:
        self.pictures: list[Picture] = []
        self.fields: list[tuple[LineField, ...]] = []
        self._touched: dict[Touched, Touched] = {}
        self._lines: dict[PictureLine, PictureLine] = {}

    def take(self, raw: Mapping[str, Any]) -> bool:
        """Takes a line of the file if it is about pictures; raises KeyError, TypeError or ValueError if damaged."""
        if "fields" in raw and "finding" not in raw:
            _expect(raw["number"], len(self.fields), "fields")
            named = (LineField(*read_range(entry[:2]), read_text(entry[2])) for entry in read_list(raw["fields"]))
            self.fields.append(tuple(named))
        elif "picture" in raw:
            _expect(raw["number"], len(self.pictures), "picture")
            lines = tuple(map(self._line, read_list(raw["picture"]["lines"])))
            if not lines:
                raise ValueError("a picture has lines")
            self.pictures.append(Picture(read_text(raw["picture"]["holder"]), lines))
        else:
            return False
        return True

    def _line(self, raw: Any) -> PictureLine:
        offset, fields, touched = raw
        if type(offset) is not int or not -(1 << 63) <= offset < 1 << 64:
            raise ValueError(f"a line's offset is an integer, got {offset!r:.40}")
        if type(fields) is not int or not 0 <= fields < len(self.fields):
            raise ValueError(f"a line names fields that do not stand before it: {fields!r:.40}")
        line = PictureLine(offset, self.fields[fields], tuple(map(self._core, read_list(touched))))
        return self._lines.setdefault(line, line)

    def _core(self, raw: Any) -> Touched:
        core, read, written = raw
        if type(core) is not int or core < 0:
            raise ValueError(f"core is an integer from 0, got {core!r:.40}")
        touched = Touched(core, tuple(map(read_range, read_list(read))), tuple(map(read_range, read_list(written))))
        return self._touched.setdefault(touched, touched)


def _touched_json(line: PictureLine) -> list[object]:
    return [[one.core, list(map(list, one.read)), list(map(list, one.written))] for one in line.touched]


def _expect(number: Any, expected: int, what: str) -> None:
    if number != expected:
        raise ValueError(f"the {what} has the number {number!r:.40}, {expected} is next")
