"""Which files of a crate need which, read off their `use` declarations and paths; circles among them.

    python scripts/crate_files.py            every crate: its files with what they need, circles last
    python scripts/crate_files.py radix      one crate

A file needs another if it names something that is defined there: `crate::node::Slot`, `super::Slot`, or `Slot` out of
the crate's root if the root only hands it on (`pub use`). Handing on is no need, nor is `mod`; tests are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from steps import ROOT

Needs = Mapping[str, frozenset[str]]
"""What each file of a crate needs; a file is named by its module, the root `lib` or `main`."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TEXT = re.compile(r'b?r?"(?:[^"\\]|\\.)*"')
_TESTS = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{.*", re.DOTALL)
_USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:])((?:crate|super|self)(?:::\w+)+)")


def crate_names() -> list[str]:
    """All crates, by the name of their folder."""
    return sorted(manifest.parent.name for manifest in ROOT.glob("crates/*/*/Cargo.toml"))


def files(crate: str) -> dict[str, Path]:
    """The crate's source files by module (`a::b`); roots under their own names."""
    (source,) = ROOT.glob(f"crates/*/{crate}/src")
    found = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        found["::".join(parts[:-1] if parts[-1] == "mod" else parts)] = file
    return found


class _Source:
    """A file's text without comments and tests, its imports, and what it hands on."""

    def __init__(self, text: str) -> None:
        text = _TESTS.sub("", _TEXT.sub('""', _COMMENT.sub("", text)))
        self.imported: dict[str, list[str]] = {}
        self.handed_on: dict[str, list[str]] = {}
        self.globs: list[list[str]] = []
        for public, tree in _USE.findall(text):
            for path in _expanded(" ".join(tree.split())):
                path, _, alias = path.partition(" as ")
                parts = path.strip().split("::")
                if parts[-1] == "self":
                    parts.pop()
                if parts[-1] == "*":
                    self.globs.append(parts[:-1])
                else:
                    (self.handed_on if public else self.imported)[alias.strip() or parts[-1]] = parts
        self.paths = [match.split("::") for match in _PATH.findall(_USE.sub("", text))]


def _expanded(tree: str) -> Iterator[str]:
    """The paths of a `use` tree, one by one."""
    opening = tree.find("{")
    if opening < 0:
        yield tree.strip()
        return
    depth, start = 0, opening + 1
    for place in range(opening, len(tree)):
        if tree[place] == "{":
            depth += 1
        elif tree[place] == "}":
            depth -= 1
        if (tree[place] == "," and depth == 1) or depth == 0:
            if part := tree[start:place].strip():
                yield from _expanded(tree[:opening] + part)
            start = place + 1
        if depth == 0:
            return


def needs(crate: str) -> Needs:
    """What each file of a crate needs of the others."""
    modules = files(crate)
    sources = {name: _Source(file.read_text(encoding="utf-8")) for name, file in modules.items()}
    roots = [name for name in ("lib", "main") if name in modules]

    def resolved(parts: list[str], module: str, root: str, depth: int = 0) -> str | None:
        """The file that defines what a path within a module leads to; None outside of the crate."""
        here = [] if module in roots else module.split("::")
        head, rest = parts[0], list(parts)
        if head == "crate":
            here, rest = [], rest[1:]
        elif head in ("super", "self"):
            while rest and rest[0] in ("super", "self"):
                here = here[:-1] if rest.pop(0) == "super" else here
        elif "::".join([*here, head]) not in modules:
            return None
        while rest and "::".join([*here, rest[0]]) in modules and "::".join([*here, rest[0]]) not in roots:
            here = [*here, rest.pop(0)]
        found = "::".join(here) or root
        if found not in sources:
            return None
        if rest and depth < 8:
            source = sources[found]
            if rest[0] in source.handed_on:
                return resolved(source.handed_on[rest[0]], found, root, depth + 1)
        return found

    result = {}
    for name, source in sources.items():
        root = name if name in roots else roots[0] if len(roots) == 1 else "lib"
        named = [*source.imported.values(), *source.globs, *source.paths]
        found = {resolved(parts, name, root) for parts in named}
        result[name] = frozenset(other for other in found if other is not None and other != name)
    return result


def circles(arrows: Needs) -> list[list[str]]:
    """Files that need one another, each circle sorted (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(arrows[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            part: list[str] = []
            while not part or part[-1] != name:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for name in sorted(arrows):
        if name not in index:
            visit(name)
    return found


def main(arguments: list[str]) -> int:
    """Prints the graph of the named crates, or of all; returns 1 if there is a circle."""
    known = crate_names()
    if unknown := set(arguments) - set(known):
        print(f"unknown crates {', '.join(sorted(unknown))}: expected some of {', '.join(known)}", file=sys.stderr)
        return 2
    found = 0
    for crate in arguments or known:
        arrows = needs(crate)
        print(crate)
        for name in sorted(arrows):
            print(f"  {name:24} {'─► ' if arrows[name] else ''}{' '.join(sorted(arrows[name]))}")
        for circle in circles(arrows):
            print(f"  a circle: {', '.join(circle)}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
