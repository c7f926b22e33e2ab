"""`scalefs://name/path` for libraries that open files by fsspec, such as pandas, pyarrow and Dask.

`name` is a file system of this process (`scalefs.named`), made when it is first asked for. Needs the extra
`scalefs[fsspec]`.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from datetime import UTC, datetime
from typing import IO, Any, NoReturn

from fsspec.spec import AbstractFileSystem
from fsspec.transaction import Transaction as FsspecTransaction
from fsspec.utils import stringify_path

from scalefs.calls import Calls
from scalefs.named import named
from scalefs.transactions import Transaction

PROTOCOL = "scalefs"
DEFAULT_NAME = "default"
_OF_A_PROTOCOL = re.compile(r"(?P<protocol>[A-Za-z][A-Za-z0-9+.-]*)://(?P<name>[^/]*)(?P<path>.*)", re.DOTALL)
_COPIED_BYTES = 1 << 20
"""What is copied at once."""
_TRAVELS_NOT = (
    "files of scalefs:// are in the memory of this process and do not travel to another one: "
    "use threads, or copy the files to a store that both reach"
)


class _Transaction(FsspecTransaction):  # type: ignore[misc]
    """All calls of the file system between its beginning and its end happen at one moment, or none does."""

    fs: Any

    def start(self) -> None:
        """Begins."""
        super().start()
        self.fs._begin()

    def complete(self, commit: bool = True) -> None:
        """Ends: commits, or lets nothing have happened. Raises `Stale` if what was seen is not so any more."""
        fs, self.fs = self.fs, None
        self.files.clear()
        fs._intrans = False
        fs._transaction = None
        fs._end(commit)


class ScaleFsFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The file system of this name in this process, for fsspec; paths begin at its root.

    Within `with fs.transaction:`, all calls are parts of one transaction, those that look as well: what they change
    happens at the block's end at one moment, or not at all.
    """

    protocol = PROTOCOL
    root_marker = "/"
    transaction_type = _Transaction

    def __init__(
        self, name: str = DEFAULT_NAME, *, size_bytes: int | None = None, auto_mkdir: bool = False, **options: Any
    ) -> None:
        """`size_bytes` counts if there is none of this name; `auto_mkdir` makes the directory of what is written."""
        if self._cached:
            return
        super().__init__(**options)
        self.name = name
        self.auto_mkdir = auto_mkdir
        self._size_bytes = size_bytes
        self._running: Transaction | None = None
        named(name, size_bytes=size_bytes)
        # As a method of the instance, which knows whose paths are its own.
        self._strip_protocol = self._own_path  # type: ignore[method-assign]

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """The path alone, from the root. ValueError for one of another protocol."""
        return cls._split(path)[1]

    @classmethod
    def _split(cls, path: Any) -> tuple[str | None, Any]:
        """The name in an address, if it has one, and the path."""
        if isinstance(path, list):
            return None, [cls._strip_protocol(one) for one in path]
        given = stringify_path(path)
        if not isinstance(given, str):
            raise TypeError(f"expected a path as text, got {type(path).__name__}")
        name = None
        if address := _OF_A_PROTOCOL.match(given):
            if address["protocol"] != PROTOCOL:
                raise ValueError(f"expected {PROTOCOL}://NAME/PATH or a path from the root, got {given!r}")
            name, given = address["name"], address["path"]
        return name, "/" + given.strip("/")

    def _own_path(self, path: Any) -> Any:
        if isinstance(path, list):
            return [self._own_path(one) for one in path]
        name, below = self._split(path)
        if name is not None and name != self.name:
            raise ValueError(f"expected a path of {PROTOCOL}://{self.name}, got {path!r}; open it by its own name")
        return below

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        """The name that an address has in the place of a host."""
        address = _OF_A_PROTOCOL.match(path)
        return {"name": address["name"]} if address and address["name"] else {}

    def unstrip_protocol(self, name: str) -> str:
        """The whole address of a path."""
        return f"{PROTOCOL}://{self.name}{self._strip_protocol(name)}"

    @property
    def fsid(self) -> str:
        """The protocol and the name."""
        return f"{PROTOCOL}_{self.name}"

    def __reduce__(self) -> NoReturn:
        """Memory of a process does not travel: raises TypeError."""
        raise TypeError(_TRAVELS_NOT)

    def to_dict(self, *, include_password: bool = True) -> NoReturn:
        """Memory of a process does not travel: raises TypeError."""
        raise TypeError(_TRAVELS_NOT)

    def to_json(self, *, include_password: bool = True) -> NoReturn:
        """Memory of a process does not travel: raises TypeError."""
        raise TypeError(_TRAVELS_NOT)

    # Transactions.

    @property
    def _calls(self) -> Calls:
        return self._running or named(self.name, size_bytes=self._size_bytes)

    def _begin(self) -> None:
        if self._running is not None:
            raise ValueError("a transaction of this file system is open: end it first")
        self._running = named(self.name, size_bytes=self._size_bytes).transaction().__enter__()

    def _end(self, commits: bool) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.__exit__(None if commits else Exception, None, None)

    def start_transaction(self) -> Any:
        """Begins a transaction that `end_transaction` ends."""
        transaction = super().start_transaction()
        transaction.start()
        return transaction

    # Looking.

    def _described(self, path: str, of_link: os.stat_result) -> dict[str, Any]:
        """What fsspec tells of a path; of a symbolic link, what is known of that to which it leads."""
        found = of_link
        is_link = stat.S_ISLNK(found.st_mode)
        if is_link:
            found = self._calls.stat(path)
        kind = "directory" if stat.S_ISDIR(found.st_mode) else "file"
        told = {
            "name": path,
            "size": found.st_size,
            "type": kind,
            # Reading changes no time of access: unless somebody sets it, it is when the file was made.
            "created": found.st_atime,
            "islink": is_link,
            "mode": found.st_mode,
            "uid": found.st_uid,
            "gid": found.st_gid,
            "mtime": found.st_mtime,
            "ino": found.st_ino,
            "nlink": found.st_nlink,
        }
        if is_link:
            told["destination"] = self._calls.readlink(path)
        return told

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What is known of a path."""
        path = self._strip_protocol(path)
        return self._described(path, self._calls.lstat(path))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """The paths in a directory, or what is known of each; a file's own."""
        path = self._strip_protocol(path)
        found = self.info(path)
        if found["type"] != "directory":
            return [found] if detail else [path]
        with self._calls.scandir(path) as entries:
            below = sorted(entry.path for entry in entries)
        if not detail:
            return below
        described = []
        for one in below:
            try:
                described.append(self.info(one))
            except FileNotFoundError:
                # It has gone, or is a symbolic link that leads nowhere.
                continue
        return described

    def exists(self, path: str, **_: Any) -> bool:
        """Whether a path leads to something."""
        return self._calls.exists(self._strip_protocol(path))

    def lexists(self, path: str, **_: Any) -> bool:
        """Whether there is such a name."""
        return self._calls.lexists(self._strip_protocol(path))

    def isdir(self, path: str) -> bool:
        """Whether a path leads to a directory."""
        return self._calls.isdir(self._strip_protocol(path))

    def isfile(self, path: str) -> bool:
        """Whether a path leads to a file."""
        return self._calls.isfile(self._strip_protocol(path))

    def islink(self, path: str) -> bool:
        """Whether a path is a symbolic link."""
        return self._calls.islink(self._strip_protocol(path))

    def created(self, path: str) -> datetime:
        """When a file was made."""
        return datetime.fromtimestamp(self.info(path)["created"], tz=UTC)

    def modified(self, path: str) -> datetime:
        """When its data or names changed last."""
        return datetime.fromtimestamp(self.info(path)["mtime"], tz=UTC)

    # Data.

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        cache_options: Any = None,
        compression: str | None = None,
        **options: Any,
    ) -> Any:
        """A file as `io` has it; as text without "b" in the mode."""
        if compression is not None or "b" in mode:
            return super().open(path, mode, block_size, cache_options, compression, **options)
        path = self._strip_protocol(path)
        self._make_room(path, mode)
        encoding, errors, newline = (options.get(key) for key in ("encoding", "errors", "newline"))
        return self._calls.open(path, mode, -1, encoding, errors, newline)

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **_: Any) -> IO[Any]:
        path = self._strip_protocol(path)
        self._make_room(path, mode)
        return self._calls.open(path, mode, block_size if isinstance(block_size, int) else -1)

    def _make_room(self, path: str, mode: str) -> None:
        if self.auto_mkdir and "r" not in mode:
            self._calls.makedirs(self._parent(path), exist_ok=True)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        """The bytes of a file, or those from one place to another."""
        if start is None and end is None:
            return self._calls.read_bytes(self._strip_protocol(path))
        return super().cat_file(path, start, end, **options)  # type: ignore[no-any-return]

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        """Makes a file hold these bytes; with the mode "create" there must be none before."""
        path = self._strip_protocol(path)
        self._make_room(path, "w")
        if mode == "create":
            with self._calls.open(path, "xb") as file:
                file.write(value)
        else:
            self._calls.write_bytes(path, value)

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        """Makes an empty file, or lets one that is there be modified now."""
        path = self._strip_protocol(path)
        self._make_room(path, "w")
        if truncate or not self._calls.exists(path):
            self._calls.write_bytes(path, b"")
        else:
            self._calls.utime(path)

    # Names.

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Makes a directory, with those above it unless that is not wanted."""
        path = self._strip_protocol(path)
        if create_parents:
            self._calls.makedirs(path)
        else:
            self._calls.mkdir(path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Makes a directory, with those above it."""
        self._calls.makedirs(self._strip_protocol(path), exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        """Removes an empty directory."""
        self._calls.rmdir(self._strip_protocol(path))

    def rm_file(self, path: str) -> None:
        """Removes a file."""
        self._calls.unlink(self._strip_protocol(path))

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes files, and directories with all in them if it is recursive. Symbolic links are not followed."""
        if maxdepth is not None:
            raise ValueError("expected no maxdepth: a directory is removed as a whole")
        for one in self.expand_path(path):
            if not self._calls.isdir(one) or self._calls.islink(one):
                self._calls.unlink(one)
            elif recursive:
                self._calls.rmtree(one)
            else:
                raise ValueError(f"expected recursive=True to remove a directory, {one!r}")

    def mv(self, path1: Any, path2: Any, recursive: bool = False, maxdepth: int | None = None, **options: Any) -> None:
        """Gives something another name in one step; into a directory, if that is there or `path2` ends with a slash."""
        is_one = isinstance(path1, str) and isinstance(path2, str) and not any(sign in path1 for sign in "*?[")
        if not is_one or maxdepth is not None:
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **options)
            return
        old, new = self._strip_protocol(path1), self._strip_protocol(path2)
        if path2.endswith("/") or (self._calls.isdir(new) and new != old):
            new = f"{new.rstrip('/')}/{old.rpartition('/')[2]}"
        self._make_room(new, "w")
        self._calls.rename(old, new)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        """Copies a file; of a directory, makes one of that name."""
        old, new = self._strip_protocol(path1), self._strip_protocol(path2)
        self._make_room(new, "w")
        found = self._calls.stat(old)
        if stat.S_ISDIR(found.st_mode):
            self._calls.makedirs(new, exist_ok=True)
            return
        if self._calls.exists(new) and os.path.samestat(found, self._calls.stat(new)):
            raise shutil.SameFileError(f"{old!r} and {new!r} are the same file")
        with self._calls.open(old, "rb") as source, self._calls.open(new, "wb") as copy:
            shutil.copyfileobj(source, copy, _COPIED_BYTES)

    def link(self, src: str, dst: str, **_: Any) -> None:
        """Gives a file a further name."""
        self._calls.link(self._strip_protocol(src), self._strip_protocol(dst))

    def symlink(self, src: str, dst: str, **_: Any) -> None:
        """Makes a symbolic link `dst` to `src`."""
        self._calls.symlink(self._strip_protocol(src), self._strip_protocol(dst))

    def chmod(self, path: str, mode: int) -> None:
        """Sets permission bits."""
        self._calls.chmod(self._strip_protocol(path), mode)
