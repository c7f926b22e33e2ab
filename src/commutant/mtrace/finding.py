"""A finding: one cache line that two cores shared in a window, with the names of what lies there and who touched it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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


@dataclass(frozen=True, slots=True)
class Finding:
    """One shared line. Identified by `identity`, which survives another boot and a rebuild of the kernel.

    `object` is a type (`struct dentry`), a variable (`per-CPU runqueues`, `super_blocks_lock`) or, where neither is
    known, the slab cache or kind of page. `field` is the path within it (`d_lockref.count`), empty for a plain
    variable. With false sharing (`sharing == "false"`: no byte that one core wrote was touched by the other) `field`
    names both fields, joined by ` | `.
    """

    line_address: int
    object: str
    field: str
    sharing: Literal["true", "false"]
    first: Access
    second: Access

    @property
    def name(self) -> str:
        """`struct dentry.d_lockref.count`, or the variable."""
        return f"{self.object}.{self.field}" if self.field else self.object

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two findings the same one: type and field or symbol, and the two functions (sorted)."""
        low, high = sorted((self.first.function, self.second.function))
        return self.name, low, high
