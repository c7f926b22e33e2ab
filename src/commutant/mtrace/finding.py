"""A finding: one cache line that two cores shared in a window, with the names of what lies there and who touched it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as field_
from types import MappingProxyType
from typing import Any, Literal

LINE_BYTES = 64

NOTHING_IGNORED: Mapping[str, int] = MappingProxyType({})
"""The counts of windows in which no rule removed a line."""

Identity = tuple[str, str, str]
"""What makes two findings the same one: type and field or symbol, and the two functions (sorted)."""

ByteRange = tuple[int, int]
"""Bytes of a line: the offset of the first one, and how many."""


@dataclass(frozen=True, slots=True)
class Access:
    """The access of one core to the shared line.

    `offset` and `size_bytes` are the first touched byte within the 64-byte line and the number of bytes. `stack` runs
    from the innermost function outward, each frame as `function+0xoffset` (with ` file:line` behind it where debug
    information is given); its first frame is the accessing instruction.
    """

    core: int
    write: bool
    offset: int
    size_bytes: int
    function: str
    stack: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The access as it stands in a run directory (docs/schemas/verdict.schema.json)."""
        return {
            "core": self.core,
            "write": self.write,
            "offset": self.offset,
            "size": self.size_bytes,
            "function": self.function,
            "stack": list(self.stack),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Access:
        """Reads what `to_json` wrote; raises KeyError, TypeError or ValueError for anything else."""
        stack = raw["stack"]
        numbers = raw["core"], raw["offset"], raw["size"]
        if any(type(number) is not int or number < 0 for number in numbers):
            raise ValueError(f"core, offset and size are integers from 0, got {numbers!r}")
        if type(raw["write"]) is not bool or type(raw["function"]) is not str:
            raise ValueError("write is true or false and function a text")
        if type(stack) is not list or any(type(frame) is not str for frame in stack):
            raise ValueError("stack is a list of texts")
        core, offset, size_bytes = numbers
        return cls(core, raw["write"], offset, size_bytes, raw["function"], tuple(stack))


@dataclass(frozen=True, slots=True)
class LineField:
    """What bytes of a line are called: `struct dentry.d_lockref.count`, or a variable."""

    offset: int
    size_bytes: int
    name: str


@dataclass(frozen=True, slots=True)
class Touched:
    """A core's part in a line: the ranges of bytes that it read and wrote in a window, ascending and apart."""

    core: int
    read: tuple[ByteRange, ...]
    written: tuple[ByteRange, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One shared line. Identified by `identity`, which survives another boot and a rebuild of the kernel.

    `object` is a type (`struct dentry`), a variable (`per-CPU runqueues`, `super_blocks_lock`) or, where neither is
    known, the slab cache or kind of page. `field` is the path within it (`d_lockref.count`), empty for a plain
    variable. With false sharing (`sharing == "false"`: no byte that one core wrote was touched by the other) `field`
    names both fields, joined by ` | `.

    `first` and `second` are the two accesses that show it best. `fields` and `touched` are the picture of the line at
    `line_address`, where it was met first: what its bytes are called, and all that each core touched of it. Both are
    empty where the tracer knows nothing of the kind.

    `under` is the outermost lock that both cores held whenever they touched what they share, so that it follows from
    that lock; empty where there is none, or where the run is older than this.
    """

    line_address: int
    object: str
    field: str
    sharing: Literal["true", "false"]
    first: Access
    second: Access
    fields: tuple[LineField, ...] = ()
    touched: tuple[Touched, ...] = ()
    under: str = ""
    identity: Identity = field_(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Works out `identity`, which is asked for in every window."""
        low, high = sorted((self.first.function, self.second.function))
        object.__setattr__(self, "identity", (self.name, low, high))

    @property
    def name(self) -> str:
        """`struct dentry.d_lockref.count`, or the variable."""
        return f"{self.object}.{self.field}" if self.field else self.object

    def to_json(self) -> dict[str, Any]:
        """The finding as it stands in a run directory (docs/schemas/verdict.schema.json)."""
        return {
            "line": self.line_address,
            "object": self.object,
            "field": self.field,
            "sharing": self.sharing,
            "under": self.under,
            "first": self.first.to_json(),
            "second": self.second.to_json(),
            "fields": [[field.offset, field.size_bytes, field.name] for field in self.fields],
            "touched": [
                {"core": one.core, "read": list(map(list, one.read)), "written": list(map(list, one.written))}
                for one in self.touched
            ],
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Finding:
        """Reads what `to_json` wrote; raises KeyError, TypeError or ValueError for anything else."""
        line, sharing = raw["line"], raw["sharing"]
        if type(line) is not int or not 0 <= line < 1 << 64:
            raise ValueError(f"line is an address, got {line!r}")
        if type(raw["object"]) is not str or type(raw["field"]) is not str or sharing not in ("true", "false"):
            raise ValueError("object and field are texts, sharing is 'true' or 'false'")
        first, second = Access.from_json(raw["first"]), Access.from_json(raw["second"])
        fields = tuple(LineField(*read_range(entry[:2]), read_text(entry[2])) for entry in read_list(raw["fields"]))
        touched = tuple(map(_touched, read_list(raw["touched"])))
        under = read_text(raw.get("under", ""))
        return cls(line, raw["object"], raw["field"], sharing, first, second, fields, touched, under)


def _touched(raw: Mapping[str, Any]) -> Touched:
    core = raw["core"]
    if type(core) is not int or core < 0:
        raise ValueError(f"core is an integer from 0, got {core!r}")
    read, written = (tuple(map(read_range, read_list(raw[key]))) for key in ("read", "written"))
    return Touched(core, read, written)


def read_range(raw: Any) -> ByteRange:
    """Bytes of a line, from a JSON value; raises ValueError or TypeError if it is none."""
    offset, size_bytes = raw
    if type(offset) is not int or type(size_bytes) is not int or not 0 <= offset < offset + size_bytes <= LINE_BYTES:
        raise ValueError(f"a range of bytes is an offset and a size within a line of {LINE_BYTES}, got {raw!r}")
    return offset, size_bytes


def read_list(raw: Any) -> list[Any]:
    """A JSON value that is a list; raises ValueError if it is none."""
    if type(raw) is not list:
        raise ValueError(f"expected a list, got {type(raw).__name__}")
    return raw


def read_text(raw: Any) -> str:
    """A JSON value that is a text; raises ValueError if it is none."""
    if type(raw) is not str:
        raise ValueError(f"expected a text, got {type(raw).__name__}")
    return raw
