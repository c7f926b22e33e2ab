"""The paper's Figure 4: a simplified rename, and nothing else.

It keeps the figure's semantics: renaming one of two links to one inode to the other removes the source, where Linux
(and the interface `names`) does nothing.
"""

from commutant.lang import Errno, Interface, Map, Sort, Struct, call


class Name(Sort):
    """A file name."""


class Inum(Sort, opaque=True, word="file"):
    """An inode number."""


class Inode(Struct):
    """A file."""

    nlink: int


class Figure4(Interface):
    """One directory, and rename."""

    names: Map[Name, Inum]
    inodes: Map[Inum, Inode]

    @call
    def rename(self, src: Name, dst: Name) -> Errno | int:
        """Section 5.1, Figure 4."""
        if src not in self.names:
            return Errno.ENOENT
        if src == dst:
            return 0
        if dst in self.names:
            self.inodes[self.names[dst]].nlink -= 1
        self.names[dst] = self.names[src]
        del self.names[src]
        return 0
