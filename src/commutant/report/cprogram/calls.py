"""The table of calls that have a C form: for each, its C function, its arguments, and what it returns.

A call that is new to this table needs one entry here and one file for its function.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources

from commutant.corpus import Value
from commutant.report.cprogram.literal import file_name, string_literal
from commutant.support import UsageError, safe_text


@dataclass(frozen=True, slots=True)
class NameArgument:
    """An argument that names a file."""

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments of the model that this C argument stands for."""
        return (self.name,)

    def text(self, args: Mapping[str, Value]) -> str:
        """The C expression; raises UsageError for a value that is no name."""
        value = args[self.name]
        if not isinstance(value, str):
            raise UsageError(f"expected a file name as '{self.name}', got {value!r:.60}: no C program for this test")
        return string_literal(file_name(value))


@dataclass(frozen=True, slots=True)
class FlagsArgument:
    """Boolean arguments of the model that C takes as one word of flags."""

    flags: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments of the model that this C argument stands for."""
        return tuple(self.flags)

    def text(self, args: Mapping[str, Value]) -> str:
        """The C expression; raises UsageError for a value that is not a boolean."""
        for name in self.flags:
            if not isinstance(args[name], bool):
                raise UsageError(
                    f"expected true or false as '{name}', got {args[name]!r:.60}: no C program for this test"
                )
        return " | ".join(flag for name, flag in self.flags.items() if args[name]) or "0"


@dataclass(frozen=True, slots=True)
class NumberArgument:
    """An argument that is a number."""

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments of the model that this C argument stands for."""
        return (self.name,)

    def text(self, args: Mapping[str, Value]) -> str:
        """The C expression; raises UsageError for a value that is not a number."""
        value = args[self.name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"expected a number as '{self.name}', got {value!r:.60}: no C program for this test")
        return str(value)


@dataclass(frozen=True, slots=True)
class CCall:
    """One call in C: its function is `do_<source>`, which stands in `templates/c/calls/<source>.c`.

    `fields` maps the fields of a struct result to C expressions. A call of `posix` uses `templates/c/posix.c`.
    """

    source: str
    arguments: tuple[Argument, ...]
    fields: Mapping[str, str] = field(default_factory=dict)
    posix: bool = True


Argument = NameArgument | FlagsArgument | NumberArgument

_STATUS = {
    "ino": "INODE(&status)",
    "pipe": "S_ISFIFO(status.st_mode)",
    "nlink": "status.st_nlink",
    "size": "status.st_size / 4096",
    "mtime": "NANOSECONDS(status.st_mtim)",
    "ctime": "NANOSECONDS(status.st_ctim)",
}
_READ = {"pages": "count / PAGE", "data": "count ? content_of(bytes) : 0"}
_NAMES = frozenset({"name", "old", "new", "src", "dst", "directory"})
_FLAGS = frozenset(
    {
        *("fixed", "anonymous", "shared", "writable", "readable", "may_write", "write_end"),
        *("other_readers", "other_writers", "times"),
    }
)


def _argument(name: str) -> Argument:
    if name in _NAMES:
        return NameArgument(name)
    return FlagsArgument({name: "1"}) if name in _FLAGS else NumberArgument(name)


def _call(source: str, parameters: str = "", fields: Mapping[str, str] | None = None) -> CCall:
    """A call of posix18 or its set-ups, whose C arguments are those of the model, one for one."""
    return CCall(source, tuple(map(_argument, parameters.split())), fields or {})


_OPEN_NUMBER = CCall(
    "open_number",
    (
        NameArgument("name"),
        FlagsArgument({"creat": "O_CREAT", "excl": "O_EXCL", "trunc": "O_TRUNC"}),
        FlagsArgument({"readable": "1"}),
        FlagsArgument({"writable": "1"}),
    ),
)

C_CALLS: Mapping[str, tuple[CCall, ...]] = {
    "open": (
        CCall("open", (NameArgument("name"), FlagsArgument({"creat": "O_CREAT", "excl": "O_EXCL"})), posix=False),
        _OPEN_NUMBER,
    ),
    "link": (CCall("link", (NameArgument("old"), NameArgument("new")), posix=False),),
    "unlink": (CCall("unlink", (NameArgument("name"),), posix=False),),
    "rename": (CCall("rename", (NameArgument("src"), NameArgument("dst")), posix=False),),
    "stat": (CCall("stat", (NameArgument("name"),), _STATUS, posix=False),),
    "access": (CCall("access", (NameArgument("name"),), posix=False),),
    **{
        call.source: (call,)
        for call in (
            _call("fstat", "fd", _STATUS),
            _call("lseek", "fd offset whence"),
            _call("close", "fd"),
            _call("pipe", "", {"read_end": "ends[0]", "write_end": "ends[1]"}),
            _call("read", "fd", _READ),
            _call("write", "fd data"),
            _call("pread", "fd page", _READ),
            _call("pwrite", "fd page data"),
            _call("mmap", "fixed address anonymous shared writable fd page"),
            _call("munmap", "address"),
            _call("mprotect", "address writable"),
            _call("memread", "address"),
            _call("memwrite", "address data"),
            _call("make_file", "file length"),
            _call("fill_page", "file page data"),
            _call("name_file", "file directory name"),
            _call("enter_directory", "directory"),
            _call("open_file", "fd file readable writable offset"),
            _call("forget_file", "file"),
            _call("map_file", "address file page shared writable may_write"),
            _call("make_pipe", "pipe"),
            _call("fill_pipe", "pipe data"),
            _call("open_pipe", "fd pipe write_end"),
            _call("forget_pipe", "pipe other_readers other_writers"),
            _call("peek_directory", "directory times"),
            _call("peek_descriptors", "times"),
            _call("peek_memory"),
            _call("probe_memory", "first"),
        )
    },
}
"""Per call, its forms, which differ in their arguments."""


def form(call: str, args: Collection[str]) -> CCall:
    """The form of a call with these arguments; raises UsageError if there is none."""
    forms = C_CALLS.get(call)
    if forms is None:
        raise UsageError(
            f"expected a call with a C form ({', '.join(C_CALLS)}), got {safe_text(call)}: "
            "no C program for this test (use --as json)"
        )
    known = [[name for argument in one.arguments for name in argument.names] for one in forms]
    for one, names in zip(forms, known, strict=True):
        if sorted(names) == sorted(args):
            return one
    raise UsageError(
        f"expected the arguments {' or '.join(', '.join(names) for names in known)} of {call}, "
        f"got {safe_text(', '.join(args)) or 'none'}: no C program for this test (use --as json)"
    )


def invocation(call: str, args: Mapping[str, Value]) -> str:
    """`do_rename(result, "n0", "n1")`. Raises UsageError for a call or an argument without a C form."""
    found = form(call, args)
    return f"do_{found.source}({', '.join(('result', *(argument.text(args) for argument in found.arguments)))})"


def result_items(found: CCall, result: Value) -> Mapping[str, str]:
    """For a result of a call that is a structure: per field, the line of the C function that tells it.

    Raises UsageError for a result that the function cannot give, such as a field that it does not know.
    """
    match result:
        case {"errno": _} | {"signal": _} | None:
            return {}
        case {"struct": Mapping() as struct} if found.fields and set(struct) <= set(found.fields):
            return {name: _add_item(name, content, found.fields[name]) for name, content in struct.items()}
        case int() if not found.fields and not isinstance(result, bool):
            return {}
        case {"sort": str(), "id": int()} | {"seq": list()} if found.posix and not found.fields:
            return {}
    raise UsageError(f"a C program cannot check the result {result!r:.80} of {found.source} (use --as json)")


@lru_cache(maxsize=1 << 10)
def definition(source: str, items: str) -> str:
    """The C function of a call whose results are described by the lines `items`, perhaps none."""
    return template(f"calls/{source}.c").replace("@FIELDS@", items or "    (void)result;")


@cache
def template(name: str) -> str:
    """A fixed part of the programs, from `templates/c`."""
    folder = resources.files("commutant.report") / "templates" / "c"
    return folder.joinpath(name).read_text(encoding="utf-8")


def _add_item(name: str, content: Value, expression: str) -> str:
    match content:
        case {"sort": str() as sort, "id": int()}:
            kind, sort_text = "CHOSEN", string_literal(safe_text(sort))
        case bool():
            kind, sort_text = "FLAG", "NULL"
        case {"time": int()}:
            kind, sort_text = "TIME", "NULL"
        case int():
            kind, sort_text = "NUMBER", "NULL"
        case _:
            raise UsageError(f"a C program cannot check the field {safe_text(name)} = {content!r:.60} (use --as json)")
    return f"    add_item(result, {kind}, {string_literal(name)}, {sort_text}, (long long){expression});"
