"""The table of calls that have a C form: for each, its C function, its arguments, and what it returns.

The C function of a call stands in `templates/c/calls/<call>.c` and is named `do_<call>`. A call that is new to this
table needs one entry here and one such file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from commutant.errors import UsageError
from commutant.report.cprogram.literal import file_name, string_literal
from commutant.report.text import safe_text
from commutant.testgen.testcase import Value


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
class CCall:
    """One call in C.

    `fields` maps the fields of a struct result to C expressions; a call without fields returns a number.
    """

    arguments: tuple[NameArgument | FlagsArgument, ...]
    fields: Mapping[str, str] = field(default_factory=dict)


C_CALLS: Mapping[str, CCall] = {
    "open": CCall((NameArgument("name"), FlagsArgument({"creat": "O_CREAT", "excl": "O_EXCL"}))),
    "link": CCall((NameArgument("old"), NameArgument("new"))),
    "unlink": CCall((NameArgument("name"),)),
    "rename": CCall((NameArgument("src"), NameArgument("dst"))),
    "stat": CCall((NameArgument("name"),), {"ino": "status.st_ino", "nlink": "status.st_nlink"}),
    "access": CCall((NameArgument("name"),)),
}


def invocation(call: str, args: Mapping[str, Value]) -> str:
    """`do_rename(result, "n0", "n1")`. Raises UsageError for a call or an argument without a C form."""
    form = _form(call)
    known = [name for argument in form.arguments for name in argument.names]
    if sorted(known) != sorted(args):
        raise UsageError(
            f"expected the arguments {', '.join(known)} of {call}, got {safe_text(', '.join(args)) or 'none'}: "
            "no C program for this test (use --as json)"
        )
    return f"do_{call}({', '.join(('result', *(argument.text(args) for argument in form.arguments)))})"


def definition(call: str, results: Sequence[Value]) -> str:
    """The C function of a call that returns, in this test, results of these kinds.

    Raises UsageError for a result that the function cannot give, such as a field that it does not know.
    """
    form = _form(call)
    items: dict[str, str] = {}
    for value in results:
        match value:
            case {"errno": _} | None:
                continue
            case {"struct": Mapping() as struct} if form.fields and set(struct) <= set(form.fields):
                for name, content in struct.items():
                    items[name] = _add_item(name, content, form.fields[name])
            case int() if not form.fields and not isinstance(value, bool):
                continue
            case _:
                raise UsageError(f"a C program cannot check the result {value!r:.80} of {call} (use --as json)")
    source = template(f"calls/{call}.c")
    return source.replace("@FIELDS@", "\n".join(items.values()) or "    (void)status;")


@cache
def template(name: str) -> str:
    """A fixed part of the programs, from `templates/c`."""
    folder = resources.files("commutant.report") / "templates" / "c"
    return folder.joinpath(name).read_text(encoding="utf-8")


def _form(call: str) -> CCall:
    form = C_CALLS.get(call)
    if form is None:
        raise UsageError(
            f"expected a call with a C form ({', '.join(C_CALLS)}), got {safe_text(call)}: "
            "no C program for this test (use --as json)"
        )
    return form


def _add_item(name: str, content: Value, expression: str) -> str:
    match content:
        case {"sort": str() as sort, "id": int()}:
            kind, sort_text = "CHOSEN", string_literal(safe_text(sort))
        case int() if not isinstance(content, bool):
            kind, sort_text = "NUMBER", "NULL"
        case _:
            raise UsageError(f"a C program cannot check the field {safe_text(name)} = {content!r:.60} (use --as json)")
    return f"    add_item(result, {kind}, {string_literal(name)}, {sort_text}, (long long){expression});"
