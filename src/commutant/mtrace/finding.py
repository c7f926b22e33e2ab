"""A finding: one cache line that two cores shared in a window, with the names of what lies there and who touched it.

These are parts of `verdicts.jsonl` (docs/schemas/verdict.schema.json), and read and written as declared here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from msgspec import Meta, field

from commutant.documents import Count, Part

LINE_BYTES = 64
PAIR_BYTES = 2 * LINE_BYTES
"""An aligned pair of lines, which prefetchers fetch together."""

Sharing = Literal["true", "false", "neighbour"]
"""What two cores have in common: bytes, a line, or a pair of lines."""

NOTHING_IGNORED: Mapping[str, int] = MappingProxyType({})
"""The counts of windows in which no rule removed a line."""

Identity = tuple[str, str, str]
"""What makes two findings the same one: type and field or symbol, and the two functions (sorted)."""

LineOffset = Annotated[int, Meta(ge=0, lt=PAIR_BYTES)]
LineSize = Annotated[int, Meta(ge=1, le=LINE_BYTES)]
ByteRange = tuple[LineOffset, LineSize]
"""Bytes of a line, or of a pair of lines: the offset of the first one, and how many."""


def check_within_line(ranges: Iterable[ByteRange]) -> None:
    """Raises ValueError for bytes that lie in no one line of a pair."""
    for offset, size_bytes in ranges:
        if offset % LINE_BYTES + size_bytes > LINE_BYTES:
            raise ValueError(f"{size_bytes} bytes from {offset} on do not lie within a line of {LINE_BYTES}")


class Access(Part, frozen=True, omit_defaults=True):
    """The access of one core to the shared line.

    `offset` and `size_bytes` are the first touched byte within the 64-byte line (of neighbours within the pair of
    lines) and the number of bytes. `stack` runs from the innermost function outward, each frame as `function+0xoffset`
    (with ` file:line` after it where debug information is given); its first frame is the accessing instruction. A
    `prefetch` for writing (`prefetchw`) counts as a write: it changes no byte, but takes the line from other cores.
    """

    core: Count
    write: bool
    offset: Count
    size_bytes: Count = field(name="size")
    function: str
    stack: tuple[str, ...]
    prefetch: bool = False


class LineField(Part, frozen=True, array_like=True):
    """What bytes of a line are called: `struct dentry.d_lockref.count`, or a variable."""

    offset: LineOffset
    size_bytes: LineSize
    name: str

    def __post_init__(self) -> None:
        """Refuses bytes beyond the line."""
        check_within_line([(self.offset, self.size_bytes)])


class Touched(Part, frozen=True):
    """A core's part in a line: the ranges of bytes that it read and wrote in a window, ascending and apart."""

    core: Count
    read: tuple[ByteRange, ...]
    written: tuple[ByteRange, ...]

    def __post_init__(self) -> None:
        """Refuses bytes beyond the line."""
        check_within_line(self.read)
        check_within_line(self.written)


class Finding(Part, frozen=True):
    """One shared line. Identified by `identity`, which survives another boot and a rebuild of the kernel.

    `object` is a type (`struct dentry`), a variable (`per-CPU runqueues`, `super_blocks_lock`) or, where neither is
    known, the slab cache or kind of page. `field` is the path within it (`d_lockref.count`), empty for a plain
    variable. With false sharing (`sharing == "false"`: no byte that one core wrote was touched by the other) `field`
    names both fields, joined by ` | `. So it does of neighbours (`"neighbour"`): two lines of an aligned pair of 128
    bytes, each touched by one of the cores, neither of them shared by itself. They count only where that was asked for,
    and `line_address`, offsets, `fields` and `touched` are then those of the pair.

    `first` and `second` are the two accesses that show it best. `fields` and `touched` are the picture of the line at
    `line_address`, where it was met first: what its bytes are called, and all that each core touched of it. Both are
    empty where the tracer knows nothing of the kind.

    `under` is the outermost lock that both cores held whenever they touched what they share, so that it follows from
    that lock; empty where there is none, or where the run is older than this. Of several locks of one name,
    `under_owner` says which (as `owner`, of the lock), and where that says nothing, `lock_number`: from 0 on, in the
    order in which the lower core took them. A lock's own line has that number, too. `owner` says which file or
    directory the object is about, as the kernel itself does: a letter and its name (`d` a directory, `f n0` a file,
    `- n0` a name without a file, `p` a pipe, `b` a block device, `c` a character device); empty where it is about none,
    or the run is older.
    """

    line_address: Count = field(name="line")
    object: str
    field: str
    sharing: Sharing
    first: Access
    second: Access
    fields: tuple[LineField, ...] = ()
    touched: tuple[Touched, ...] = ()
    under: str = ""
    under_owner: str = ""
    lock_number: Count = 0
    owner: str = ""

    @property
    def identity(self) -> Identity:
        """What stays the same in another boot and another build."""
        low, high = sorted((self.first.function, self.second.function))
        return self.name, low, high

    @property
    def name(self) -> str:
        """`struct dentry.d_lockref.count`, or the variable; of an array `used[]`."""
        dot = "" if not self.field or self.field.startswith("[") else "."
        return f"{self.object}{dot}{self.field}"
