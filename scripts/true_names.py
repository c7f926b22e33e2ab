"""Are the names in findings on Linux true? Held against the kernel's source, by the lines of its debug information.

    .venv/bin/python scripts/true_names.py RUN --vmlinux VMLINUX --source TREE [--list]

RUN is a run of `commutant check ... --target linux:debug=VMLINUX`, so that each frame has its file and line, in
modules, too, whose files lie next to VMLINUX; TREE the source of that kernel. A pair is an object with its field and
one side's stack down to the access. It holds by one of:

- *line*: a line of the stack names the field: that of the access with what was inlined there; of a function that knows
  no more than the address of a lock or a list those of its callers, too, with what they call at last. What a line's
  macros stand for counts as its text, and so do the inline functions that it calls, and what its local variables were
  set to.
- *operand*: the accessing instruction adds the field's offset, in its object or in one that holds it, to a register, or
  the distance between a list's node in the object and the field; of a variable it names the address.
- *type*: a function that was inlined there takes a pointer to the field's type.
- *whole*: the line copies or sets all of the object.

None but the last holds where the operand lies at another field that the line names.

As a control each side is asked for a field of the same object that other findings name and its own do not.
"""

from __future__ import annotations

import argparse
import functools
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from commutant import _native
from commutant.mtrace import Access, Finding
from commutant.mtrace.finding import LINE_BYTES
from commutant.runs import load_run
from commutant.targets.linux.debug import module_files

_PLACE = re.compile(r" (?P<path>[^ :]+):(?P<line>\d+)$")
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINE = re.compile(r"^\s*#\s*define\s+(?P<name>[A-Za-z_]\w*)(?P<body>(?:\\\n|.)*)", re.MULTILINE)
_FUNCTION = re.compile(r"\+0x[0-9a-f]+( |$)")
_CALLERS = 4
"""This many functions are looked at: the accessing one, and those that called it."""
_STATEMENT_LINES = 4
"""So far before and after the line that debug information names a statement's ends are looked for."""
_ALIASES = {
    "d_iname": {"d_name", "dname"},
    "i_dentry": {"d_alias"},
    "d_subdirs": {"d_child"},
    "fd_array": {"fd", "fdt"},
    "open_fds_init": {"open_fds"},
    "full_fds_bits_init": {"full_fds_bits"},
    "dentry_hashtable": {"d_hash"},
    "in_lookup_hashtable": {"in_lookup_hash"},
    "inode_hashtable": {"i_hash"},
    "d_children": {"d_sib"},
    "slot": {"slots"},
    "pivot": {"pivots"},
    "free list link": {"freelist", "freeptr", "get_freepointer", "set_freepointer"},
}
"""Other names of the same memory in the source: pointers to it in the same object, links by which a list's head is
reached, and functions that give its address."""
_GENERIC = {"next", "prev", "lock", "count", "counter", "head", "func", "val", "rlock", "raw_lock", "first", "slots"}
"""Fields that everything has: they say something only if nothing else does."""
_MACRO_DEPTH = 3
_INLINE_DEPTH = 4
_DEFINED = re.compile(r"(?:[A-Za-z_][^;={]*?\b)?(?P<name>[A-Za-z_]\w*)\([^;]*$")


@dataclass(frozen=True, slots=True)
class Pair:
    """A name and the stack that it is held against."""

    object: str
    parts: tuple[str, ...]
    stack: tuple[str, ...]
    size_bytes: int = 0

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """The type, or variable's name, and the field of each part. Where the sides have different objects each part
        names its own."""
        if " | " not in self.object and " / " not in self.object:
            return tuple((_plain_name(self.object), part) for part in self.parts)
        split = (_plain_name(part).partition(".") for part in self.parts)
        return tuple((structure, field) for structure, _, field in split)

    @property
    def structures(self) -> frozenset[str]:
        """The types, or variables' names."""
        return frozenset(structure for structure, _ in self.fields)


def _plain_name(name: str) -> str:
    return name.removeprefix("per-CPU ").removeprefix("struct ")


class Source:
    """The source of a kernel, by lines."""

    def __init__(self, tree: Path) -> None:
        """Of this folder."""
        self._tree = tree
        self._lines = functools.cache(self._read)
        self.called = functools.cache(self._called)
        self.reached = functools.cache(self._reached)
        self.whole = functools.cache(self._list_whole)
        self._inline_of = functools.cache(self._list_inline)
        self.known = functools.cache(self._list_known)
        self.parameters = functools.cache(self._parameters)
        self.words = functools.cache(self._words)

    def _read(self, path: str) -> tuple[str, ...]:
        file = self._tree / path.removeprefix("./")
        return tuple(file.read_text(errors="replace").splitlines()) if file.is_file() else ()

    def statement(self, path: str, line: int) -> str:
        """The text of the statement at that line."""
        lines = self._lines(path)
        if line > len(lines):
            return ""
        first, last = line - 1, line - 1
        while first > max(0, line - _STATEMENT_LINES) and not lines[first - 1].rstrip().endswith((";", "{", "}", "*/")):
            first -= 1
        while last < min(len(lines), line + _STATEMENT_LINES) - 1 and not lines[last].rstrip().endswith(
            (";", "{", "}")
        ):
            last += 1
        return "\n".join(lines[first : last + 1])

    def _called(self, path: str, line: int) -> frozenset[str]:
        """The words of the functions that a statement calls, as far as the same file defines them."""
        words: set[str] = set()
        for name in set(re.findall(r"([A-Za-z_]\w*)\(", self.statement(path, line))):
            for at, text in enumerate(self._lines(path)):
                if re.match(rf"[A-Za-z_][^;]*\b{re.escape(name)}\([^;]*$", text):
                    words.update(_WORD.findall(self.body(path, at + 2)))
        return frozenset(words)

    def is_primitive(self, frame: str, structures: frozenset[str]) -> bool:
        """Whether a frame is of code for any type's lists, bits and words, in a file that does not know these."""
        place = _PLACE.search(frame)
        if place is None or not place["path"].startswith(_PRIMITIVES):
            return False
        return not structures & self.known(place["path"])

    def _list_known(self, path: str) -> frozenset[str]:
        return frozenset(word for line in self._lines(path) for word in _WORD.findall(line))

    def _list_whole(self, path: str, line: int) -> frozenset[str]:
        """The types of which a statement copies or sets all: those that its `memcpy` or `memset` takes the size of."""
        found: set[str] = set()
        lines = self._lines(path)
        statement = self.statement(path, line)
        for kind, name in re.findall(r"\bmem(?:cpy|set|move)\([^;]*sizeof\((?:struct (\w+)|\*(\w+))\)", statement):
            # What a pointer points to, its nearest declaration says.
            before = "\n".join(reversed(lines[max(0, line - 200) : line]))
            declared = re.search(rf"struct (\w+) \*{re.escape(name)}\b", before) if name else None
            found.add(kind or (declared[1] if declared else ""))
        return frozenset(found - {""})

    def _reached(self, path: str, line: int) -> frozenset[str]:
        """The words of a statement, of what its local variables were set to, and of the inline functions in either."""
        text = self.statement(path, line)
        body = self.body(path, line)
        local = set(re.findall(r"(?<![\w.>])[a-z_]\w*\b(?!\()", text))
        for name in local:
            text += "\n".join(re.findall(rf"(?<![\w.>]){re.escape(name)}\s*=(?!=)([^;]*);", body))
        words = set(_WORD.findall(text)) | self._pasted(text)
        fresh = text
        for _ in range(_INLINE_DEPTH):
            called = set(re.findall(r"\b([A-Za-z_]\w*)\(", fresh))
            fresh = "\n".join(self._inline(path, name) for name in sorted(called))
            words.update(_WORD.findall(fresh))
        return frozenset(words)

    def _inline(self, path: str, name: str) -> str:
        """The text of the inline function of that name that a file sees: its own, or one of a header."""
        folder = path.rpartition("/")[0]
        own = [path, *(str(file.relative_to(self._tree)) for file in (self._tree / folder).glob("*.h"))]
        return next((found for file in own if (found := self._inline_of(file).get(name))), self._headers.get(name, ""))

    def _list_inline(self, path: str) -> dict[str, str]:
        """The inline functions of a file with their text."""
        found: dict[str, str] = {}
        lines = self._lines(path)
        for at, line in enumerate(lines):
            match = _DEFINED.match(line)
            head = "".join(lines[max(0, at - 1) : at + 1])
            if match is None or not ("inline" in head or path.endswith(".h")) or line.rstrip().endswith(";"):
                continue
            first = next((behind for behind in range(at, min(at + 8, len(lines))) if lines[behind] == "{"), None)
            last = next((behind for behind in range(first or at, len(lines)) if lines[behind] == "}"), None)
            if first is not None and last is not None:
                found.setdefault(match["name"], "\n".join(lines[first:last]))
        return found

    @functools.cached_property
    def _headers(self) -> dict[str, str]:
        """The functions that headers define: all are inline."""
        found: dict[str, str] = {}
        for folder in ("include/linux", "include/asm-generic", "arch/x86/include"):
            for file in sorted((self._tree / folder).glob("**/*.h")):
                for name, text in self._list_inline(str(file.relative_to(self._tree))).items():
                    found[name] = found.get(name, "") + text
        return found

    def _pasted(self, text: str) -> set[str]:
        """The words that macros of a text make of their arguments with `##`."""
        found: set[str] = set()
        for name, given in re.findall(r"\b([A-Za-z_]\w*)\(([^()]*)\)", text):
            taken = re.match(r"\(([^()]*)\)", self.macros.get(name, ""))
            arguments = (
                dict(zip(_WORD.findall(taken[1]), map(str.strip, given.split(",")), strict=False)) if taken else {}
            )
            for start, parameter in re.findall(r"\b(\w+_)##(\w+)", self.macros.get(name, "")):
                found.add(start + arguments.get(parameter, ""))
        return found

    def body(self, path: str, line: int) -> str:
        """The text of the function around that line."""
        lines = self._lines(path)
        ends = ("}", "{")
        first = next((at for at in range(min(line, len(lines)) - 1, 0, -1) if lines[at].startswith(ends)), 0)
        last = next((at for at in range(line - 1, len(lines)) if lines[at].startswith("}")), len(lines))
        return "\n".join(lines[first:last])

    def _parameters(self, path: str, function: str) -> frozenset[str]:
        """The words of a function's parameters, as that file defines it."""
        lines = self._lines(path)
        for number, line in enumerate(lines):
            if re.match(rf"[A-Za-z_].*\b{re.escape(function)}\(|{re.escape(function)}\(", line):
                text = " ".join(lines[number : number + 4])
                if "{" in text or "{" in "".join(lines[number + 4 : number + 6]):
                    words = _WORD.findall(text.partition(function + "(")[2].partition(")")[0])
                    renamed = [self.macros.get(word, "").strip() for word in words]  # struct rcu_head is callback_head
                    return frozenset([*words, *(word for word in renamed if _WORD.fullmatch(word))])
        return frozenset()

    @functools.cached_property
    def macros(self) -> dict[str, str]:
        """What the macros of all headers, and of what is in the core's files, stand for."""
        found: dict[str, list[str]] = defaultdict(list)
        files = [*self._tree.glob("include/**/*.h"), *self._tree.glob("arch/x86/include/**/*.h")]
        for folder in ("fs", "mm", "kernel", "lib", "ipc"):
            files += [*self._tree.glob(f"{folder}/**/*.[ch]")]
        for file in files:
            for match in _DEFINE.finditer(file.read_text(errors="replace")):
                found[match["name"]].append(match["body"])
        return {name: "\n".join(bodies[:8]) for name, bodies in found.items()}

    def _words(self, path: str, line: int) -> frozenset[str]:
        """The words of a statement, with those of the macros in it."""
        words = set(_WORD.findall(self.statement(path, line)))
        fresh = words
        for _ in range(_MACRO_DEPTH):
            fresh = {word for name in fresh for word in _WORD.findall(self.macros.get(name, ""))} - words
            words |= fresh
        return frozenset(words)


def pairs(finding: Finding) -> Iterator[Pair]:
    """A finding's name, for each of its sides: what both touch, or one of two alternatives."""
    for access in (finding.first, finding.second):
        yield Pair(finding.object, _parts(finding, access), access.stack, access.size_bytes)


def _parts(finding: Finding, access: Access) -> tuple[str, ...]:
    if " / " in finding.field:
        return tuple(finding.field.split(" / "))
    if " / " in finding.object:
        return tuple(finding.object.split(" / "))
    if finding.sharing == "true":
        return (finding.field or finding.object,)
    if finding.field:
        # The side's own one is that in which its bytes lie; the picture tells, as far as it goes.
        names = [one.name for one in finding.fields if one.offset <= access.offset < one.offset + one.size_bytes]
        both = tuple(finding.field.split(" | "))
        own = tuple(part for part in both if any(f".{part}" in f".{name}" for name in names))
        return own or both
    return tuple(finding.object.split(" | "))


def _line(pair: Pair, source: Source) -> bool:
    """Whether a line of the stack names the field of a pair."""
    wanted = [want for part in pair.parts for want in _alternatives(part)]
    functions = 0
    for number, frame in enumerate(pair.stack):
        place = _PLACE.search(frame)
        if place is not None:
            at = place["path"], int(place["line"])
            if any(want & source.words(*at) for want in wanted):
                return True
            if functions > 0 and any(want & source.called(*at) for want in wanted):
                return True  # it was called by a function that left no frame, since the call was its last
            inner = functions == 0 or all(source.is_primitive(one, pair.structures) for one in pair.stack[:number])
            if inner and any(want & source.reached(*at) for want in wanted):
                return True
        if _FUNCTION.search(frame):
            functions += 1
            if functions == _CALLERS or not (functions > 1 or source.is_primitive(frame, pair.structures)):
                return False
    return False


def _alternatives(part: str) -> list[set[str]]:
    """The words of which one is asked for; for fields that were touched together those of the first and of the last."""
    return [_words(end) for end in part.split("..")]


_PRIMITIVES = ("include/", "lib/", "arch/x86/", "kernel/rcu/", "kernel/locking/", "mm/slub.c", "mm/slab")


class Kernel:
    """A kernel's code, symbols and types, and its source: what names are held against."""

    def __init__(self, vmlinux: Path, source: Source, modules: Iterable[str] = ()) -> None:
        """From a `vmlinux` with debug information, and the files of these modules next to it."""
        self.source = source
        self._members = functools.cache(self._list_members)
        self._places = functools.cache(self._list_places)
        self._code = functools.cache(self._read_code)
        self._kinds = functools.cache(self._list_kinds)
        files = module_files(vmlinux)
        self._modules = {name: files[name] for name in sorted(modules) if name in files}
        types = [_section(file, ".BTF") for file in self._modules.values()]
        self._types = _native.KernelTypes(_section(vmlinux, ".BTF"), types)
        self._of_module = functools.cache(self._read_function)
        self._vmlinux = vmlinux
        self._symbols: dict[str, list[int]] = defaultdict(list)
        for line in _output("nm", vmlinux).splitlines():
            fields = line.split()
            if len(fields) == 3:
                self._symbols[fields[2]].append(int(fields[0], 16))

    def _list_members(self, structure: str) -> dict[str, tuple[int, int]]:
        """The members of a structure by path, with the structures embedded in it: offset and size in bytes."""
        found = self._types.structure(structure)
        members: dict[str, tuple[int, int]] = {}
        for path, at, size, _, _ in found[1] if found else ():
            start, end = at // 8, at // 8 + max(1, size // 8)
            members[path] = (start, end - start)
            while "." in path:
                path = path.rpartition(".")[0]
                first, length = members.get(path, (start, 0))
                members[path] = (min(first, start), max(first + length, end) - min(first, start))
        return members

    def _list_places(self, structure: str, path: str, file: str) -> tuple[tuple[int, int], ...]:
        """Where a field may lie as seen from a pointer: to its structure, to one within that it lies in, or to one that
        holds it, if the file that has the pointer knows that, or to a large one in it."""
        members = self._members(structure)
        plain = path.replace("[]", "")
        if plain not in members:
            return ()
        start, size = members[plain]
        known = self.source.known(file)
        origins = [0]
        for part, (at, length) in members.items():
            if plain.startswith(part + ".") or length >= _LARGE_BYTES:
                origins.append(at)
        for holder in known & set(self._types.embedders(structure)):
            for outer, (at, length) in self._members(holder).items():
                if length == self._size(structure) and self._is_a(holder, outer, structure):
                    origins.append(-at)
        return tuple((start - origin, size) for origin in origins)

    def _from_nodes(self, structure: str, path: str, file: str) -> tuple[tuple[int, int], ...]:
        """Where a field may lie as seen from a pointer to a list's node in its structure that the file knows."""
        members = self._members(structure)
        plain = path.replace("[]", "")
        if plain not in members:
            return ()
        start, size = members[plain]
        known = self.source.known(file)
        nodes = (
            at
            for node, (at, length) in members.items()
            if length in (8, 16, 24) and _NODE.search(node) and node.rpartition(".")[2] in known
        )
        return tuple((start - at, size) for at in nodes)

    def _size(self, structure: str) -> int:
        found = self._types.structure(structure)
        return found[0] if found else 0

    def _is_a(self, holder: str, path: str, structure: str) -> bool:
        inner = set(self._members(structure))
        return all(f"{path}.{name}" in self._members(holder) for name in list(inner)[:3])

    def _read_code(self, frame: str) -> tuple[bytes, int] | None:
        """The bytes of the instruction at a frame's place, and its address; in a module as though that lay at 0."""
        match = _SITE.match(frame)
        if match is None:
            return None
        if match["module"]:
            return self._of_module(match["module"], match["symbol"]).get(int(match["offset"], 16))
        starts = self._symbols.get(match["symbol"], ())
        if len(starts) != 1:
            return None
        address = starts[0] + int(match["offset"], 16)
        limits = (f"--start-address={address:#x}", f"--stop-address={address + 15:#x}")
        listed = _instructions(_output("objdump", "-d", "-w", *limits, self._vmlinux))
        return next(((code, at) for at, code in listed if at == address), None)

    def _read_function(self, module: str, symbol: str) -> dict[int, tuple[bytes, int]]:
        """The instructions of a module's function by their offsets in it; none of one that has a namesake."""
        if module not in self._modules:
            return {}
        text = _output("objdump", "-d", "-w", f"--disassemble={symbol}", self._modules[module])
        if text.count(f"<{symbol}>:") != 1:
            return {}
        listed = list(_instructions(text))
        return {at - listed[0][0]: (code, at) for at, code in listed}

    def operand(self, pair: Pair) -> bool:
        """Whether the accessing instruction's operand lies where the field does."""
        found = self._operand(pair)
        if found is None:
            return False
        value, address = found
        if address is not None:
            return any(address - start in range(4096) for start in self._symbols.get(pair.object.split(".")[0], ()))
        place = _PLACE.search(pair.stack[0])
        file = "" if place is None else place["path"]
        for structure, part in pair.fields:
            for start, size in (*self._places(structure, part, file), *self._from_nodes(structure, part, file)):
                if value != 0 and start <= value < start + size:
                    return True
            if self._reaches(pair, value, structure, part):
                return True
            if value == 0 and _NODE.search(part) and self._walks(pair, part):
                return True
        return False

    def _operand(self, pair: Pair) -> tuple[int, int | None] | None:
        """What the operand of the accessing instruction adds to its registers; and the address, if it has one."""
        site = next((frame for frame in pair.stack if _FUNCTION.search(frame)), None)
        code = None if site is None else self._code(site)
        found = None if code is None else displacement(code[0])
        if code is None or found is None:
            return None
        value, from_next = found
        return value, (code[1] + len(code[0]) + value) % (1 << 64) if from_next else None

    def _width(self, pair: Pair) -> int:
        """How many bytes the accessing instruction has at least: 16 where it is one of those that take two words."""
        site = next((frame for frame in pair.stack if _FUNCTION.search(frame)), None)
        code = None if site is None else self._code(site)
        return 16 if code is not None and _TWO_WORDS.match(code[0]) else 1

    def contradicts(self, pair: Pair) -> bool:
        """Whether the operand lies at another field of the object, one that the accessing line names."""
        found = self._operand(pair)
        if found is None or found[0] == 0 or found[1] is not None or len(pair.structures) != 1:
            return False
        value = found[0]
        place = _PLACE.search(pair.stack[0])
        file = "" if place is None else place["path"]
        own = [span for structure, part in pair.fields for span in self._places(structure, part, file)]
        end = value + max(self._width(pair), pair.size_bytes)
        if not own or any(start < end and value < start + size for start, size in own):
            return False
        members = self._members(*pair.structures)
        words: set[str] = set()
        for frame in pair.stack:
            place = _PLACE.search(frame)
            if place is not None:
                words |= self.source.words(place["path"], int(place["line"]))
            if _FUNCTION.search(frame):
                break
        return any(
            size <= LINE_BYTES and start <= value < start + size and (_words(path) - _GENERIC) & words
            for path, (start, size) in members.items()
        )

    def _reaches(self, pair: Pair, value: int, structure: str, part: str) -> bool:
        """Whether the access begins at a field that its line names, and is so long that it has this one, too."""
        place = _PLACE.search(pair.stack[0])
        start, _ = self._members(structure).get(part.replace("[]", ""), (0, 0))
        if place is None or not value < start < value + pair.size_bytes:
            return False
        words = self.source.words(place["path"], int(place["line"]))
        return any(at == value and _words(path) & words for path, (at, _) in self._members(structure).items())

    def whole(self, pair: Pair) -> bool:
        """Whether the accessing statement copies or sets all of the object, or of what holds it."""
        for frame in pair.stack:
            place = _PLACE.search(frame)
            if place is not None:
                whole = self.source.whole(place["path"], int(place["line"]))
                holders = (self._types.embedders(structure) for structure in pair.structures)
                if whole & pair.structures.union(*holders):
                    return True
            if _FUNCTION.search(frame) and not self.source.is_primitive(frame, pair.structures):
                return False
        return False

    def _walks(self, pair: Pair, part: str) -> bool:
        """Whether the accessing function names the list whose link is loaded: a loop over it."""
        place = _PLACE.search(pair.stack[0])
        return place is not None and bool(
            _words(part) & set(_WORD.findall(self.source.body(place["path"], int(place["line"]))))
        )

    def type(self, pair: Pair) -> bool:
        """Whether the accessing function, or one that was inlined there, takes a pointer to the field's type."""
        types = {kind for structure, part in pair.fields for kind in self._kinds_of(structure, part)}
        for frame in pair.stack:
            place = _PLACE.search(frame)
            name = frame.split(" ")[0].partition("+")[0].partition(".")[0]
            if place is not None and types & self.source.parameters(place["path"], name):
                return True
            if _FUNCTION.search(frame):
                return False
        return False

    def _kinds_of(self, structure: str, path: str) -> set[str]:
        """The names of a field's type, and of those around it."""
        found: set[str] = set()
        inside = {structure}
        for name in path.replace("[]", "").split("."):
            inside = {kind for one in inside for kind in self._kinds(one).get(name, ())}
            found |= inside
        return found

    def _list_kinds(self, structure: str) -> dict[str, set[str]]:
        """The types of a structure's members, by name; words that say nothing left out."""
        kinds: dict[str, set[str]] = defaultdict(set)
        text = self._described(structure)
        if (named := re.match(rf"typedef struct (\w+) {re.escape(structure)};", text)) is not None:
            text = self._described(named[1])
        for line in text.splitlines():
            match = _MEMBER.match(line)
            if match and "*" not in match["type"]:
                kinds[match["name"]].update(set(_WORD.findall(match["type"])) - _PLAIN_TYPES)
        return kinds

    def _described(self, structure: str) -> str:
        """A structure as C has it."""
        text = _output("pahole", "-F", "btf", "-C", structure, self._vmlinux)
        for file in self._modules.values():
            text = text or _output("pahole", "-F", "btf", "--btf_base", self._vmlinux, "-C", structure, file)
        return text


_SITE = re.compile(r"(?P<symbol>[^+ ]+)\+0x(?P<offset>[0-9a-f]+)(?: \[(?P<module>\w+)\])?")
_TWO_WORDS = re.compile(rb"[\x66\xf0\xf2\xf3]*[\x40-\x4f]?\x0f(\xc7|\x10|\x11|\x28|\x29|\x6f|\x7f)", re.DOTALL)
"""cmpxchg16b, and moves of vectors."""
_LARGE_BYTES = 256
"""A structure of this size has pointers to it that lead to the one around it: that of an inode."""
_NODE = re.compile(r"(list|child|sibling|hash|node|lru|rb|rcu|alias|dentry|subdirs|link|chain|head)s?$")
_MEMBER = re.compile(r"\s+(?P<type>[A-Za-z_][\w \*]*?)\s+(?P<name>\w+)(\[[^\]]*\])*;")
_PLAIN_TYPES = {
    "struct",
    "union",
    "unsigned",
    "signed",
    "int",
    "long",
    "short",
    "char",
    "const",
    "volatile",
    "u32",
    "u64",
}


def displacement(code: bytes) -> tuple[int, bool] | None:
    """What an instruction's memory operand adds to its registers, and whether the next instruction's address is one of
    them; None if it has no operand of the kind that a ModRM byte encodes (Intel's manual, volume 2, 2.1)."""
    index = 0
    while index < len(code) and code[index] in b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3":
        index += 1
    if index < len(code) and code[index] & 0xF0 == 0x40:
        index += 1
    if code[index : index + 1] == b"\x0f":
        index += 2 if code[index + 1 : index + 2] in (b"\x38", b"\x3a") else 1
    elif code[index : index + 1] and code[index] & 0xF7 not in _WITH_OPERAND and code[index] >> 6 != 0:
        return None
    modrm, rest = code[index + 1] if index + 1 < len(code) else 0xC0, code[index + 2 :]
    mode, low = modrm >> 6, modrm & 7
    if mode == 3:
        return None
    if low == 4:
        base, rest = rest[:1], rest[1:]
        wide = mode == 0 and bool(base) and base[0] & 7 == 5
    else:
        wide = mode == 0 and low == 5
    size = 4 if wide or mode == 2 else mode
    return int.from_bytes(rest[:size], "little", signed=True), wide and low == 5


_WITH_OPERAND = {
    *(0x63, 0x62, 0x80, 0x81, 0x83, 0x84, 0x85, 0x86, 0x87, 0xC0, 0xC1, 0xC6, 0xC7, 0xD0, 0xD1, 0xD2, 0xD3),
    *(0xF6, 0xF7, 0x69 & 0xF7, 0x6B & 0xF7, 0x89 & 0xF7, 0x8B & 0xF7, 0xFF & 0xF7, 0xFE & 0xF7),
}


def _instructions(listing: str) -> Iterator[tuple[int, bytes]]:
    """The instructions in what objdump says: address and bytes."""
    for line in listing.splitlines():
        fields = line.split("\t")
        if len(fields) > 1 and re.fullmatch(r" *[0-9a-f]+:", fields[0]):
            yield int(fields[0].strip(" :"), 16), bytes.fromhex(fields[1].replace(" ", ""))


def _section(file: Path, name: str) -> bytes:
    listed = re.search(rf" {re.escape(name)} +\w+ +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", _output("readelf", "-SW", file))
    if listed is None:
        raise SystemExit(f"{file}: no section {name}; expected a vmlinux with types")
    with file.open("rb") as opened:
        opened.seek(int(listed[1], 16))
        return opened.read(int(listed[2], 16))


def _output(*command: str | Path) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout


def holds(pair: Pair, kernel: Kernel) -> bool:
    """Whether the name of a pair is true by one of the rules."""
    if kernel.whole(pair):
        return True
    return not kernel.contradicts(pair) and (_line(pair, kernel.source) or kernel.operand(pair) or kernel.type(pair))


def _words(part: str) -> set[str]:
    if part in _ALIASES and " " in part:
        return _ALIASES[part]
    of_type, _, field = part.partition("struct ")[2].partition(".")
    words = set(_WORD.findall(field if of_type and field else _plain_name(part)))
    words = words - _GENERIC or words
    return words.union(*(_ALIASES.get(word, ()) for word in words))


def main() -> int:
    """Prints the figures; 1 if fewer than 99 % hold, or a finding has no side that does."""
    parser = argparse.ArgumentParser(description="Holds the names of findings on Linux against the kernel's source.")
    parser.add_argument("run", type=Path)
    parser.add_argument("--vmlinux", type=Path, required=True, help="with debug information, of the kernel of the run")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--list", action="store_true", help="print the pairs that do not hold")
    asked = parser.parse_args()
    figures = of_run(asked.run, asked.vmlinux, asked.source)
    print(figures.text(asked.list))
    return 0 if figures.are_true else 1


def of_run(run: Path, vmlinux: Path, source: Path) -> Figures:
    """The figures of a run directory."""
    findings = list(load_run(run).findings())
    return judge(findings, Kernel(vmlinux, Source(source), modules_of(findings)))


def modules_of(findings: Iterable[Finding]) -> set[str]:
    """The modules that the stacks of findings go through."""
    stacks = (frame for finding in findings for side in (finding.first, finding.second) for frame in side.stack)
    return {match["module"] for frame in stacks if (match := _SITE.match(frame)) and match["module"]}


@dataclass(frozen=True, slots=True)
class Figures:
    """How many pairs hold, which do not, how many findings have no side that does, and what the control said."""

    pairs: int
    wrong: tuple[Pair, ...]
    findings: int
    neither: tuple[Finding, ...]
    control: int
    refused: int

    @property
    def are_true(self) -> bool:
        """Whether the names are as true as they are meant to be."""
        return len(self.wrong) * 100 <= self.pairs and not self.neither

    def text(self, listing: bool) -> str:
        """The figures in words."""
        right = self.pairs - len(self.wrong)
        lines = [
            f"pairs: {self.pairs}, true: {right} ({right / max(1, self.pairs):.1%})",
            f"findings: {self.findings}, named by neither side: {len(self.neither)}",
            f"control: {self.control} other names, refused: {self.refused} ({self.refused / max(1, self.control):.1%})",
        ]
        if listing:
            for pair in self.wrong:
                lines.append(f"\n{pair.object} {' | '.join(pair.parts)}")
                lines.extend(f"    {frame}" for frame in pair.stack[:8])
        return "\n".join(lines)


def judge(findings: list[Finding], kernel: Kernel) -> Figures:
    """Holds the findings' names against the source; those of memory without fields, as page tables, are left out."""
    named = [finding for finding in findings if finding.field or not _is_plain(finding)]
    told: dict[Pair, bool] = {}
    neither = []
    for finding in named:
        sides = list(pairs(finding))
        for pair in sides:
            told[pair] = told[pair] if pair in told else holds(pair, kernel)
        if not any(told[pair] for pair in sides):
            neither.append(finding)
    fields: dict[str, set[str]] = defaultdict(set)
    for pair in told:
        fields[pair.object].update(pair.parts)
    drawn = random.Random(1)
    control: Counter[bool] = Counter()
    for pair in told:
        own = {word for part in pair.parts for word in _words(part)}
        others = sorted(part for part in fields[pair.object] if not _words(part) & own)
        if others:
            control[holds(Pair(pair.object, (drawn.choice(others),), pair.stack, pair.size_bytes), kernel)] += 1
    wrong = tuple(pair for pair, true in told.items() if not true)
    return Figures(len(told), wrong, len(named), tuple(neither), control.total(), control[False])


_PLAIN = ("page table", "page cache page", "user page", "anonymous page", "kernel stack", "CPU entry area")


def _is_plain(finding: Finding) -> bool:
    return any(part in _PLAIN for part in finding.object.split(" | "))


if __name__ == "__main__":
    sys.exit(main())
