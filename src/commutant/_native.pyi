"""The native module: what is done once per window or per access. Built from `crates/native`."""

from collections.abc import Sequence
from os import PathLike

RULES: tuple[str, ...]
"""Names of the ignoring rules, in the order of a window's counts."""

class TraceError(Exception):
    """A trace that is damaged or ends too early; one line says where."""

class TestBook:
    """Test cases that have been read, by number, so that each is read once however often it is run."""

    def __init__(self) -> None: ...
    def add(self, text: str) -> int:
        """Reads a test case from its JSON text and returns its number. ValueError says what is wrong with it."""

    def encode(self, windows: Sequence[tuple[int, int]]) -> bytes:
        """The binary batch for windows, each a pair of a test's number and the index of one of its orders."""

    def judge(self, windows: Sequence[tuple[int, int]], bytes: bytes) -> list[str | None]:
        """Judges a batch's results: per window None, or a text that says what was wrong.

        ValueError if the bytes are not the results of these windows.
        """

class Sequences:
    """Sequences of calls for one batch: test cases without calls under test, whose steps have expected results."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Reads sequences from their JSON texts. ValueError says which one is wrong, and how."""

    def encode(self) -> bytes:
        """The binary batch that runs each sequence once."""

    def read(self, bytes: bytes) -> list[str | None]:
        """Reads the batch's results: per sequence None if all came as expected, else the JSON text of what came.

        That is `{"results": [...], "observation": [...]}` or `{"refused": "why"}`. ValueError if the bytes are not the
        results of these sequences.
        """

def kernel_layout(kallsyms: bytes, btf: bytes, modules: Sequence[bytes] = ()) -> str:
    """The text of the tracer's layout file for a kernel, from its `/proc/kallsyms` and its BTF (raw, or a `vmlinux`).

    `modules` is the BTF of the modules that it has loaded. ValueError says which of them is not what it should be.
    """

class KernelNames:
    """A kernel's symbols and types; read once, used by the readers of any number of traces."""

    def __init__(self, kallsyms: bytes, btf: bytes, modules: Sequence[bytes] = ()) -> None:
        """From `/proc/kallsyms`, BTF (raw, or a `vmlinux`) and that of modules; ValueError says what is wrong."""

class ProgramNames:
    """A program's symbols."""

    def __init__(self, symbols: Sequence[tuple[int, int, str]]) -> None:
        """From (first address, first address behind, name), in any order."""

_Access = tuple[int, bool, int, int, str, list[str]]
_ByteRanges = list[tuple[int, int]]
_Line = tuple[int, list[tuple[int, int, str]], list[tuple[int, _ByteRanges, _ByteRanges]]]

class TraceReader:
    """Reads one trace, batch by batch."""

    def __init__(self, fd: int, names: KernelNames | ProgramNames) -> None:
        """Reads from a descriptor of a file or the read end of a pipe, which stays the caller's. OSError if neither."""

    def read_batch(self) -> list[tuple[int, list[int], list[int], list[int], int]] | None:
        """The windows up to the end of the next batch, or None behind the end of the trace; blocks without the GIL.

        A window is (sequence, numbers of findings, ignored lines per rule, counted accesses per core, lost accesses).
        TraceError if the trace is damaged or ends too early.
        """

    def finding(self, number: int) -> tuple[str, str, str, _Access, _Access, _Line]:
        """A finding by its number: (object, field, "true" or "false", first access, second access, line).

        An access is (core, write, offset, size in bytes, function, stack). The line, where the finding was met first,
        is (address, fields as (offset, size in bytes, name), per core (core, ranges read, ranges written)).
        """

class ProgramFile:
    """An ELF program or library with its symbols and debug information. Belongs to the thread that made it."""

    def __init__(self, path: str | PathLike[str]) -> None:
        """Reads a file; ValueError says in one line what is wrong with it."""

    def address_at(self, offset: int) -> int | None:
        """The file's own address of what stands at an offset; None if nothing there is mapped."""

    def code(self, address: int) -> list[tuple[str, tuple[str, int] | None]]:
        """The functions that an instruction belongs to, the innermost first: name, and file and line if known."""

    def variable(self, address: int) -> tuple[str, int] | None:
        """The variable that an address lies in, and how many bytes behind its start."""

class ScaleFs:
    """A file system in memory (crate `scalefs`), and one process of user 0 in it; see `commutant.scalefs`.

    Paths are bytes. All calls raise OSError with Linux's error numbers, and ValueError for a path with NUL.
    """

    def __init__(self, metadata_bytes: int, page_count: int) -> None:
        """An empty one. ValueError says what is wrong with the sizes."""

    def list(self, path: bytes) -> list[bytes]:
        """The names in a directory, without `.` and `..`."""

    def read(self, path: bytes) -> bytes:
        """All that a file holds."""

    def write(self, path: bytes, bytes: bytes, append: bool) -> None:
        """Makes a file hold these bytes, or adds them to it."""

    def make_directory(self, path: bytes, mode: int) -> None:
        """Makes a directory."""

    def remove(self, path: bytes) -> None:
        """Removes a name, or an empty directory."""

    def rename(self, old: bytes, new: bytes) -> None:
        """Gives something another name."""

    def status(self, path: bytes) -> tuple[int, int, int, int, int, int, int, int, int, int]:
        """Inode number, kind, permission bits, user, group, link count, size, times of access, modification, change."""

    def free_pages(self) -> int:
        """Pages for data that are free."""
