"""Names for the objects in a program's memory, from the list that it makes of them while it runs.

A library under test knows which memory it gave to which type, and where the type's fields are; the program writes that
into a file (objects.rs of crate `scalefs-runner`). What was written stays true, so the file is read on where it ended.

    kind <stride in bytes> <name>
    field <offset in bytes> <name>
    whose <beginning of paths> <owner>            objects that code of these sources reaches are this one's
    memory <first address> <first address after>      objects lie at multiples of the stride
    table <first address> <first address after>       objects lie one after the other from the start
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from commutant.mtrace import LINE_BYTES, Finding, LineField, Picture, PictureLine
from commutant.support import RunError

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A type of objects, which lie `stride_bytes` apart, the first at `base`, and its fields by offset.

    Of a type that is used for several things `owners` has the sources that reach each of them, by how their
    paths begin, and whose it is.
    """

    name: str
    stride_bytes: int
    offsets: tuple[int, ...]
    fields: tuple[str, ...]
    owners: tuple[tuple[str, str], ...] = ()
    base: int = 0

    def within(self, address: int) -> int:
        """How far from its object's start an address lies."""
        return (address - self.base) % self.stride_bytes

    def owner(self, stack: Sequence[str]) -> str | None:
        """Whose the object is that was accessed with this stack: given by the innermost of the sources."""
        paths = (frame.rpartition(" ")[2] for frame in stack)
        found = (owner for path in paths for beginning, owner in self.owners if path.startswith(beginning))
        return next(found, None)

    def field_at(self, offset: int) -> str:
        """The field in which an offset lies, or what is known of the place."""
        index = bisect_right(self.offsets, offset) - 1
        return self.fields[index] if index >= 0 else f"+{offset:#x}"

    def line(self, start: int) -> tuple[LineField, ...]:
        """What the bytes of the line at this offset are called, as far as the list tells: fields begin at their places,
        and the length of the last one is not given."""
        ends = (*self.offsets[1:], self.stride_bytes)
        parts = zip(self.fields, self.offsets, ends, strict=True)
        within = ((name, max(first, start), min(end, start + LINE_BYTES)) for name, first, end in parts)
        return tuple(
            LineField(low - start, high - low, f"{self.name}.{name}") for name, low, high in within if low < high
        )


class ObjectMap:
    """What lies where in a program's memory; grows with the program's list."""

    def __init__(self, descriptor: int) -> None:
        """Of the list in this file, which stays the caller's."""
        self._descriptor = descriptor
        self._offset = 0
        self._rest = b""
        self._kind: tuple[int, str] | None = None
        self._fields: list[tuple[int, str]] = []
        self._owners: list[tuple[str, str]] = []
        self._starts: list[int] = []
        self._parts: list[tuple[int, ObjectKind]] = []

    def named(self, finding: Finding) -> Finding | None:
        """The finding with the type and field of what lies there; None if the list does not tell.

        Raises RunError if the list is damaged.
        """
        accesses = (finding.first, finding.second)
        sides = [finding.line_address + access.offset for access in accesses]
        # Where both touch the same bytes these begin where the later of the two begins.
        if finding.sharing == "true":
            sides = [max(sides)] * 2
        places: dict[tuple[str, str], None] = {}
        owners: dict[str, None] = {}
        for address, access in zip(sides, accesses, strict=True):
            kind = self._find(address)
            if kind is None:
                return None
            places[kind.name, kind.field_at(kind.within(address))] = None
            if (owner := kind.owner(access.stack)) is not None:
                owners[owner] = None
        names = sorted(places)
        objects = {name for name, _ in names}
        fields = self._line(finding.line_address, 0)
        if finding.sharing == "neighbour":
            fields += self._line(finding.line_address, LINE_BYTES)
        if len(objects) > 1:
            return structs.replace(finding, object=" | ".join(map(".".join, names)), field="", fields=fields)
        field = " | ".join(field for _, field in names)
        whose = f" of {' or '.join(sorted(owners))}" if owners else ""
        return structs.replace(finding, object=names[0][0] + whose, field=field, fields=fields)

    def _line(self, address: int, offset: int) -> tuple[LineField, ...]:
        """What the bytes of the line at this many bytes from an address are called, counted from the address."""
        kind = self._find(address + offset)
        if kind is None or kind.stride_bytes < LINE_BYTES:
            return ()
        named = kind.line(kind.within(address + offset))
        return tuple(structs.replace(field, offset=offset + field.offset) for field in named)

    def place(self, address: int) -> tuple[str, int] | None:
        """Type and first address of the object that lies there; None if the list does not tell."""
        kind = self._find(address)
        return None if kind is None else (kind.name, address - kind.within(address))

    def variable(self, address: int, stack: Sequence[str]) -> str | None:
        """Type and field of what lies there; whose it is, the stack of an access tells. None if the list does not
        tell."""
        kind = self._find(address)
        if kind is None:
            return None
        owner = kind.owner(stack)
        return f"{kind.name}{f' of {owner}' if owner else ''}.{kind.field_at(kind.within(address))}"

    def drawn(self, holder: str, start: int, lines: Sequence[PictureLine]) -> Picture:
        """The picture of an object that `place` reported, from its lines by address."""
        kind = self._find(start)
        assert kind is not None
        named = not kind.stride_bytes < LINE_BYTES
        offsets = ((line, line.offset - start) for line in sorted(lines, key=lambda line: line.offset))
        drawn = (PictureLine(at, kind.line(at) if named else (), line.touched) for line, at in offsets)
        return Picture(holder, tuple(drawn))

    def _find(self, address: int) -> ObjectKind | None:
        return self._lookup(address) or (self._lookup(address) if self._read_on() else None)

    def _lookup(self, address: int) -> ObjectKind | None:
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        end, kind = self._parts[index]
        return kind if address < end else None

    def _read_on(self) -> bool:
        """Reads what the program has added; tells whether that was anything."""
        content = b""
        while part := os.pread(self._descriptor, _READ_BYTES, self._offset + len(content)):
            content += part
        self._offset += len(content)
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            try:
                self._take(line.decode("ascii"))
            except ValueError:
                raise RunError(f"the program's list of objects is damaged at {line[:80]!r}") from None
        return bool(lines)

    def _take(self, line: str) -> None:
        what, first, second = line.split(" ", 2)
        if what == "kind":
            stride = int(first)
            if stride <= 0:
                raise ValueError("a stride is a number of bytes")
            self._kind, self._fields, self._owners = (stride, second), [], []
        elif what == "field":
            self._fields.append((int(first), second))
        elif what == "whose":
            self._owners.append((first, second))
        elif what in {"memory", "table"} and self._kind is not None:
            start, end = int(first, 16), int(second, 16)
            stride, name = self._kind
            if what == "memory" and stride & (stride - 1):
                raise ValueError("a stride of objects in slabs is a power of two")
            fields = sorted(self._fields)
            places, names = tuple(one[0] for one in fields), tuple(one[1] for one in fields)
            base = start if what == "table" else 0
            kind = ObjectKind(name, stride, places, names, tuple(self._owners), base)
            index = bisect_right(self._starts, start)
            self._starts.insert(index, start)
            self._parts.insert(index, (end, kind))
        else:
            raise ValueError("neither a kind, nor a field or memory of one")
