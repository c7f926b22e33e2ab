"""The calls of `os` on paths: those of a file system, and the same in a transaction."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from scalefs.descriptors import Descriptors
from scalefs.raw import opened
from scalefs.times import chosen_times

if TYPE_CHECKING:
    from scalefs import _native
    from scalefs.types import Data, Path

Text = TypeVar("Text", str, bytes)

_SYMBOLIC_LINK, _DIRECTORY = 1, 2
"""Kinds of a listing."""

_MOST_NAME_BYTES = 255
_NO_ID = -1
"""Owner or group that stays as it is."""


class DirEntry(Generic[Text]):
    """A name in a directory, as `os.DirEntry`."""

    __slots__ = ("_calls", "_kind", "name", "path")

    name: Text
    """The name alone."""
    path: Text
    """With the directory that was listed in front."""

    def __init__(self, calls: Calls, directory: Text, name: Text, kind: int) -> None:
        """Made by `scandir`."""
        self._calls = calls
        self._kind = kind
        self.name = name
        self.path = os.path.join(directory, name)

    def __fspath__(self) -> Text:
        """The path."""
        return self.path

    def __repr__(self) -> str:
        """With the name."""
        return f"<scalefs.DirEntry {self.name!r}>"

    def is_symlink(self) -> bool:
        """Whether it was a symbolic link when it was listed."""
        return self._kind == _SYMBOLIC_LINK

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it leads to a directory."""
        return self._leads_to(stat.S_ISDIR, self._kind == _DIRECTORY, follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it leads to a regular file."""
        return self._leads_to(stat.S_ISREG, self._kind not in (_DIRECTORY, _SYMBOLIC_LINK), follow_symlinks)

    def _leads_to(self, is_kind: Callable[[int], bool], is_one: bool, follow_symlinks: bool) -> bool:
        if self._kind != _SYMBOLIC_LINK or not follow_symlinks:
            return is_one
        try:
            return is_kind(self.stat().st_mode)
        except FileNotFoundError:
            return False

    def inode(self) -> int:
        """The number of what it leads to; of a symbolic link itself."""
        return self.stat(follow_symlinks=False).st_ino

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """What is known of it now."""
        return self._calls.stat(self.path, follow_symlinks=follow_symlinks)


class _Listing(Generic[Text]):
    """What `scandir` returns: entries, one after the other; also for a `with` block."""

    def __init__(self, entries: list[DirEntry[Text]]) -> None:
        self._entries: Iterator[DirEntry[Text]] = iter(entries)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> DirEntry[Text]:
        return next(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing comes after this."""
        self._entries = iter(())


class Calls:
    """Calls on paths as `os` has them, of one process of user 0 whose mask is 0o022. Relative paths begin at the root.

    Each raises OSError as that of `os` does. `open` is the built-in one; `read_bytes` and `write_bytes` are those of
    `pathlib.Path`. Names may be `str`, `bytes` or path objects; bytes are answered by bytes.
    """

    def __init__(self, native: _native.Files) -> None:
        """Of this file system, or of a transaction on it."""
        self._native = native
        self._descriptors = native.descriptors()

    def __reduce__(self) -> NoReturn:
        """Memory of a process does not travel: raises TypeError, also for `copy`."""
        raise TypeError(
            f"a {type(self).__name__} of scalefs is in the memory of this process: it cannot be pickled or copied; "
            "send its files"
        )

    @property
    def descriptors(self) -> Descriptors:
        """The calls of `os` on descriptors."""
        return Descriptors(self._descriptors)

    # Files as a whole, and as `io` has them.

    def open(
        self,
        path: Path,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """As the built-in `open`: a text, a buffered file of bytes, or, without a buffer, a `RawFile`."""
        return opened(self._descriptors, path, mode, buffering, encoding, errors, newline)

    def read_bytes(self, path: Path) -> bytes:
        """All that a file holds."""
        return self._native.read(path)

    def write_bytes(self, path: Path, data: Data) -> None:
        """Makes a file hold these bytes and no others; it is made if there is none.

        Where space runs out (ENOSPC), what fitted is in the file.
        """
        self._native.write(path, data, False)

    def append_bytes(self, path: Path, data: Data) -> None:
        """Adds bytes at the end of a file, in one step; it is made if there is none."""
        self._native.write(path, data, True)

    # Looking.

    def stat(self, path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        """What is known of what a path leads to."""
        return self._native.stat(path, follow_symlinks)

    def lstat(self, path: Path) -> os.stat_result:
        """What is known of it; of a symbolic link itself."""
        return self.stat(path, follow_symlinks=False)

    def access(self, path: Path, mode: int, *, follow_symlinks: bool = True) -> bool:
        """Whether a path leads to what may be used so (`os.R_OK` and its kin)."""
        if not 0 <= mode <= os.R_OK | os.W_OK | os.X_OK:
            raise OSError(22, os.strerror(22), path)
        return self._native.access(path, mode, follow_symlinks)

    def exists(self, path: Path) -> bool:
        """Whether a path leads to something (`os.path.exists`)."""
        return self._native.access(path, 0, True)

    def lexists(self, path: Path) -> bool:
        """Whether there is such a name, whatever a symbolic link leads to (`os.path.lexists`)."""
        return self._native.access(path, 0, False)

    def _is(self, path: Path, is_kind: Callable[[int], bool], follow_symlinks: bool = True) -> bool:
        return self._native.access(path, 0, follow_symlinks) and is_kind(self._mode(path, follow_symlinks))

    def _mode(self, path: Path, follow_symlinks: bool) -> int:
        try:
            return self._native.stat(path, follow_symlinks).st_mode
        except FileNotFoundError:
            return 0

    def isdir(self, path: Path) -> bool:
        """Whether a path leads to a directory (`os.path.isdir`)."""
        return self._is(path, stat.S_ISDIR)

    def isfile(self, path: Path) -> bool:
        """Whether a path leads to a regular file (`os.path.isfile`)."""
        return self._is(path, stat.S_ISREG)

    def islink(self, path: Path) -> bool:
        """Whether a path is a symbolic link (`os.path.islink`)."""
        return self._is(path, stat.S_ISLNK, False)

    def listdir(self, path: Any = "/") -> list[Any]:
        """The names in a directory, in no order; as bytes if the path is."""
        listed = self._native.list(path)
        if isinstance(path, bytes):
            return [name for name, _ in listed]
        return [os.fsdecode(name) for name, _ in listed]

    def scandir(self, path: Any = "/") -> _Listing[Any]:
        """The names in a directory as `DirEntry`, in no order: of the moment of the call."""
        listed = self._native.list(path)
        if isinstance(path, bytes):
            return _Listing([DirEntry(self, path, name, kind) for name, kind in listed])
        directory = os.fsdecode(path)
        return _Listing([DirEntry(self, directory, os.fsdecode(name), kind) for name, kind in listed])

    def walk(
        self,
        top: Any,
        topdown: bool = True,
        onerror: Callable[[OSError], object] | None = None,
        followlinks: bool = False,
    ) -> Iterator[tuple[Any, list[Any], list[Any]]]:
        """As `os.walk`: each directory with the names of directories and of other things in it."""
        top = os.fspath(top)
        try:
            entries = list(self.scandir(top))
        except OSError as error:
            if onerror is not None:
                onerror(error)
            return
        directories: list[Any] = []
        others: list[Any] = []
        for entry in entries:
            try:
                is_directory = entry.is_dir()
            except OSError:  # Of a symbolic link that leads to itself.
                is_directory = False
            (directories if is_directory else others).append(entry.name)
        if topdown:
            yield top, directories, others
        for name in directories:
            below = os.path.join(top, name)
            if followlinks or not self.islink(below):
                yield from self.walk(below, topdown, onerror, followlinks)
        if not topdown:
            yield top, directories, others

    def readlink(self, path: Any) -> Any:
        """What a symbolic link holds; as bytes if the path is."""
        target = self._native.read_link(path)
        return target if isinstance(path, bytes) else os.fsdecode(target)

    def statvfs(self, path: Path = "/") -> os.statvfs_result:
        """Space in all, and free; what a removal gives up may become free a few calls later."""
        self._native.stat(path, True)
        block_bytes, blocks, free_blocks, inodes, free_inodes = self._native.space()
        sizes = (block_bytes, block_bytes, blocks, free_blocks, free_blocks, inodes, free_inodes, free_inodes)
        return os.statvfs_result((*sizes, 0, _MOST_NAME_BYTES, self._native.device))

    # Changing.

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        """Makes a directory."""
        self._native.make_directory(path, mode & 0o7777)

    def makedirs(self, name: Path, mode: int = 0o777, exist_ok: bool = False) -> None:
        """Makes a directory, and those above it that are missing (`os.makedirs`)."""
        given: Any = os.fspath(name)
        head, tail = os.path.split(given)
        if not tail:
            head, tail = os.path.split(head)
        if head and tail and not self.exists(head):
            with contextlib.suppress(FileExistsError):  # Another thread has made it.
                self.makedirs(head, exist_ok=exist_ok)
            if tail in (os.curdir, os.fsencode(os.curdir)):
                return
        try:
            self.mkdir(given, mode)
        except OSError:
            if not exist_ok or not self.isdir(given):
                raise

    def unlink(self, path: Path) -> None:
        """Removes a name of a file or symbolic link."""
        self._native.unlink(path)

    remove = unlink

    def rmdir(self, path: Path) -> None:
        """Removes an empty directory."""
        self._native.remove_directory(path)

    def rmtree(self, path: Path) -> None:
        """Removes a directory and all below it (`shutil.rmtree`), name by name; in a transaction at one moment."""
        top: Any = os.fspath(path)
        if self.islink(top):
            raise OSError("Cannot call rmtree on a symbolic link")
        with self.scandir(top) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    self.rmtree(entry.path)
                else:
                    self.unlink(entry.path)
        self.rmdir(top)

    def rename(self, src: Path, dst: Path) -> None:
        """Gives something another name in one step; what had that is replaced."""
        self._native.rename(src, dst)

    replace = rename

    def link(self, src: Path, dst: Path, *, follow_symlinks: bool = False) -> None:
        """Gives a file a further name; to a symbolic link itself, unless it is followed (so does Linux)."""
        self._native.link(src, dst, follow_symlinks)

    def symlink(self, src: Path, dst: Path) -> None:
        """Makes a symbolic link `dst` that holds `src`."""
        self._native.symlink(src, dst)

    def chmod(self, path: Path, mode: int) -> None:
        """Sets the permission bits of what a path leads to."""
        self._native.change_mode(path, mode & 0o7777)

    def chown(self, path: Path, uid: int, gid: int, *, follow_symlinks: bool = True) -> None:
        """Sets owner and group, each unless it is -1."""
        user, group = (None if number == _NO_ID else number for number in (uid, gid))
        self._native.change_owner(path, user, group, follow_symlinks)

    def lchown(self, path: Path, uid: int, gid: int) -> None:
        """Sets owner and group; of a symbolic link itself."""
        self.chown(path, uid, gid, follow_symlinks=False)

    def utime(
        self,
        path: Path,
        times: tuple[float, float] | None = None,
        *,
        ns: tuple[int, int] | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Sets the times of access and modification: in seconds, in nanoseconds, or, without both, to the present."""
        self._native.set_times(path, chosen_times(times, ns), follow_symlinks)

    def getxattr(self, path: Path, attribute: Path, *, follow_symlinks: bool = True) -> bytes:
        """The value of an extended attribute."""
        return self._native.get_attribute(path, follow_symlinks, attribute)

    def setxattr(
        self, path: Path, attribute: Path, value: Data, flags: int = 0, *, follow_symlinks: bool = True
    ) -> None:
        """Sets an extended attribute: with os.XATTR_CREATE a new one, with os.XATTR_REPLACE one that is there."""
        self._native.set_attribute(path, follow_symlinks, attribute, value, flags)

    def removexattr(self, path: Path, attribute: Path, *, follow_symlinks: bool = True) -> None:
        """Removes an extended attribute."""
        self._native.remove_attribute(path, follow_symlinks, attribute)

    def listxattr(self, path: Path, *, follow_symlinks: bool = True) -> list[str]:
        """The names of all extended attributes, sorted."""
        return [os.fsdecode(name) for name in self._native.list_attributes(path, follow_symlinks)]

    def truncate(self, path: Path, length: int) -> None:
        """Makes a file longer by a hole, or shorter."""
        self._native.truncate(path, length)

    @property
    def free_bytes(self) -> int:
        """Space for data that is free."""
        block_bytes, _, free_blocks, _, _ = self._native.space()
        return block_bytes * free_blocks
