"""One version: package, workspace, every crate and the newest entry of the changelog say the same."""

from __future__ import annotations

import re

import pytest

import commutant
from tests.repository.tree import ROOT, command, crates, toml


def test_package_and_workspace_agree() -> None:
    version = toml("pyproject.toml")["project"]["version"]
    assert toml("Cargo.toml")["workspace"]["package"]["version"] == version
    assert commutant.__version__ == version


def test_the_command_prints_the_version() -> None:
    assert command("commutant", "--version").split()[-1] == commutant.__version__


def test_newest_entry_of_the_changelog_is_this_version() -> None:
    entries = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert entries[0] == commutant.__version__


@pytest.mark.parametrize("crate", crates())
def test_crates_take_version_edition_and_minimum_rust_from_the_workspace(crate: str) -> None:
    package = toml(f"crates/{crate}/Cargo.toml")["package"]
    for key in ("version", "edition", "rust-version"):
        assert package[key] == {"workspace": True}, f"{crate}: {key}"


def test_minimum_versions_are_stated_where_a_newcomer_looks() -> None:
    readme = (ROOT / "README.md").read_text()
    assert f"Rust {toml('Cargo.toml')['workspace']['package']['rust-version']}" in readme
    python = toml("pyproject.toml")["project"]["requires-python"].removeprefix(">=")
    assert f"Python {python}" in readme


def test_locks_pin_every_dependency_with_a_hash_and_name_no_registry() -> None:
    project = toml("pyproject.toml")
    direct = {
        "requirements.lock": project["project"]["dependencies"],
        "requirements-dev.lock": project["project"]["dependencies"] + project["dependency-groups"]["dev"],
        "requirements-fuzz.lock": project["dependency-groups"]["fuzz"],
    }
    for lock, dependencies in direct.items():
        text = (ROOT / lock).read_text()
        entries = re.findall(r"^([a-z0-9-]+)==\S+.*((?:\n    --hash=sha256:[0-9a-f]{64}.*)+)", text, re.MULTILINE)
        assert len(entries) == len(re.findall(r"^[a-z]", text, re.MULTILINE)), f"{lock}: an entry without a hash"
        names = {name for name, _ in entries}
        for dependency in dependencies:
            assert re.split(r"[<>=!~\[ ]", dependency)[0] in names, f"{lock}: {dependency}"
        assert "://" not in text


def test_cargo_lock_is_complete() -> None:
    command("cargo", "metadata", "--locked", "--offline", "--format-version", "1")
