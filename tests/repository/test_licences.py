"""Licences, as the REUSE specification (3.3) has them: REUSE.toml gives one to every file, LICENSES/ has their texts.

`reuse lint` says the same of a clone. It comes without a wheel, and `make setup` runs no code to install a package.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.repository.tree import ROOT, crates, toml, tracked

ANNOTATIONS = toml("REUSE.toml")["annotations"]
LINKS = {
    "LICENSE-MIT": "LICENSES/MIT.txt",
    "LICENSE-APACHE": "LICENSES/Apache-2.0.txt",
    "crates/emulator/LICENSE": "../../LICENSES/GPL-2.0-or-later.txt",
}
"""Where people and tools look for the texts."""


def licence_of(file: Path) -> str:
    """What REUSE.toml says of a file: the last entry that fits holds."""
    path = str(file.relative_to(ROOT))
    fitting = [entry["SPDX-License-Identifier"] for entry in ANNOTATIONS if fnmatchcase(path, entry["path"])]
    assert fitting, f"REUSE.toml says nothing of {path}"
    found: str = fitting[-1]
    return found


def names(expression: str) -> set[str]:
    """The licences of an SPDX expression."""
    return set(re.findall(r"[\w.-]+", expression)) - {"AND", "OR", "WITH"}


def test_every_file_has_a_licence_whose_text_is_here_and_every_text_is_of_use() -> None:
    used = set().union(*(names(licence_of(file)) for file in tracked()))
    assert used == {file.stem for file in (ROOT / "LICENSES").iterdir()}
    assert all(entry["SPDX-FileCopyrightText"] for entry in ANNOTATIONS)


def test_a_file_that_names_its_licence_names_that_of_its_folder() -> None:
    pattern = re.compile(r"SPDX-License-Identifier" + r":\s*(.+)")
    for file in tracked():
        if file.suffix in (".rs", ".py", ".c", ".h", ".hpp", ".js", ".css", ".sh"):
            for named in pattern.findall(file.read_text(encoding="utf-8", errors="replace")):
                assert names(named) <= names(licence_of(file)), file


@pytest.mark.parametrize("crate", crates())
def test_a_crate_declares_the_licence_of_its_files(crate: str) -> None:
    declared = toml(f"crates/{crate}/Cargo.toml")["package"]["license"]
    if declared == {"workspace": True}:
        declared = toml("Cargo.toml")["workspace"]["package"]["license"]
    files = [file for file in tracked() if file.is_relative_to(ROOT / "crates" / crate)]
    assert {licence_of(file) for file in files} == {declared}


def test_the_wheel_declares_all_that_its_files_are_under() -> None:
    declared = names(toml("pyproject.toml")["project"]["license"])
    assert declared == set().union(*(names(entry["SPDX-License-Identifier"]) for entry in ANNOTATIONS))


def test_texts_are_where_people_look_for_them() -> None:
    assert set(toml("pyproject.toml")["project"]["license-files"]) == set(LINKS)
    for place, target in LINKS.items():
        assert (ROOT / place).readlink() == Path(target)
        assert (ROOT / place).stat().st_size > 500
    assert "GNU GENERAL PUBLIC LICENSE" in (ROOT / "crates/emulator/LICENSE").read_text()
