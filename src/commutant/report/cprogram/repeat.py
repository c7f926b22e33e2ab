"""How a call of a test is made again and again: its C statements, and those that bring its state back.

Each form is the body of a function that returns the status of the call itself. What undoes a call costs and shares
too, so a form says how much of it there is; the loops take the tests that need least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from commutant.corpus import PlacedCall, Value
from commutant.report.cprogram.literal import file_name, string_literal
from commutant.report.cprogram.state import StateAfter


@dataclass(frozen=True, slots=True)
class Repeated:
    """A call in a loop: the lines of its function's body, lines that run once before, whether it succeeds, and how many
    calls undo it."""

    body: tuple[str, ...]
    prepare: tuple[str, ...]
    succeeds: bool
    undone_by: int


def repeated(call: PlacedCall, result: Value, state: StateAfter, number: int, taken: frozenset[str]) -> Repeated | None:
    """The `number`-th call of a test, which returns `result` in this state; None if it cannot be repeated.

    `taken` are names that other calls of the test use at the same time.
    """
    make = _CALLS.get(call.call)
    if make is None:
        return None
    succeeds = not (isinstance(result, dict) and ("errno" in result or "signal" in result))
    form = make(_Call(call.args, call.process, result, state, number, succeeds, taken))
    if form is None:
        return None
    body = [*form.declared, f"int status = {form.made};"]
    if not succeeds or not form.undo:
        return Repeated((*body, "return status;"), (), succeeds, 0)
    undo = ("if (status >= 0) {", *(f"    {line}" for line in form.undo), "}")
    return Repeated((*body, *undo, "return status;"), form.prepare, succeeds, len(form.undo))


@dataclass(frozen=True, slots=True)
class _Form:
    """A call as an expression of its status, statements that undo it, variables, and statements that run once."""

    made: str
    undo: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with its arguments, what it returns, and the state in which it is made."""

    args: Mapping[str, Value]
    process: int
    result: Value
    state: StateAfter
    number: int
    succeeds: bool
    taken: frozenset[str]

    def name(self, argument: str) -> str:
        """A file's name as C text."""
        return string_literal(file_name(str(self.args[argument])))

    def integer(self, argument: str) -> int:
        """A number; a truth value as 0 or 1."""
        return int(self.args[argument])  # type: ignore[call-overload,no-any-return]

    @property
    def page(self) -> str:
        """The address of a page."""
        return f"page_address({self.integer('address')})"

    @property
    def pages_moved(self) -> int:
        """How far a read or a write that succeeded moved the descriptor's position."""
        match self.result:
            case {"struct": {"pages": int(pages)}}:
                return pages
            case int(pages):
                return pages
        return 0

    def is_pipe(self) -> bool:
        """Whether the descriptor is a pipe's."""
        return (self.process, self.args["fd"]) in self.state.pipes


def _open(call: _Call) -> _Form | None:
    file = call.state.file(call.process, call.args["name"])
    if call.succeeds and call.args.get("trunc") and file in call.state.filled:
        return None  # only the first one would find something to cut off
    flags = [flag for name, flag in _OPEN_FLAGS.items() if call.args.get(name)]
    mode = "O_RDWR"
    if "readable" in call.args:
        mode = f"access_mode({call.integer('readable')}, {call.integer('writable')})"
    made = f"open({call.name('name')}, {' | '.join((mode, *flags))}, 0666)"
    return _Form(made, ("close(status);", *((f"unlink({call.name('name')});",) if file is None else ())))


_OPEN_FLAGS = {"creat": "O_CREAT", "excl": "O_EXCL", "trunc": "O_TRUNC"}


def _link(call: _Call) -> _Form:
    return _Form(f"link({call.name('old')}, {call.name('new')})", (f"unlink({call.name('new')});",))


def _unlink(call: _Call) -> _Form:
    name = call.name("name")
    file = call.state.file(call.process, call.args["name"])
    own = call.state.place(call.process, call.args["name"])
    others = [place for place, one in call.state.names.items() if one == file and place != own and place[0] == own[0]]
    others = [place for place in others if place[1] not in call.taken]
    if others:
        again: tuple[str, ...] = (f"must(link({string_literal(file_name(others[0][1]))}, {name}));",)
    else:
        again = (f"must(mknod({name}, S_IFREG | 0666, 0));",)
    return _Form(f"unlink({name})", again)


def _rename(call: _Call) -> _Form:
    source, target = call.name("src"), call.name("dst")
    old, new = (call.state.file(call.process, call.args[name]) for name in ("src", "dst"))
    made = f"rename({source}, {target})"
    if old == new:
        return _Form(made)
    back = f"must(rename({target}, {source}));"
    undo = (back,) if new is None else (back, f"must(mknod({target}, S_IFREG | 0666, 0));")
    return _Form(made, undo)


def _stat(call: _Call) -> _Form:
    return _Form(f"stat({call.name('name')}, &found)", declared=("struct stat found;",))


def _access(call: _Call) -> _Form:
    return _Form(f"access({call.name('name')}, F_OK)")


def _fstat(call: _Call) -> _Form:
    return _Form(f"fstat({call.integer('fd')}, &found)", declared=("struct stat found;",))


def _lseek(call: _Call) -> _Form:
    fd, offset, whence = (call.integer(name) for name in ("fd", "offset", "whence"))
    back = (f"lseek({fd}, {-offset}L * PAGE, SEEK_CUR);",) if whence == 1 and offset else ()
    return _Form(f"seek({fd}, {offset}L * PAGE, {('SEEK_SET', 'SEEK_CUR', 'SEEK_END')[whence]})", back)


def _close(call: _Call) -> _Form:
    fd = call.integer("fd")
    kept = f"KEPT + {call.number}"
    return _Form(f"close({fd})", (f"must(dup2({kept}, {fd}));",), prepare=(f"must(dup2({fd}, {kept}));",))


def _pipe(call: _Call) -> _Form:
    return _Form("pipe2(ends, O_NONBLOCK)", ("close(ends[0]);", "close(ends[1]);"), ("int ends[2];",))


def _read(call: _Call) -> _Form | None:
    fd, pages = call.integer("fd"), call.pages_moved if call.succeeds else 0
    if pages and call.is_pipe():
        return None
    back = (f"lseek({fd}, {-pages}L * PAGE, SEEK_CUR);",) if pages else ()
    return _Form(f"(int)read({fd}, bytes, PAGE)", back)


def _write(call: _Call) -> _Form | None:
    fd = call.integer("fd")
    if call.succeeds and call.is_pipe():
        return None
    return _Form(f"(int)write({fd}, bytes, PAGE)", (f"lseek({fd}, -1L * PAGE, SEEK_CUR);",))


def _pread(call: _Call) -> _Form:
    return _Form(f"(int)pread({call.integer('fd')}, bytes, PAGE, {call.integer('page')}L * PAGE)")


def _pwrite(call: _Call) -> _Form:
    return _Form(f"(int)pwrite({call.integer('fd')}, bytes, PAGE, {call.integer('page')}L * PAGE)")


def _mmap(call: _Call) -> _Form:
    where = call.page if call.args["fixed"] else "NULL"
    made = _mapping(call.args, where)
    undo = () if call.args["fixed"] else ("munmap(place, PAGE);",)
    return _Form(f"(place = {made}) == MAP_FAILED ? -1 : 0", undo, ("void *place;",))


def _mapping(args: Mapping[str, Value], where: str) -> str:
    kinds = (
        ["MAP_PRIVATE | MAP_ANONYMOUS"] if args["anonymous"] else ["MAP_SHARED" if args["shared"] else "MAP_PRIVATE"]
    )
    kinds += ["MAP_FIXED"] if args["fixed"] else []
    descriptor, page = (-1, 0) if args["anonymous"] else (args["fd"], args["page"])
    return f"mmap({where}, PAGE, {_protection(args['writable'])}, {' | '.join(kinds)}, {descriptor}, {page}L * PAGE)"


def _protection(writable: object) -> str:
    return "PROT_READ | PROT_WRITE" if writable else "PROT_READ"


def _munmap(call: _Call) -> _Form | None:
    mapped = call.state.mapped.get((call.process, call.args["address"]))
    made = f"munmap({call.page}, PAGE)"
    if mapped is None or not call.succeeds:
        return _Form(made)
    if mapped[1] is None:
        return None  # a file's page: its descriptor may be closed by now
    return _Form(made, (f"must({_mapping(mapped[1], call.page)} == MAP_FAILED ? -1 : 0);",))


def _mprotect(call: _Call) -> _Form:
    mapped = call.state.mapped.get((call.process, call.args["address"]))
    changes = mapped is not None and mapped[0] != bool(call.args["writable"])
    back = f"must(mprotect({call.page}, PAGE, {_protection(not call.args['writable'])}));"
    made = f"mprotect({call.page}, PAGE, {_protection(call.args['writable'])})"
    return _Form(made, (back,) if changes else ())


def _memread(call: _Call) -> _Form:
    # Without that the page is there from the second time on, and the kernel is not asked.
    return _Form(f"touch_once({call.page}, -1)", (f"madvise({call.page}, PAGE, MADV_DONTNEED);",))


def _memwrite(call: _Call) -> _Form:
    return _Form(f"touch_once({call.page}, {call.integer('data')})", (f"madvise({call.page}, PAGE, MADV_DONTNEED);",))


_CALLS: Mapping[str, Callable[[_Call], _Form | None]] = {
    "open": _open,
    "link": _link,
    "unlink": _unlink,
    "rename": _rename,
    "stat": _stat,
    "access": _access,
    "fstat": _fstat,
    "lseek": _lseek,
    "close": _close,
    "pipe": _pipe,
    "read": _read,
    "write": _write,
    "pread": _pread,
    "pwrite": _pwrite,
    "mmap": _mmap,
    "munmap": _munmap,
    "mprotect": _mprotect,
    "memread": _memread,
    "memwrite": _memwrite,
}
"""Per call, how it is repeated."""
