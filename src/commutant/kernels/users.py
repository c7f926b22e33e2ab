"""Which files of a kernel a patch of headers concerns: those that use what it changes.

A header such as `fs.h` is included everywhere, so a changed one has make compile everything again, for the sake of a
handful of files. What a patch changes is known by name: functions and macros whose text differs, and members of types
that are at another place, as a probe compiled before and after tells. Files are compiled again that mention one of
these names, or a function or macro of a header that does, and so on. A name is compared as text, so a file may be
compiled without need, but none is missed that reaches a member by its name. Where names do not tell (a condition of the
preprocessor, a type that grows within others), everything is compiled.

The other objects' debug information still has the old types. So the types of such a kernel are the base's, with those
of the compiled files put over them (`overlay`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from commutant.kernels.headers import Kind, changed, definitions, members_in, names_in
from commutant.kernels.layouts import Layout, layout_of, moved_members, read_types
from commutant.kernels.make import BuildFailed, make
from commutant.kernels.patches import Patch
from commutant.support import RunError, no_progress, plural

_PROBE = "commutant_probe"
_SOURCE_LINE = re.compile(r"^source_\S+ := (\S+)", re.MULTILINE)
_NAMED = 6
_NAMES_LIMIT = 3000


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a patched tree is compiled: everything that make finds older than what it is made from, or, where headers
    changed, the `users` (sources, from the tree's root) of what they define. `types` are those whose text changed."""

    users: tuple[str, ...] | None
    text: str
    types: tuple[str, ...] = ()

    @classmethod
    def everything(cls, why: str = "all that depends on a changed file is compiled") -> Scope:
        """Leaves it to make."""
        return cls(None, why)

    def to_json(self) -> bytes:
        """As `from_json` reads it."""
        return json.dumps({"users": self.users, "text": self.text, "types": self.types}).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Scope:
        """The scope that was decided on when the tree was made."""
        facts = json.loads(data)
        users = facts["users"]
        return cls(None if users is None else tuple(users), str(facts["text"]), tuple(facts["types"]))


def limit_to_users(base: Path, tree: Path, patches: Sequence[Patch]) -> Scope:
    """Decides what of a patched tree is to be compiled, and sets the times of its files so that make does that."""
    files = dict.fromkeys(file for patch in patches for file in patch.files)
    headers = [file for file in files if file.endswith(".h") and (base / file).is_file() and (tree / file).is_file()]
    if not headers:
        return Scope.everything("only what the patch changes is compiled")
    objects = _Objects(base)
    parts = [one for file in headers for one in changed(_read(base / file), _read(tree / file))]
    if any(one.kind in (Kind.DIRECTIVE, Kind.EVENT) for one in parts):
        return Scope.everything("a header changes what the preprocessor does; all files that include it are compiled")
    names = {one.name for one in parts if one.kind is Kind.CODE and one.name}
    members: set[str] = set()
    types = sorted({one.name for one in parts if one.kind is Kind.TYPE})
    if "" in types:
        return Scope.everything("a header changes a type without a name; all files that include it are compiled")
    for header in headers:
        _same_times(base / header, tree / header)
    said = []
    if types:
        layouts = _probe(base, tree, headers, types)
        if layouts is None:
            for header in headers:
                os.utime(tree / header)
            return Scope.everything("the headers do not compile alone; all files that include them are compiled")
        whole = read_types((base / "build" / "vmlinux").read_bytes())
        for name, (old, new) in layouts.items():
            members |= moved_members(old, new)
            if old.size_bytes != new.size_bytes:
                said.append(f"struct {name} has {new.size_bytes:,} bytes in place of {old.size_bytes:,}")
                around = whole.embedders(name)
                if around:
                    for header in headers:
                        os.utime(tree / header)
                    text = (
                        f"{said[-1]}, and lies in {', '.join(around[:_NAMED])}: all files that include it are compiled"
                    )
                    return Scope(None, text, tuple(types))
                names.add(name)
    users = objects.users(headers, names, members) if names or members else []
    if users is None:
        for header in headers:
            os.utime(tree / header)
        return Scope(None, "nearly all files use what the headers change: all of them are compiled", tuple(types))
    names |= members
    for source in users:
        _own(tree / source)
        os.utime(tree / source)
    shown = sorted(names, key=lambda name: (len(name), name))[:_NAMED]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    said.append(
        f"{plural(len(users), 'file')} of {len(objects.sources):,} use what headers change ({', '.join(shown)}{more})"
    )
    return Scope(tuple(users), "; ".join(said), tuple(types))


@dataclass
class _Objects:
    """The sources of a built tree, and what each includes, from what make noted next to the objects."""

    tree: Path
    sources: dict[str, list[str]] = field(default_factory=dict)
    _texts: dict[str, _Wanted] = field(default_factory=dict)
    _parsed: dict[str, list[tuple[Kind, str, _Wanted]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        build = self.tree / "build"
        for path in build.rglob(".*.cmd"):
            text = path.read_text(errors="replace")
            found = _SOURCE_LINE.search(text)
            if found and found[1].startswith("../") and "/tools/" not in str(path):
                includes = re.findall(r"^  \.\./(\S+)", text.partition("deps_")[2], re.MULTILINE)
                self.sources[found[1].removeprefix("../")] = includes

    def users(self, headers: Collection[str], names: set[str], members: set[str]) -> list[str] | None:
        """The sources that include one of the headers, and mention one of the names, reach one of the members, or
        mention what is defined by that; None if it is nearly all."""
        wanted = set(headers)
        concerned = {source: files for source, files in self.sources.items() if wanted.intersection(files)}
        included = {file for files in concerned.values() for file in files if file.endswith(".h")}
        names, events = set(names), set[str]()
        newest = _Wanted(frozenset(names), frozenset(members))
        while newest:
            more: set[str] = set()
            for file in sorted(included):
                if not newest.lie_in(self._mentioned(file)):
                    continue
                for kind, name, mentioned in self._definitions(file):
                    if kind is Kind.CODE and name not in names and newest.lie_in(mentioned):
                        more.add(name)
                    elif kind is Kind.EVENT and newest.lie_in(mentioned):
                        events.add(file)
            newest = _Wanted(frozenset(more - names - {""}), frozenset())
            names |= newest.names
            if len(names) > _NAMES_LIMIT:
                return None
        wanted_all = _Wanted(frozenset(names), frozenset(members))
        return sorted(
            source
            for source, files in concerned.items()
            if any(wanted_all.lie_in(self._mentioned(file)) for file in (source, *files) if not file.endswith(".h"))
            or (events.intersection(files) and "CREATE_TRACE_POINTS" in self._mentioned(source).names)
        )

    def _mentioned(self, file: str) -> _Wanted:
        known = self._texts.get(file)
        if known is None:
            known = self._texts[file] = _Wanted.in_text(_read(self.tree / file))
        return known

    def _definitions(self, file: str) -> list[tuple[Kind, str, _Wanted]]:
        if file not in self._parsed:
            found = definitions(_read(self.tree / file))
            self._parsed[file] = [(one.kind, one.name, _Wanted.in_text(one.text)) for one in found]
        return self._parsed[file]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Names, and names of members: those of a text, or those that are looked for."""

    names: frozenset[str]
    members: frozenset[str]

    @classmethod
    def in_text(cls, text: str) -> _Wanted:
        return cls(frozenset(names_in(text)), frozenset(members_in(text)))

    def __bool__(self) -> bool:
        return bool(self.names or self.members)

    def lie_in(self, text: _Wanted) -> bool:
        return not (self.names.isdisjoint(text.names) and self.members.isdisjoint(text.members))


def _probe(
    base: Path, tree: Path, headers: Sequence[str], types: Sequence[str]
) -> Mapping[str, tuple[Layout, Layout]] | None:
    """The layouts of types in the base and in the patched tree; None if a file that has them cannot be compiled."""
    folder = Path(headers[0]).parent if not headers[0].startswith(("include/", "arch/x86/include/")) else Path("kernel")
    lines = []
    for header in headers:
        inside = re.sub(r"^(?:include|arch/x86/include)/(?:uapi/)?", "", header)
        lines.append(f"#include <{inside}>" if inside != header else f'#include "{os.path.relpath(header, folder)}"')
    lines += [f"extern struct {name} {_PROBE}_{name}; struct {name} {_PROBE}_{name};" for name in types]
    target = f"{folder}/{_PROBE}.o"
    found: dict[str, list[Layout]] = {name: [] for name in types}
    # The base's headers are looked at in the patched tree too: what is compiled there is not the base's business.
    kept = {header: (tree / header).with_name(f"{Path(header).name}.patched") for header in headers}
    source = tree / f"{folder}/{_PROBE}.c"
    source.write_text("\n".join(lines) + "\n")
    try:
        for version in ("old", "new"):
            for header, aside in kept.items():
                if version == "old":
                    (tree / header).rename(aside)
                    shutil.copy2(base / header, tree / header)
                else:
                    aside.replace(tree / header)
            (tree / "build" / target).unlink(missing_ok=True)
            make(tree, [target], 1, tree.parent / "probe.log", no_progress)
            types_found = read_types(encode(tree / "build" / target, tree.parent / "probe.btf"))
            for name in types:
                layout = layout_of(types_found, name)
                if layout is None:
                    return None
                found[name].append(layout)
    except BuildFailed:
        return None
    finally:
        for header, aside in kept.items():
            if aside.exists():
                aside.replace(tree / header)
        source.unlink(missing_ok=True)
        for left in (tree / "build" / folder).glob(f"*{_PROBE}*"):
            left.unlink()
    return {name: (old, new) for name, (old, new) in found.items()}


def encode(built: Path, out: Path, base: Path | None = None) -> bytes:
    """The types of an object file as BTF; with `base`, those that its BTF does not have. Raises RunError."""
    command = ["pahole", "-J", "--btf_gen_floats", f"--btf_encode_detached={out}"]
    if base is not None:
        command.append(f"--btf_base={base}")
    answer = subprocess.run([*command, str(built)], capture_output=True, text=True, check=False)
    if answer.returncode != 0 or not out.is_file():
        raise RunError(f"pahole: {' '.join((answer.stderr or answer.stdout).split())[-200:] or 'no types written'}")
    data = out.read_bytes()
    out.unlink()
    return data


def _read(path: Path) -> str:
    return path.read_text(errors="replace")


def _same_times(of: Path, to: Path) -> None:
    times = of.stat()
    os.utime(to, ns=(times.st_atime_ns, times.st_mtime_ns))


def _own(path: Path) -> None:
    """Makes a file the tree's own, which it may share with the base."""
    own = path.with_name(f"{path.name}.own")
    shutil.copy2(path, own)
    own.replace(path)
