"""Random calls of `os` and files of `io`, made on a file system in memory and on one of the host, and compared.

    python -m tests.scalefs_package.random_calls SEED COUNT

makes a sequence again and tells the first call that differs.
"""

from __future__ import annotations

import abc
import contextlib
import io
import os
import random
import reprlib
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from scalefs import Calls, FileSystem

PLACES = ("a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f", "l", "d/l", "g", "g/a")
ODD_PLACES = ("", ".", "a/", "d/", "d/.", "none/a", "a/none", "x" * 256, "d/" + "y" * 255)
TARGETS = ("a", "b", "d", "e", "none", "l", "d/a", "e/f")
MODES = ("r", "w", "a", "x", "r+", "w+", "a+", "x+")
ATTRIBUTES = ("user.a", "user.b", "user.long", "trusted.a", "security.a", "user.", "other.a", "x" * 256)
SLOTS = 4
"""This many files, and descriptors, are open at once."""

NO_NUMBER = 10**6

Answer = Any
Call = tuple[str, tuple[Any, ...], dict[str, Any]]


class Drawn:
    """Calls drawn from a seed; what they are made on is not looked at, so two worlds are given the same ones."""

    def __init__(self, seed: int, *, attributes: bool = False) -> None:
        """From this seed; with calls on extended attributes and on room for data, if that is asked for."""
        self._random = random.Random(seed)
        self._kinds: tuple[Callable[[], Call], ...] = (self._on_names, self._on_names, self._on_files, self._on_numbers)
        if attributes:
            self._kinds += (self._on_attributes,)

    def _path(self) -> str:
        return self._random.choice(ODD_PLACES if self._random.random() < 0.05 else PLACES)

    def _bytes(self) -> bytes:
        length = self._random.choice((0, 1, 10, 100, 4095, 4096, 5000, 9000))
        return self._random.randbytes(1) * length

    def _offset(self) -> int:
        return self._random.choice((0, 1, 5, 100, 4095, 4096, 4097, 10_000, -1))

    def next(self) -> Call:
        """The next call."""
        return self._random.choice(self._kinds)()

    def _on_names(self) -> Call:
        path, other = self._path(), self._path()
        follow = {"follow_symlinks": self._random.random() < 0.5}
        mode = self._random.choice((0o777, 0o700, 0o644, 0o1777, 0o4755, 0o2755, 0))
        times = (self._random.randrange(2**40), self._random.randrange(2**61))
        number = self._random.choice((0, 1, 1000, -1))
        return self._random.choice(
            (
                ("mkdir", (path, mode), {}),
                ("makedirs", (path, mode), {"exist_ok": self._random.random() < 0.5}),
                ("rmdir", (path,), {}),
                ("unlink", (path,), {}),
                ("remove", (path,), {}),
                ("rename", (path, other), {}),
                ("replace", (path, other), {}),
                ("link", (path, other), {}),
                ("symlink", (self._random.choice(TARGETS), path), {}),
                ("readlink", (path,), {}),
                ("stat", (path,), follow),
                ("lstat", (path,), {}),
                ("access", (path, self._random.randrange(8)), {}),
                ("exists", (path,), {}),
                ("lexists", (path,), {}),
                ("isdir", (path,), {}),
                ("isfile", (path,), {}),
                ("islink", (path,), {}),
                ("listdir", (path,), {}),
                ("scandir", (path,), {}),
                ("walk", (path,), {"topdown": self._random.random() < 0.5}),
                ("chmod", (path, mode), {}),
                ("chown", (path, number, number), follow),
                ("lchown", (path, number, -1), {}),
                ("utime", (path,), {"ns": times, **follow}),
                ("truncate", (path, self._offset()), {}),
                ("write_bytes", (path, self._bytes()), {}),
                ("append_bytes", (path, self._bytes()), {}),
                ("read_bytes", (path,), {}),
            )
        )

    def _on_attributes(self) -> Call:
        path, slot = self._path(), self._random.randrange(SLOTS)
        name = self._random.choice(ATTRIBUTES if self._random.random() < 0.5 else ATTRIBUTES[:2])
        follow = {"follow_symlinks": self._random.random() < 0.5}
        value, flags = self._bytes()[:5000], self._random.choice((0, 0, os.XATTR_CREATE, os.XATTR_REPLACE))
        offset, length = self._offset(), self._random.choice((1, 100, 4096, 10_000, 0))
        return self._random.choice(
            (
                ("setxattr", (path, name, value, flags), follow),
                ("setxattr", (path, name, value, flags), follow),
                ("getxattr", (path, name), follow),
                ("listxattr", (path,), follow),
                ("removexattr", (path, name), follow),
                ("fd", (slot, "setxattr", name, value, flags), {}),
                ("fd", (slot, "getxattr", name), {}),
                ("fd", (slot, "listxattr"), {}),
                ("fd", (slot, "removexattr", name), {}),
                ("fd", (slot, "posix_fallocate", offset, length), {}),
            )
        )

    def _on_files(self) -> Call:
        slot = self._random.randrange(SLOTS)
        mode = self._random.choice(MODES)
        is_text = self._random.random() < 0.3
        buffering = self._random.choice((-1, 16, 5000)) if is_text else self._random.choice((-1, 0, 16, 5000))
        data: Any = self._bytes()
        text = data.decode("latin-1")
        size = self._random.choice((-1, 0, 1, 10, 5000, 20_000))
        return self._random.choice(
            (
                ("file_open", (slot, self._path(), mode + ("" if is_text else "b"), buffering), {}),
                ("file_open", (slot, self._path(), mode + ("" if is_text else "b"), buffering), {}),
                ("file", (slot, "write", data, text), {}),
                ("file", (slot, "write", data, text), {}),
                ("file", (slot, "read", size), {}),
                ("file", (slot, "readline"), {}),
                ("file", (slot, "readinto", bytearray(abs(size))), {}),
                ("file", (slot, "seek", max(self._offset(), 0), self._random.choice((0, 0, 2))), {}),
                ("file", (slot, "tell"), {}),
                ("file", (slot, "truncate", self._offset()), {}),
                ("file", (slot, "flush"), {}),
                ("file", (slot, "close"), {}),
                ("file_close", (slot,), {}),
            )
        )

    def _on_numbers(self) -> Call:
        slot = self._random.randrange(SLOTS)
        flags = self._random.choice((os.O_RDONLY, os.O_WRONLY, os.O_RDWR))
        for flag in (os.O_CREAT, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_NOFOLLOW, os.O_CLOEXEC):
            flags |= flag if self._random.random() < 0.3 else 0
        data, offset = self._bytes(), self._offset()
        size = self._random.choice((0, 1, 100, 10_000))
        return self._random.choice(
            (
                ("fd_open", (slot, self._path(), flags, 0o640), {}),
                ("fd_open", (slot, self._path(), os.O_RDONLY | os.O_DIRECTORY), {}),
                ("fd", (slot, "read", size), {}),
                ("fd", (slot, "pread", size, offset), {}),
                ("fd", (slot, "write", data), {}),
                ("fd", (slot, "pwrite", data, offset), {}),
                ("fd", (slot, "lseek", offset, self._random.choice((0, 1, 2))), {}),
                ("fd", (slot, "ftruncate", offset), {}),
                ("fd", (slot, "fstat"), {}),
                ("fd", (slot, "fchmod", self._random.choice((0o600, 0o755))), {}),
                ("fd", (slot, "fchown", 5, -1), {}),
                ("fd", (slot, "fsync"), {}),
                ("fd", (slot, "close"), {}),
                ("fd_dup", (slot, self._random.randrange(SLOTS)), {}),
            )
        )


class World(abc.ABC):
    """What calls are made on, with what is open in it."""

    def __init__(self) -> None:
        """With nothing open."""
        self.files: list[Any] = [None] * SLOTS
        self.numbers = [NO_NUMBER] * SLOTS

    @abc.abstractmethod
    def names(self) -> Any:
        """What has the calls on names."""

    @abc.abstractmethod
    def descriptors(self) -> Any:
        """What has the calls on descriptors."""

    @abc.abstractmethod
    def open(self, path: str, mode: str, buffering: int) -> Any:
        """Opens a file as the built-in `open`."""

    def read_bytes(self, path: str) -> bytes:
        """All that a file holds."""
        with self.open(path, "rb", -1) as file:
            return bytes(file.read())

    def write_bytes(self, path: str, data: bytes, mode: str = "wb") -> None:
        """Lets a file hold these bytes."""
        with self.open(path, mode, 0) as file:
            file.write(data)

    def append_bytes(self, path: str, data: bytes) -> None:
        """Adds these bytes."""
        self.write_bytes(path, data, "ab")

    def made(self, call: Call) -> Answer:
        """What comes of a call: what can be compared of its result, or of its error."""
        name, args, options = call
        try:
            return self._made(name, args, options)
        except (OSError, ValueError) as error:
            return type(error).__name__, getattr(error, "errno", None)

    def _made(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Answer:
        match name:
            case "file_open":
                slot, path, mode, buffering = args
                self.close(slot)
                self.files[slot] = self.open(path, mode, buffering)
                return None
            case "file_close":
                return self.close(args[0])
            case "file":
                return self._on_file(*args)
            case "fd_open":
                fd = self.descriptors().open(*args[1:])
                self._replace(args[0], fd)
                return None
            case "fd_dup":
                self._replace(args[1], self.descriptors().dup(self.numbers[args[0]]))
                return None
            case "fd":
                slot, name, *rest = args
                fd = self.numbers[slot]
                if name == "close":  # The number may soon be another file's.
                    self.numbers[slot] = NO_NUMBER
                answer = getattr(self.descriptors(), name)(fd, *rest)
                return comparable(answer)
            case "read_bytes" | "write_bytes" | "append_bytes":
                return getattr(self, name)(*args)
            case "listdir":
                return sorted(self.names().listdir(*args))
            case "scandir":
                with self.names().scandir(*args) as entries:
                    return sorted(
                        (
                            one.name,
                            one.path,
                            _asked_of(one.is_dir),
                            _asked_of(one.is_file),
                            one.is_symlink(),
                            _mode_of(one),
                        )
                        for one in entries
                    )
            case "walk":
                return sorted((top, sorted(below), sorted(files)) for top, below, files in self._walk(*args, **options))
            case "exists" | "lexists" | "isdir" | "isfile" | "islink":
                return self._asked(name, *args)
            case "utime":
                self.names().utime(*args, **options)
                found = self.names().stat(*args, follow_symlinks=options["follow_symlinks"])
                return found.st_atime_ns, found.st_mtime_ns, found.st_atime, found.st_mtime
            case _:
                return comparable(getattr(self.names(), name)(*args, **options))

    def _walk(self, *args: Any, **options: Any) -> Iterator[tuple[Any, list[Any], list[Any]]]:
        yield from self.names().walk(*args, **options)

    @abc.abstractmethod
    def _asked(self, name: str, path: str) -> bool:
        """What a path leads to, by a call of `os.path`."""

    def _replace(self, slot: int, fd: int) -> None:
        with contextlib.suppress(OSError):
            self.descriptors().close(self.numbers[slot])
        self.numbers[slot] = fd

    def _on_file(self, slot: int, name: str, *args: Any) -> Answer:
        file = self.files[slot]
        if file is None:
            return "no file"
        if name == "write":
            args = args[1:] if isinstance(file, io.TextIOBase) else args[:1]
        if name == "readinto" and isinstance(file, io.TextIOBase):
            name, args = "read", (3,)
        answer = getattr(file, name)(*args)
        return (answer, bytes(args[0])) if name == "readinto" else answer

    def close(self, slot: int) -> None:
        """Closes the file of a slot, if there is one."""
        file, self.files[slot] = self.files[slot], None
        if file is not None:
            file.close()

    def end(self) -> None:
        """Closes all."""
        for slot in range(SLOTS):
            with contextlib.suppress(OSError, ValueError):
                self.close(slot)
            with contextlib.suppress(OSError):
                self.descriptors().close(self.numbers[slot])


def _asked_of(is_kind: Callable[[], bool]) -> bool | str:
    """What an entry says of itself, or its error: two of one directory may fail, and which comes first is free."""
    try:
        return is_kind()
    except OSError as error:
        return str(error.errno)


def _mode_of(entry: Any) -> int | None:
    try:
        return int(entry.stat(follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def comparable(answer: Answer) -> Answer:
    """Of a status what both worlds have: sizes and link counts of directories are each one's own. Lists are sorted."""
    if isinstance(answer, list):
        return sorted(answer)
    if not isinstance(answer, os.stat_result):
        return answer
    of_file = () if stat.S_ISDIR(answer.st_mode) else (answer.st_size, answer.st_nlink)
    return answer.st_mode, answer.st_uid, answer.st_gid, *of_file


class Ours(World):
    """A file system in memory."""

    def __init__(self, files: Calls) -> None:
        """On this one, or in this transaction on one."""
        super().__init__()
        self._files = files
        self._descriptors = files.descriptors

    def names(self) -> Any:
        return self._files

    def descriptors(self) -> Any:
        return self._descriptors

    def open(self, path: str, mode: str, buffering: int) -> Any:
        return self._files.open(path, mode, buffering, None if "b" in mode else "latin-1")

    def read_bytes(self, path: str) -> bytes:
        return self._files.read_bytes(path)

    def write_bytes(self, path: str, data: bytes, mode: str = "wb") -> None:
        if mode == "ab":
            self._files.append_bytes(path, data)
        else:
            self._files.write_bytes(path, data)

    def _asked(self, name: str, path: str) -> bool:
        return bool(getattr(self._files, name)(path))


class Host(World):
    """The host's file system, below the working directory, which stands for the root."""

    def names(self) -> Any:
        return os

    def descriptors(self) -> Any:
        return os

    def open(self, path: str, mode: str, buffering: int) -> Any:
        # By default the host's files have a buffer of another size, whose bytes are seen at another time.
        buffering = io.DEFAULT_BUFFER_SIZE if buffering == -1 else buffering
        return open(path, mode, buffering, None if "b" in mode else "latin-1")

    def _asked(self, name: str, path: str) -> bool:
        return bool(getattr(os.path, name)(path))


def compare(files: FileSystem, seed: int, count: int) -> str | None:
    """Makes this many calls on both; the first one that differs, in words. The working directory is the host's root."""
    drawn, ours, host = Drawn(seed, attributes=_host_has_attributes()), Ours(files), Host()
    try:
        for step in range(count):
            if differs := difference(drawn.next(), host, ours):
                return f"{_again(seed, step)}: {differs}"
    finally:
        ours.end()
        host.end()
    return None


def compare_in_transactions(files: FileSystem, seed: int, count: int) -> str | None:
    """As `compare`, a few calls at a time in a transaction, with what is opened in it."""
    drawn, chosen, step = Drawn(seed), random.Random(seed), 0
    while step < count:
        host = Host()
        with files.transaction() as t:
            ours = Ours(t)
            try:
                for _ in range(chosen.randrange(1, 9)):
                    step += 1
                    if differs := difference(drawn.next(), host, ours):
                        return f"in transactions, {_again(seed, step - 1)}: {differs}"
            finally:
                host.end()
                ours.end()
    return None


def _host_has_attributes() -> bool:
    """Whether the working directory's file system keeps attributes of users: in memory since Linux 6.6."""
    try:
        os.setxattr(".", "user.a", b"")
        os.removexattr(".", "user.a")
    except OSError:
        return False
    return True


def _again(seed: int, step: int) -> str:
    return f"call {step} of seed {seed} (`python -m tests.scalefs_package.random_calls {seed} {step + 1}`)"


def difference(call: Call, host: World, ours: World) -> str | None:
    """Makes a call on both; what differs, in words."""
    expected, found = host.made(call), ours.made(call)
    if expected == found:
        return None
    texts = [reprlib.repr(one) for one in (call, expected, found)]
    return f"{texts[0]}: the host says {texts[1]}, scalefs {texts[2]}"


@contextlib.contextmanager
def on_host() -> Iterator[None]:
    """An empty directory in the host's memory is the working directory until the end."""
    before, mask = os.getcwd(), os.umask(0o022)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        os.chmod(folder, 0o755)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
            os.umask(mask)


if __name__ == "__main__":
    for of in (compare, compare_in_transactions):
        with on_host():
            print(of(FileSystem(), int(sys.argv[1]), int(sys.argv[2])) or "no difference")
