"""Files of `posix`: besides content and times they have an owner and rights, and can be cut. And symbolic links.

**What was cut away** is not looked for: pages that the file has held since before the calls count up to `kept` alone,
and what is written after that lies in a map of its own, `later`, which is empty at first. So a file may be cut at any
page, whatever it holds there, and no page is asked for that no call reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from commutant.interfaces.posix.state import Data, Inode, Name, Page
from commutant.lang import Map, Only, Sort, Struct, Time, now

LINK_CALLS = ("symlink", "readlink")
"""Symbolic links are in states of sets that have one of these calls: what links do to others shows there."""

RIGHT_CALLS = ("access", "chmod", "chown", "utimensat")
"""Users, owners and denied rights are in states of sets that have one of these calls; in others the superuser makes all
calls."""


class User(Sort, numbered=True, content=True):
    """A user. What depends on who it is, a path decides."""


Right = Annotated[bool, Only(True, unless=RIGHT_CALLS)]
"""A right: granted where no call of a set is about rights."""


class LinkNumber(Sort, opaque=True, word="symbolic link"):
    """The inode number of a symbolic link."""


class SymbolicLink(Struct):
    """A symbolic link: how many names it has, where it leads, and its times."""

    nlink: int
    target: Name
    mtime: Time
    ctime: Time


class File(Inode):
    """A regular file: besides its content, whose it is, and who may read and write it."""

    owner: User
    owner_writes: Right
    others_write: Right
    is_cut: Annotated[bool, Only(False, unless=())]
    kept: Page
    later: Map[Page, Data]

    def relevant(self) -> Iterable[str]:
        """Before calls run, no file is cut."""
        return (
            *("nlink", "length", "pages", "mtime", "ctime"),
            *("owner", "owner_writes", "others_write"),
        )

    def content(self, page: int, zero: Data) -> Data:
        """What a page below the end holds."""
        pages = self.later if self.is_cut and page >= self.kept else self.pages
        content: Data = pages.get(page, zero)
        return content

    def put(self, page: int, data: Data) -> None:
        """Changes what a page holds."""
        if self.is_cut and page >= self.kept:
            self.later[page] = data
        else:
            self.pages[page] = data

    def cut(self, length: int) -> None:
        """Makes the file so long: shorter, or longer by a hole."""
        if length < self.length:
            for page, _ in self.later.touched():
                if page >= length:
                    del self.later[page]
            if not self.is_cut or length < self.kept:
                self.kept = length
                self.is_cut = True
        self.length = length

    def same_as(self, other: Any, zero: Data) -> bool:
        """Whether no caller can tell the files apart: a hole reads like a page of zeros."""
        return bool(
            self.nlink == other.nlink
            and self.length == other.length
            and self.mtime == other.mtime
            and self.ctime == other.ctime
            and self.owner == other.owner
            and self.owner_writes == other.owner_writes
            and self.others_write == other.others_write
            and self._holds_the_same(other, zero)
        )

    def _holds_the_same(self, other: Any, zero: Data) -> bool:
        if not self.is_cut and not other.is_cut:
            return self.pages.equal_where(other.pages, lambda page: page < self.length, default=zero)
        mine, theirs = (file.kept if file.is_cut else file.length for file in (self, other))
        if not (self.is_cut and other.is_cut and mine == theirs) and (mine < self.length or theirs < self.length):
            return False  # pages that only one of them has kept, of which nothing is known
        return self.pages.equal_where(
            other.pages, lambda page: page < mine and page < self.length, default=zero
        ) and self.later.equal_where(other.later, lambda page: page < self.length, default=zero)


def new_file(length: int, owner: Any, **more: Any) -> File:
    """A file without names and with all rights, of this many pages that are holes."""
    return File(
        **{
            "nlink": 0,
            "length": length,
            "pages": Map(),
            "later": Map(),
            "mtime": now(),
            "ctime": now(),
            "owner": owner,
            "owner_writes": True,
            "others_write": True,
            **more,
        }
    )
