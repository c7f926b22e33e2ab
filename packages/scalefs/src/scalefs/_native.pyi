"""What the native module has (crate `scalefs-python`). Only this package uses it."""

import builtins
import os
from typing import Any, Self, final

from scalefs.types import Data, Path

__all__ = ["Descriptors", "Files", "Stale"]

class Stale(OSError):
    """What a transaction has seen is not so any more, so that nothing of it has happened (ECANCELED)."""

    transaction: object
    """Which, once the exception has left its block."""

@final
class Files:
    """A file system in memory, and one process of user 0 in it; or the same in a transaction."""

    def __new__(cls, metadata_bytes: int, page_count: int, core_count: int) -> Self: ...
    def begin(self) -> Files:
        """The same calls in a transaction that begins now."""

    def end(self, commits: bool) -> bool:
        """Ends the transaction; False if what it has seen is not so any more."""

    def close(self) -> None:
        """Refuses all further calls."""

    @property
    def is_open(self) -> bool:
        """Whether calls are taken."""

    @property
    def device(self) -> int:
        """What `st_dev` says of its files."""

    def descriptors(self) -> Descriptors:
        """Calls on descriptors."""

    def list(self, path: Path) -> list[tuple[bytes, int]]:
        """The names in a directory, and the kind of each: 0 a file, 1 a symbolic link, 2 a directory."""

    def stat(self, path: Path, follows: bool) -> os.stat_result:
        """What is known of what a path leads to."""

    def access(self, path: Path, wanted: int, follows: bool) -> bool:
        """Whether a path leads to something that may be used so."""

    def make_directory(self, path: Path, mode: int) -> None:
        """Makes a directory."""

    def remove_directory(self, path: Path) -> None:
        """Removes an empty directory."""

    def unlink(self, path: Path) -> None:
        """Removes a name of what is no directory."""

    def rename(self, old: Path, new: Path) -> None:
        """Gives something another name."""

    def link(self, old: Path, new: Path, follows: bool) -> None:
        """Gives a file a further name."""

    def symlink(self, target: Path, path: Path) -> None:
        """Makes a symbolic link."""

    def read_link(self, path: Path) -> bytes:
        """What a symbolic link holds."""

    def change_mode(self, path: Path, mode: int) -> None:
        """Sets the permission bits."""

    def change_owner(self, path: Path, user: int | None, group: int | None, follows: bool) -> None:
        """Sets owner and group."""

    def set_times(self, path: Path, times: tuple[int, int] | None, follows: bool) -> None:
        """Sets the times of access and modification, in nanoseconds."""

    def truncate(self, path: Path, size_bytes: int) -> None:
        """Makes a file longer by a hole, or shorter."""

    def get_attribute(self, path: Path, follows: bool, name: Path) -> bytes:
        """The value of an extended attribute."""

    def set_attribute(self, path: Path, follows: bool, name: Path, value: Data, flags: int) -> None:
        """Sets an extended attribute."""

    def remove_attribute(self, path: Path, follows: bool, name: Path) -> None:
        """Removes an extended attribute."""

    def list_attributes(self, path: Path, follows: bool) -> builtins.list[bytes]:
        """The names of all extended attributes."""

    def space(self) -> tuple[int, int, int, int, int]:
        """Bytes of a block, blocks, those that are free, most inodes, those that can still be made."""

    def read(self, path: Path) -> bytes:
        """All that a file holds."""

    def write(self, path: Path, bytes: Data, appends: bool) -> None:
        """Makes a file hold these bytes, or adds them at its end."""

@final
class Descriptors:
    """Calls on descriptors of a file system, or in a transaction."""

    def open(self, path: Path, flags: int, mode: int, appends: bool, refuses_directories: bool) -> int:
        """Opens a file under the lowest free number."""

    def close(self, fd: int) -> None:
        """Closes a descriptor."""

    @property
    def is_open(self) -> bool:
        """Whether calls are taken."""

    def read(self, fd: int, size: int) -> bytes:
        """Up to this many bytes at the descriptor's offset."""

    def read_all(self, fd: int) -> bytes:
        """All bytes from the descriptor's offset on."""

    def read_into(self, fd: int, into: Any) -> int:
        """Reads at the descriptor's offset into an object that can be written."""

    def read_at(self, fd: int, size: int, offset: int) -> bytes:
        """Up to this many bytes at an offset."""

    def write(self, fd: int, bytes: Data) -> int:
        """Writes at the descriptor's offset."""

    def write_at(self, fd: int, bytes: Data, offset: int) -> int:
        """Writes at an offset."""

    def seek(self, fd: int, offset: int, whence: int) -> int:
        """Moves the descriptor's offset."""

    def truncate(self, fd: int, size_bytes: int) -> None:
        """Makes the file longer by a hole, or shorter."""

    def get_attribute(self, fd: int, name: Path) -> bytes:
        """The value of an extended attribute."""

    def set_attribute(self, fd: int, name: Path, value: Data, flags: int) -> None:
        """Sets an extended attribute."""

    def remove_attribute(self, fd: int, name: Path) -> None:
        """Removes an extended attribute."""

    def list_attributes(self, fd: int) -> list[bytes]:
        """The names of all extended attributes."""

    def allocate(self, fd: int, mode: int, offset: int, length: int) -> None:
        """Takes room for bytes of a file, or gives it back, as `mode` says."""

    def stat(self, fd: int) -> os.stat_result:
        """What is known of an open file."""

    def duplicate(self, fd: int, target: int | None) -> int:
        """Another descriptor with the same offset."""

    def set_lock(self, fd: int, asked: tuple[int, int], bytes: tuple[int, int, int], waits: bool) -> None: ...
    def lock_in_the_way(
        self, fd: int, asked: tuple[int, int], bytes: tuple[int, int, int]
    ) -> tuple[bool, int, int, int] | None: ...
    def change_mode(self, fd: int, mode: int) -> None:
        """Sets the permission bits."""

    def change_owner(self, fd: int, user: int | None, group: int | None) -> None:
        """Sets owner and group."""

    def set_times(self, fd: int, times: tuple[int, int] | None) -> None:
        """Sets the times of access and modification, in nanoseconds."""
