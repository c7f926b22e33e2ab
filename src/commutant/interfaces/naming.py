"""What the calls on names do to a directory, shared by the interface `names` and the POSIX areas.

`names` is any map from a key to an inode number, `inodes` the map of inodes; `changed` is called with an inode whose
status changed, for those who keep a ctime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commutant.lang import Errno, Map

Changed = Callable[[Any], None]


def nothing(inode: Any) -> None:
    """For interfaces that keep no times."""


def link_name(
    names: Map[Any, Any], inodes: Map[Any, Any], old: Any, new: Any, changed: Changed = nothing
) -> Errno | int:
    """link(2); the old name is looked up before the new one is (Linux: do_linkat)."""
    if old not in names:
        return Errno.ENOENT
    if new in names:
        return Errno.EEXIST
    inum = names[old]
    inode = inodes[inum]
    inode.nlink += 1
    changed(inode)
    names[new] = inum
    return 0


def unlink_name(names: Map[Any, Any], inodes: Map[Any, Any], name: Any, changed: Changed = nothing) -> Errno | int:
    """unlink(2)."""
    if name not in names:
        return Errno.ENOENT
    inode = inodes[names[name]]
    inode.nlink -= 1
    changed(inode)
    del names[name]
    return 0


def rename_name(
    names: Map[Any, Any], inodes: Map[Any, Any], src: Any, dst: Any, changed: Changed = nothing
) -> Errno | int:
    """rename(2); does nothing where both names lead to one inode (Linux: vfs_rename, `source == target`).

    The moved inode's ctime changes too, as Linux does it and POSIX permits.
    """
    if src not in names:
        return Errno.ENOENT
    if src == dst:
        return 0
    moved = names[src]
    if dst in names:
        if moved == names[dst]:
            return 0
        replaced = inodes[names[dst]]
        replaced.nlink -= 1
        changed(replaced)
    changed(inodes[moved])
    names[dst] = moved
    del names[src]
    return 0
