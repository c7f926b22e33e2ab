"""Every crate keeps the workspace's rules: lints, licence, a description, and unsafe code only where it is named."""

from __future__ import annotations

import re

import pytest

from tests.repository.tree import ROOT, crates, toml, tracked

GPL = {crate for crate in crates() if crate.startswith("emulator/")}
"""Crates under the GPL, in one folder: what uses QEMU's plugin interface. Nothing else links them."""


@pytest.mark.parametrize("crate", crates())
def test_manifest(crate: str) -> None:
    manifest = toml(f"crates/{crate}/Cargo.toml")
    assert manifest.get("lints") == {"workspace": True}
    assert manifest["package"].get("description"), "no description"
    assert manifest["package"]["name"] == crate.rpartition("/")[2], "a crate is named as its folder"
    licence = manifest["package"]["license"]
    assert licence == ("GPL-2.0-or-later" if crate in GPL else {"workspace": True})


def test_workspace_and_package_carry_the_same_licence() -> None:
    own = toml("Cargo.toml")["workspace"]["package"]["license"]
    # The wheel carries two plugins, which are under the GPL.
    assert toml("pyproject.toml")["project"]["license"] == f"({own}) AND GPL-2.0-or-later"


def test_only_plugins_link_what_uses_the_plugin_interface() -> None:
    plugins = {toml(f"crates/{crate}/Cargo.toml")["package"]["name"] for crate in GPL}
    for crate in set(crates()) - GPL:
        manifest = toml(f"crates/{crate}/Cargo.toml")
        for table in ("dependencies", "dev-dependencies", "build-dependencies"):
            assert not plugins & set(manifest.get(table, {})), f"{crate}: {table}"


@pytest.mark.parametrize("crate", crates())
def test_a_crate_without_unsafe_code_forbids_it(crate: str) -> None:
    sources = [
        file for file in tracked() if file.suffix == ".rs" and file.is_relative_to(ROOT / "crates" / crate / "src")
    ]
    roots = [file for file in sources if file.name in ("lib.rs", "main.rs") and file.parent.name == "src"]
    assert roots, "neither src/lib.rs nor src/main.rs"
    uses_unsafe = any(
        re.search(r"\bunsafe\s*(\{|fn|impl|extern)|#\[unsafe\(", _code(file.read_text())) for file in sources
    )
    if not uses_unsafe:
        for file in roots:
            assert "#![forbid(unsafe_code)]" in file.read_text(), file.relative_to(ROOT)


@pytest.mark.parametrize("crate", crates())
def test_a_library_is_built_for_tests_exactly_if_it_has_some(crate: str) -> None:
    """An empty program of tests costs a build and a link; tests of a library that is not built for them never run."""
    library = ROOT / "crates" / crate / "src" / "lib.rs"
    if library.exists():
        texts = [file.read_text() for file in library.parent.rglob("*.rs")]
        has_tests = any(re.search(r"#\[test\]|#\[cfg\((all\()?test\b|\bproptest!", text) for text in texts)
        assert toml(f"crates/{crate}/Cargo.toml").get("lib", {}).get("test", True) == has_tests


def _code(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)
