"""The architecture as a rule: rooms and crates without loops, imports through faces, and the page that draws them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rooms
from tests.repository.tree import ROOT


def test_rooms_and_crates_stand_on_floors() -> None:
    for name, arrows in {"rooms": rooms.room_arrows(), "crates": rooms.crate_arrows()}.items():
        floors = rooms.floors(arrows)
        print(
            f"{len(arrows)} {name}, {sum(map(len, arrows.values()))} arrows, {1 + max(floors.values())} floors, no loop"
        )
        assert all(floors[needed] < floors[above] for above, all_needed in arrows.items() for needed in all_needed)


def test_files_of_a_room_stand_on_floors_too() -> None:
    """No file needs one that needs it, not even inside a function: a loop there is one that nothing else shows."""
    arrows = rooms.file_arrows()
    floors = rooms.floors(arrows)
    print(
        f"{len(arrows)} files, {sum(map(len, arrows.values()))} arrows within rooms, {1 + max(floors.values())} floors"
    )
    assert len(arrows) > 300
    assert rooms.file_arrows()["cli.show"] >= {"cli.console", "cli.options"}, "imports of modules count"
    assert "runs.lookup" not in arrows["cli.options"], "those of other rooms do not"


def test_a_loop_is_found() -> None:
    loop = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"a"}), "d": frozenset({"a"})}
    with pytest.raises(ValueError, match="a loop: a -> b -> c -> a"):
        rooms.floors(loop)


def test_imports_from_another_room_go_to_a_face() -> None:
    """What is imported is a room, or a name of its `__init__` or of that of a package inside: never of a module."""
    known = rooms.modules()
    wrong, faces = [], 0
    for found in rooms.imports():
        importer, imported = rooms.room(found.importer), rooms.room(found.module)
        if importer == imported or found.module in ("", "_native") or found.importer in ("", "__main__"):
            continue
        face = known[found.module]
        is_face = face.name == "__init__.py" or "." not in found.module
        if is_face and (not found.name or found.name in _offered(face)):
            faces += 1
        else:
            wrong.append(f"{known[found.importer].relative_to(ROOT)}:{found.line}: {found.module}: {found.name}")
    print(f"{faces} imports go to a face of another room, {len(wrong)} past it")
    assert not wrong, "\n".join(wrong)
    assert faces > 100


def _offered(face: Path) -> set[str]:
    """The names that a face offers: those of `__all__`, and imports of the form `X as X`; what a mere file defines."""
    tree = ast.parse(face.read_text())
    if face.name != "__init__.py":
        return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    offered = {
        alias.asname
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname and alias.asname == alias.name
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            offered.update(ast.literal_eval(node.value))
    return offered


def test_the_page_shows_the_architecture_as_it_is() -> None:
    page = rooms.PAGE.read_text()
    assert rooms.written(page) == page, "`python scripts/rooms.py --write` draws it anew"
