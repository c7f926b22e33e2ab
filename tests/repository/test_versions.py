"""One version: package, workspace, every crate and the newest entry of the changelog say the same."""

from __future__ import annotations

import re

import pytest
import yaml

import commutant
from tests.repository.tree import ROOT, command, crates, toml, tracked


def test_package_and_workspace_agree() -> None:
    version = toml("pyproject.toml")["project"]["version"]
    assert toml("Cargo.toml")["workspace"]["package"]["version"] == version
    assert commutant.__version__ == version


def test_the_command_prints_the_version() -> None:
    assert command("commutant", "--version").split()[-1] == commutant.__version__


@pytest.mark.parametrize(
    "folder",
    [
        "fuzz",
        "crates/file-system/scalefs-program/shim",
        "src/commutant/targets/gallery/rust",
        "src/commutant/targets/library/rust",
    ],
)
def test_packages_outside_of_the_workspace_agree(folder: str) -> None:
    package = toml(f"{folder}/Cargo.toml")["package"]
    ours = toml("Cargo.toml")["workspace"]["package"]
    assert {key: package[key] for key in ("version", "edition", "rust-version", "license")} == {
        key: ours[key] for key in ("version", "edition", "rust-version", "license")
    }
    if (ROOT / folder / "Cargo.lock") in tracked():
        of_paths = [one for one in toml(f"{folder}/Cargo.lock")["package"] if "source" not in one]
        assert {one["version"] for one in of_paths} == {commutant.__version__}


CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
KINDS = ["Added", "Changed", "Fixed", "Removed", "Security"]


def releases() -> list[tuple[str, str]]:
    """The versions of the changelog and their dates, the newest first."""
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", CHANGELOG, re.MULTILINE)


def test_newest_entry_of_the_changelog_is_this_version() -> None:
    assert releases()[0][0] == commutant.__version__
    assert [date for _, date in releases()] == sorted((date for _, date in releases()), reverse=True)


def test_the_changelog_has_what_is_unreleased_first_and_changes_by_their_kinds() -> None:
    parts = re.split(r"(?m)^(?=## )", CHANGELOG)[1:]
    assert [part.splitlines()[0] for part in parts] == [
        "## [Unreleased]", *(f"## [{version}] - {date}" for version, date in releases())
    ]  # fmt: skip
    for part in parts:
        kinds = re.findall(r"(?m)^### (.*)$", part)
        assert kinds == [kind for kind in KINDS if kind in kinds], part.splitlines()[0]
        assert kinds or part.strip() == "## [Unreleased]", "an item is of a kind"


def test_who_cites_this_cites_the_newest_release() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (cited["version"], cited["date-released"]) == releases()[0]
    assert " OR ".join(cited["license"]) == toml("Cargo.toml")["workspace"]["package"]["license"]
    assert cited["title"].endswith(toml("pyproject.toml")["project"]["description"].removeprefix("Finds"))


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
