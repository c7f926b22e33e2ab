"""The calls of posix18 and posix-commutative on the kernel under this Python: a small independent runner for tests.

Each process of a test is a forked child that takes one call at a time over a socket. Its own descriptors lie from
`OWN_DESCRIPTORS` up, so that calls find the lowest free number that the model expects. Memory is read and written with
process_vm_readv(2) and process_vm_writev(2), which say EFAULT where an access would raise a signal.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import select
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from commutant.testgen import TestCase

PAGE = 4096
OWN_DESCRIPTORS = 512
CONTROL = 900
HELD = 600
WINDOW = 0x6000_0000_0000
WINDOW_PAGES = 64

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

Result = Any
MAP_FIXED = 0x10


class Region(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


libc.process_vm_readv.argtypes = libc.process_vm_writev.argtypes = [
    ctypes.c_int,
    *[ctypes.POINTER(Region), ctypes.c_ulong] * 2,
    ctypes.c_ulong,
]


def page_of(data: int) -> bytes:
    return bytes([data]) * PAGE


def data_of(page: bytes) -> int:
    return page[0] if page == page_of(page[0]) else -1


def struct(**fields: Result) -> Result:
    return {"struct": fields}


def stat_of(stat: os.stat_result, times: bool = True) -> Result:
    pipe = (stat.st_mode & 0o170000) == 0o010000
    return struct(
        ino={"sort": "Inum", "id": (stat.st_dev, stat.st_ino)},
        pipe=pipe,
        nlink=stat.st_nlink,
        size=stat.st_size // PAGE,
        mtime={"time": stat.st_mtime_ns} if times else None,
        ctime={"time": stat.st_ctime_ns} if times else None,
    )


def pages_of(path: str) -> Result:
    fd = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        return {"seq": [data_of(os.pread(fd, PAGE, at)) for at in range(0, size, PAGE)]}
    finally:
        os.close(fd)


def failed(code: int) -> None:
    if code != 0:
        raise OSError(ctypes.get_errno(), "")


class ProcessUnderTest:
    """One process: its calls by name, as they are made in the child."""

    def __init__(self, root: str, holder: int) -> None:
        self.root = root
        self.holder = holder
        self.unplaced: dict[int, int] = {}
        self.handles: dict[int, int] = {}
        self.number = 0

    def scratch(self, file: int) -> str:
        return f"{self.root}/f{file}"

    # -- set-up

    def make_file(self, file: int, length: int) -> Result:
        fd = os.open(self.scratch(file), os.O_CREAT | os.O_EXCL | os.O_RDWR)
        os.ftruncate(fd, length * PAGE)
        stat = os.fstat(fd)
        os.close(fd)
        return {"sort": "Inum", "id": (stat.st_dev, stat.st_ino)}

    def fill_page(self, file: int, page: int, data: int) -> None:
        fd = os.open(self.scratch(file), os.O_WRONLY)
        os.pwrite(fd, page_of(data), page * PAGE)
        os.close(fd)

    def name_file(self, file: int, directory: str, name: str) -> None:
        os.makedirs(f"{self.root}/{directory}", exist_ok=True)
        os.link(self.scratch(file), f"{self.root}/{directory}/{name}")

    def enter_directory(self, directory: str) -> None:
        os.makedirs(f"{self.root}/{directory}", exist_ok=True)
        os.chdir(f"{self.root}/{directory}")

    def place_descriptor(self, opened: int, fd: int) -> None:
        if opened != fd:
            os.dup2(opened, fd)
            os.close(opened)

    def open_file(self, fd: int, file: int, readable: bool, writable: bool, offset: int) -> None:
        opened = os.open(self.scratch(file), access_mode(readable, writable))
        os.lseek(opened, offset * PAGE, os.SEEK_SET)
        self.place_descriptor(opened, fd)

    def forget_file(self, file: int) -> None:
        os.unlink(self.scratch(file))

    def make_pipe(self, pipe: int) -> Result:
        ends = os.pipe2(os.O_NONBLOCK)
        for end, fd in enumerate(ends):
            os.dup2(fd, HELD + 2 * pipe + end)
            os.close(fd)
        stat = os.fstat(HELD + 2 * pipe)
        return {"sort": "Inum", "id": (stat.st_dev, stat.st_ino)}

    def fill_pipe(self, pipe: int, data: int) -> None:
        os.write(HELD + 2 * pipe + 1, page_of(data))

    def open_pipe(self, fd: int, pipe: int, write_end: bool) -> None:
        mode = os.O_WRONLY if write_end else os.O_RDONLY
        path = f"/proc/{self.holder}/fd/{HELD + 2 * pipe + write_end}"
        self.place_descriptor(os.open(path, mode | os.O_NONBLOCK), fd)

    def forget_pipe(self, pipe: int, other_readers: bool, other_writers: bool) -> None:
        for end, wanted in enumerate((other_readers, other_writers)):
            if not wanted:
                os.close(HELD + 2 * pipe + end)

    def map_file(self, address: int, file: int, page: int, shared: bool, writable: bool, may_write: bool) -> None:
        fd = os.open(self.scratch(file), os.O_RDWR if may_write else os.O_RDONLY)
        self._map(fixed=True, address=address, flags=kind_of(shared), writable=writable, fd=fd, page=page)
        os.close(fd)

    # -- calls on names and descriptors

    def open(
        self, name: str, creat: bool, excl: bool, trunc: bool, readable: bool, writable: bool, anyfd: int = 0
    ) -> Result:
        flags = access_mode(readable, writable)
        flags |= (os.O_CREAT if creat else 0) | (os.O_EXCL if excl else 0) | (os.O_TRUNC if trunc else 0)
        return self._number(os.open(name, flags, 0o600), anyfd)

    def _number(self, fd: int, anyfd: int) -> Result:
        """Linux has no O_ANYFD: any one will do that no call gives as a number of its own, as the lowest may be."""
        if anyfd:
            lowest, fd = fd, fcntl.fcntl(fd, fcntl.F_DUPFD, OWN_DESCRIPTORS)
            os.close(lowest)
            self.handles[fd] = self.number
        return {"sort": "Handle", "id": (os.getpid(), fd)} if fd in self.handles else fd

    def link(self, old: str, new: str) -> Result:
        os.link(old, new)
        return 0

    def unlink(self, name: str) -> Result:
        os.unlink(name)
        return 0

    def rename(self, src: str, dst: str) -> Result:
        os.rename(src, dst)
        return 0

    def stat(self, name: str) -> Result:
        return stat_of(os.stat(name))

    def fstat(self, fd: int) -> Result:
        return stat_of(os.fstat(fd))

    def fstatx(self, fd: int, nlink: bool, size: bool, times: bool) -> Result:
        stat = stat_of(os.fstat(fd))["struct"]
        chosen = {"nlink": nlink, "size": size, "mtime": times, "ctime": times}
        return struct(**{name: value if chosen.get(name, True) else None for name, value in stat.items()})

    def lseek(self, fd: int, offset: int, whence: int) -> Result:
        return os.lseek(fd, offset * PAGE, whence) // PAGE

    def close(self, fd: int) -> Result:
        os.close(fd)
        return 0

    # -- calls on data

    def pipe(self, anyfd: int = 0) -> Result:
        read_end, write_end = os.pipe2(os.O_NONBLOCK)
        return struct(read_end=self._number(read_end, anyfd), write_end=self._number(write_end, anyfd))

    def read(self, fd: int) -> Result:
        return read_result(os.read(fd, PAGE))

    def write(self, fd: int, data: int) -> Result:
        return os.write(fd, page_of(data)) // PAGE

    def pread(self, fd: int, page: int) -> Result:
        return read_result(os.pread(fd, PAGE, page * PAGE))

    def pwrite(self, fd: int, page: int, data: int) -> Result:
        return os.pwrite(fd, page_of(data), page * PAGE) // PAGE

    # -- calls on memory

    def mmap(
        self, fixed: bool, address: int, anonymous: bool, shared: bool, writable: bool, fd: int, page: int
    ) -> Result:
        flags = kind_of(shared) | (mmap.MAP_ANONYMOUS if anonymous else 0)
        return self._map(fixed=fixed, address=address, flags=flags, writable=writable, fd=fd, page=page)

    def _map(self, *, fixed: bool, address: int, flags: int, writable: bool, fd: int, page: int) -> Result:
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        place = WINDOW + PAGE * address if fixed else None
        if fixed:
            flags |= MAP_FIXED
        mapped = libc.mmap(place, PAGE, protection, flags, fd, page * PAGE)
        if mapped == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "")
        if fixed:
            return address
        self.unplaced[mapped] = self.number
        return {"sort": "Address", "id": (os.getpid(), mapped)}

    def munmap(self, address: int) -> Result:
        failed(libc.munmap(WINDOW + PAGE * address, PAGE))
        return 0

    def mprotect(self, address: int, writable: bool) -> Result:
        failed(libc.mprotect(WINDOW + PAGE * address, PAGE, mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)))
        return 0

    def memread(self, address: int) -> Result:
        return self._load(WINDOW + PAGE * address)

    def memwrite(self, address: int, data: int) -> Result:
        signal = self._store(WINDOW + PAGE * address, data)
        return 0 if signal is None else signal

    def _load(self, place: int) -> Result:
        buffer = ctypes.create_string_buffer(PAGE)
        if self._move(libc.process_vm_readv, buffer, place):
            return data_of(buffer.raw)
        return {"signal": "SIGBUS" if self._permissions(place) else "SIGSEGV"}

    def _store(self, place: int, data: int) -> Result:
        buffer = ctypes.create_string_buffer(page_of(data), PAGE)
        if self._move(libc.process_vm_writev, buffer, place):
            return None
        return {"signal": "SIGBUS" if "w" in self._permissions(place) else "SIGSEGV"}

    def _move(self, call: Any, buffer: Any, place: int) -> bool:
        mine, theirs = Region(ctypes.addressof(buffer), PAGE), Region(place, PAGE)
        moved: int = call(os.getpid(), ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
        return moved == PAGE

    def _permissions(self, place: int) -> str:
        """How the page is mapped; nothing where it is not."""
        return next((permissions for first, end, permissions in mappings() if first <= place < end), "")

    # -- observation

    def peek_directory(self, directory: str, times: bool) -> Result:
        path = f"{self.root}/{directory}"
        names = sorted(os.listdir(path)) if os.path.exists(path) else []
        return {
            "seq": [
                struct(name=name, stat=stat_of(os.stat(f"{path}/{name}"), times), contents=pages_of(f"{path}/{name}"))
                for name in names
            ]
        }

    def peek_descriptors(self, times: bool) -> Result:
        views = []
        lowest = [fd for fd in range(OWN_DESCRIPTORS) if fd not in self.handles]
        for fd in [*lowest, *sorted(self.handles, key=self.handles.__getitem__)]:
            with suppress(OSError):
                views.append((fd, fcntl.fcntl(fd, fcntl.F_GETFL)))
        return {"seq": [self._view(fd, flags, times) for fd, flags in views]}

    def _view(self, fd: int, flags: int, times: bool) -> Result:
        stat = stat_of(os.fstat(fd), times)
        mode = flags & os.O_ACCMODE
        readable, writable = mode in (os.O_RDONLY, os.O_RDWR), mode in (os.O_WRONLY, os.O_RDWR)
        view = {"fd": self._number(fd, 0), "stat": stat, "readable": readable, "writable": writable}
        if not stat["struct"]["pipe"]:
            offset = os.lseek(fd, 0, os.SEEK_CUR) // PAGE
            contents = pages_of(f"/proc/self/fd/{fd}")
            return struct(**view, write_end=False, peer_open=False, offset=offset, contents=contents)
        poll = select.poll()
        poll.register(fd, select.POLLIN | select.POLLOUT)
        gone = any(events & (select.POLLERR if writable else select.POLLHUP) for _, events in poll.poll(0))
        return struct(**view, write_end=writable, peer_open=not gone, offset=0, contents=self._waiting(fd))

    def _waiting(self, fd: int) -> Result:
        source = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK)
        copy_read, copy_write = os.pipe2(os.O_NONBLOCK)
        try:
            libc.tee(source, copy_write, 64 * PAGE, 2)
            pages = []
            with suppress(BlockingIOError):
                while True:
                    pages.append(data_of(os.read(copy_read, PAGE)))
            return {"seq": pages}
        finally:
            for opened in (source, copy_read, copy_write):
                os.close(opened)

    def _mapped(self) -> Iterator[tuple[Result, int]]:
        window = range(WINDOW, WINDOW + WINDOW_PAGES * PAGE, PAGE)
        for first, end, _ in mappings():
            for place in range(max(first, window.start), min(end, window.stop), PAGE):
                yield (place - WINDOW) // PAGE, place
        for place in sorted(self.unplaced, key=self.unplaced.__getitem__):
            yield {"sort": "Address", "id": (os.getpid(), place)}, place

    def peek_memory(self) -> Result:
        return {"seq": [struct(address=address, content=self._load(place)) for address, place in self._mapped()]}

    def probe_memory(self, first: int) -> Result:
        return {"seq": [self._store(place, first + number) for number, (_, place) in enumerate(self._mapped())]}


def mappings() -> Iterator[tuple[int, int, str]]:
    """First address, end and permissions of what this process has mapped, ascending."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, permissions = line.split()[:2]
        first, end = (int(number, 16) for number in addresses.split("-"))
        yield first, end, permissions


def access_mode(readable: bool, writable: bool) -> int:
    """O_RDWR, O_RDONLY, O_WRONLY, or Linux's mode for neither."""
    return {(True, True): os.O_RDWR, (True, False): os.O_RDONLY, (False, True): os.O_WRONLY}.get(
        (readable, writable), os.O_ACCMODE
    )


def kind_of(shared: bool) -> int:
    return mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE


def read_result(page: bytes) -> Result:
    return struct(pages=len(page) // PAGE, data=data_of(page) if page else 0)


def serve(connection: socket.socket, root: str, holder: int) -> None:
    """The child: makes calls until the socket is closed."""
    os.dup2(connection.fileno(), CONTROL)
    os.closerange(0, CONTROL)
    os.closerange(CONTROL + 1, 4096)
    process = ProcessUnderTest(root, holder or os.getpid())
    with socket.socket(fileno=CONTROL) as control, control.makefile("rwb", buffering=0) as lines:
        while line := lines.readline():
            process.number, call, arguments = json.loads(line)
            try:
                result = getattr(process, call)(**arguments)
            except OSError as error:
                result = {"errno": errno.errorcode[error.errno or 0]}
            except Exception as error:  # shown by the parent, which fails the test
                result = {"broken": repr(error)}
            lines.write(json.dumps(result).encode() + b"\n")


class Host:
    """The processes of one run, in a directory of their own."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._processes: dict[int, tuple[int, socket.socket, Any]] = {}

    def __enter__(self) -> Host:
        self._root.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        for pid, connection, lines in self._processes.values():
            lines.close()
            connection.close()
            os.waitpid(pid, 0)
        shutil.rmtree(self._root)

    def call(self, process: int, name: str, arguments: Mapping[str, Any], number: int = 0) -> Result:
        """Makes a call; process 0 is the one that holds the pipes of a set-up.

        Addresses and descriptors that the kernel picks are listed by the numbers of the calls.
        """
        for needed in (0, process):
            if needed not in self._processes:
                self._processes[needed] = self._fork()
        lines = self._processes[process][2]
        lines.write(json.dumps([number, name, dict(arguments)]).encode() + b"\n")
        result = json.loads(lines.readline())
        assert not (isinstance(result, dict) and "broken" in result), (name, arguments, result)
        return result

    def _fork(self) -> tuple[int, socket.socket, Any]:
        mine, theirs = socket.socketpair()
        holder = self._processes[0][0] if self._processes else 0
        pid = os.fork()
        if pid == 0:
            try:
                serve(theirs, str(self._root), holder)
            finally:
                os._exit(0)
        theirs.close()
        return pid, mine, mine.makefile("rwb", buffering=0)


class Pairing:
    """Compares values as the contract says: what the implementation chooses up to a bijection, times by order.

    A file that is gone may leave its number to a new one, so that set-up, calls and observation are sections: within
    one a number stands for one file, and in all of them a file has one number.

    Times of pipes are not compared: Linux 6.18 leaves those of a pipe as they were when it was made,
    whatever is written.
    """

    def __init__(self) -> None:
        self._forth: dict[Any, Any] = {}
        self._back: dict[Any, Any] = {}
        self._times: list[tuple[int, int]] = []
        self._of_pipe = False

    def begin_section(self) -> None:
        """From here on, numbers may stand for other files than before."""
        self._back.clear()

    def fits(self, expected: Result, actual: Result) -> bool:
        if isinstance(expected, dict) and isinstance(actual, dict):
            if expected.keys() != actual.keys():
                return False
            self._of_pipe = expected.get("pipe", self._of_pipe)
            if "time" in expected:
                return self._of_pipe or self._time_fits(expected["time"], actual["time"])
            if "sort" in expected:
                sort, chosen = expected["sort"], str(actual["id"])
                known = self._forth.setdefault((sort, expected["id"]), chosen)
                owner = self._back.setdefault((sort, chosen), expected["id"])
                return bool(sort == actual["sort"] and known == chosen and owner == expected["id"])
            return all(self.fits(value, actual[key]) for key, value in expected.items())
        if isinstance(expected, list) and isinstance(actual, list):
            return len(expected) == len(actual) and all(map(self.fits, expected, actual))
        return type(expected) is type(actual) and bool(expected == actual)

    def _time_fits(self, expected: int, actual: int) -> bool:
        fits = all(
            actual >= other_actual if expected > other else actual <= other_actual
            for other, other_actual in self._times
            if other != expected
        )
        self._times.append((expected, actual))
        return fits


def fits(expected: Sequence[Sequence[Result]], actual: Sequence[Sequence[Result]]) -> bool:
    """Whether a run's values are as expected; both hold those of set-up, calls and observation."""
    pairing = Pairing()
    for wanted, came in zip(expected, actual, strict=True):
        pairing.begin_section()
        if len(wanted) != len(came) or not all(map(pairing.fits, wanted, came)):
            return False
    return True


def run(test: TestCase, order: Sequence[int], root: Path) -> Sequence[Sequence[Result]]:
    """What the host returns to set-up, calls and observation of a test, its calls made in this order."""
    with Host(root) as host:
        setup = [host.call(step.process, step.call, step.args) for step in test.setup]
        calls = {}
        for index in order:
            one = test.calls[index]
            calls[index] = host.call(one.process, one.call, one.args, 1 + index)
        observation = [host.call(step.process, step.call, step.args) for step in test.observe]
    return setup, [calls[index] for index in range(len(test.calls))], observation


def wrong_orders(test: TestCase, root: Path) -> list[tuple[Sequence[int], Result]]:
    """The orders of the calls in which the host does what the test does not accept, with what came."""
    wrong: list[tuple[Sequence[int], Result]] = []
    setup = [step.result for step in test.setup]
    for order in test.orders:
        came = run(test, order.order, root)
        acceptable = [json.loads(json.dumps((setup, one.results, one.observation))) for one in order.outcomes]
        if not any(fits(one, came) for one in acceptable):
            wrong.append((order.order, came))
    return wrong
