"""Draws the architecture from the sources: the rooms of the Python package and the crates, each with its arrows.

    python scripts/rooms.py            print the drawing
    python scripts/rooms.py --write    put it into docs/ARCHITECTURE.md, between its two marks

A room is a package or module directly below `commutant`; an arrow leads to a room that it imports, at run time or for
types. Rooms stand above what they need: `floors` refuses a loop. Arrows that follow from others are left out of the
drawing, as in a Hasse diagram; `imports` has them all.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from steps import ROOT

PACKAGE = ROOT / "src" / "commutant"
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
BEGIN = "<!-- drawn by scripts/rooms.py: begin -->\n"
END = "<!-- drawn by scripts/rooms.py: end -->"
WIDTH = 118

Arrows = Mapping[str, frozenset[str]]
"""What each room, or crate, needs directly."""


@dataclass(frozen=True, slots=True)
class Import:
    """An import of one name from another module of the package: who, where, from which module, and the name."""

    importer: str
    line: int
    module: str
    name: str


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name below `commutant` (the package's own face is the empty name)."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def room(module: str) -> str:
    """The room that a module stands in."""
    return module.partition(".")[0]


def imports(with_types: bool = True) -> Iterator[Import]:
    """All imports between modules of the package, those inside of functions and for types (unless not) included."""
    known = modules()
    for importer, file in known.items():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        guarded = (
            node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        )
        for_types = set() if with_types else {id(inner) for node in guarded for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if id(node) in for_types:
                continue
            if isinstance(node, ast.Import):
                names = [(alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [(node.module, alias.name) for alias in node.names]
            else:
                continue
            for module, name in names:
                if module == "commutant" or module.startswith("commutant."):
                    inner = module.removeprefix("commutant").removeprefix(".")
                    if not inner and name in known:
                        inner, name = name, ""
                    yield Import(importer, node.lineno, inner, name)


def room_arrows() -> Arrows:
    """What each room imports. The package's own face, and the native module, are no rooms."""
    rooms = {room(module) for module in modules()} - {"", "__main__"}
    arrows: dict[str, set[str]] = {name: set() for name in rooms}
    for found in imports():
        importer, imported = room(found.importer), room(found.module)
        if importer in rooms and imported in rooms and importer != imported:
            arrows[importer].add(imported)
    return {name: frozenset(needed) for name, needed in arrows.items()}


def file_arrows() -> Arrows:
    """What each module imports of its own room, inside of functions too; imports for type checkers alone left out."""
    known = modules()
    arrows: dict[str, set[str]] = {name: set() for name in known}
    for found in imports(with_types=False):
        inner = f"{found.module}.{found.name}" if f"{found.module}.{found.name}" in known else found.module
        if inner in known and inner != found.importer and room(inner) == room(found.importer):
            arrows[found.importer].add(inner)
    return {name: frozenset(needed) for name, needed in arrows.items()}


def crate_arrows() -> Arrows:
    """What each crate depends on among the workspace's crates, tests left out; a crate is named by group and name."""
    manifests = {file.parent.name: file for file in sorted(ROOT.glob("crates/*/*/Cargo.toml"))}
    named = {name: f"{file.parents[1].name}/{name}" for name, file in manifests.items()}
    arrows = {}
    for name, file in manifests.items():
        manifest = tomllib.loads(file.read_text(encoding="utf-8"))
        needed = (named[other] for other in manifest.get("dependencies", {}) if other in named)
        arrows[named[name]] = frozenset(needed)
    return arrows


def floors(arrows: Arrows) -> dict[str, int]:
    """The floor of each: 0 for one that needs none, else one above the highest that it needs. ValueError for a loop."""
    found: dict[str, int] = {}

    def floor(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            raise ValueError(f"a loop: {' -> '.join([*above[above.index(name) :], name])}")
        if name not in found:
            found[name] = 1 + max((floor(needed, (*above, name)) for needed in sorted(arrows[name])), default=-1)
        return found[name]

    for name in sorted(arrows):
        floor(name, ())
    return found


def reduced(arrows: Arrows) -> Arrows:
    """The arrows without those that follow from two others."""

    def reached(name: str) -> frozenset[str]:
        return arrows[name].union(*(reached(needed) for needed in arrows[name]))

    return {
        name: frozenset(needed - frozenset().union(*(reached(other) for other in needed)))
        for name, needed in arrows.items()
    }


def drawing() -> str:
    """Both graphs as text, from the top floor to the bottom."""
    return "\n".join(
        [
            "The rooms of the Python package; each imports what stands behind its arrow, and nothing above itself:",
            "",
            "```",
            *_lines(room_arrows()),
            "```",
            "",
            "The crates:",
            "",
            "```",
            *_lines(crate_arrows()),
            "```",
            "",
        ]
    )


def _lines(arrows: Arrows) -> Iterator[str]:
    shown = reduced(arrows)
    floor = floors(arrows)
    width = max(map(len, arrows)) + 1
    for name in sorted(arrows, key=lambda name: (-floor[name], name)):
        line = f"{floor[name]:2} {name:{width}}"
        words = sorted(shown[name], key=lambda needed: (-floor[needed], needed))
        if words:
            line += "─►"
        for word in words:
            if len(line) + len(word) >= WIDTH:
                yield line
                line = " " * (width + 5)
            line += f" {word}"
        yield line.rstrip()


def written(page: str) -> str:
    """The page with the drawing between its marks; ValueError if it has no marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected the lines {BEGIN.strip()!r} and {END!r} in {PAGE.name}")
    return f"{before}{begin}{drawing()}{end}{after}"


def main(arguments: list[str]) -> int:
    """Prints or writes the drawing; returns the exit code."""
    if arguments not in ([], ["--write"]):
        print(f"usage: rooms.py [--write], not {' '.join(arguments)}", file=sys.stderr)
        return 2
    if arguments:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(drawing(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
