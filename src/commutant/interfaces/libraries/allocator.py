"""Memory that is asked for and given back, and what lies in it: another core may write next to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import Errno, Interface, Invocation, Map, Range, Sort, call, invoke, unused


class Block(Sort, opaque=True, word="block"):
    """A block of memory: the allocator picks which."""


Content = Annotated[int, Range(0, 9)]


class Allocator(Interface):
    """Blocks of one size with a number in each, 0 in a new one."""

    blocks: Map[Block, Content]

    @call
    def allocate(self) -> Block:
        """A new block."""
        block = unused(Block)
        self.blocks[block] = 0
        return block

    @call
    def free(self, block: Block) -> Errno | None:
        """Gives a block back; one that was given back before is none."""
        if block not in self.blocks:
            return Errno.EINVAL
        del self.blocks[block]
        return None

    @call
    def write(self, block: Block, content: Content) -> Errno | None:
        """Writes into a block."""
        if block not in self.blocks:
            return Errno.EINVAL
        self.blocks[block] = content
        return None

    @call
    def read(self, block: Block) -> Errno | int:
        """Reads from a block."""
        return self.blocks.get(block, Errno.EINVAL)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Reads every block that there is."""
        for block in self.blocks:
            yield invoke("read", block=block)
