"""Packages of crate `olf` and what it needs, as a registry takes them: `python scripts/crates_alone.py [FOLDER]`.

Their names are short, and taken there. So each is copied, with its sources alone, as `commutant-NAME`; its library
keeps its name. In a workspace of their own cargo packs them and builds each from its package: they need nothing else of
this repository. `cargo publish --workspace --dry-run` in that folder says what a registry would.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from steps import ROOT, StepFailed, run

PREFIX = "commutant-"
FEATURES_OF_OTHERS = ("fault", "testing")
"""What only tests of this repository ask for; the sources stay as they are."""

README = """# {name}

{description}.

A part of Commutant, which checks whether an implementation scales where its interface allows it. The library is
named `{library}`.
"""


def manifest(crate: str) -> dict[str, Any]:
    """A crate's Cargo.toml."""
    with (ROOT / "crates" / "structures" / crate / "Cargo.toml").open("rb") as file:
        return tomllib.load(file)


def closure(crate: str) -> list[str]:
    """A crate and all of this repository that it needs, those first that others need."""
    found: list[str] = []

    def visit(name: str) -> None:
        for needed in manifest(name).get("dependencies", {}):
            if (ROOT / "crates" / "structures" / needed).is_dir():
                visit(needed)
        if name not in found:
            found.append(name)

    visit(crate)
    return found


def written(crate: str, own: list[str], version: str) -> str:
    """The Cargo.toml of a crate's copy."""
    read = manifest(crate)
    package = {
        "name": PREFIX + crate,
        "version": version,
        "edition": "2024",
        "rust-version": _workspace()["rust-version"],
        "license": _workspace()["license"],
        "description": read["package"]["description"],
        "readme": "README.md",
        "categories": ["concurrency", "data-structures"],
    }
    library = {"name": crate.replace("-", "_"), **read.get("lib", {})}
    parts = ["[package]", *_lines(package), "", "[lib]", *_lines(library)]
    if features := read.get("features"):
        parts += ["", "[features]", *_lines(features)]
    for table, needed in _dependencies(read):
        parts += ["", f"[{table}]"]
        parts += [f"{name} = {_dependency(name, given, own, version)}" for name, given in needed.items()]
    lints = _workspace_lints()
    return "\n".join([*parts, "", "[lints.rust.unexpected_cfgs]", *_lines(lints)]) + "\n"


def _dependencies(read: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Dependencies by table, those of tests left out."""
    found = [("dependencies", read.get("dependencies", {}))]
    for cfg, tables in read.get("target", {}).items():
        found.append((f"target.'{cfg}'.dependencies", tables.get("dependencies", {})))
    return [(table, needed) for table, needed in found if needed]


def _dependency(name: str, given: Any, own: list[str], version: str) -> str:
    fields: dict[str, Any] = dict(given) if isinstance(given, dict) else {"version": given}
    if fields.pop("workspace", False):
        assert name in own, name
        fields |= {"package": PREFIX + name, "version": version, "path": f"../{name}"}
    return "{ " + ", ".join(_lines(fields)) + " }"


def _lines(table: dict[str, Any]) -> list[str]:
    # Strings, numbers, truth values and lists of them look in JSON as they do in TOML.
    return [f"{key} = {json.dumps(value)}" for key, value in table.items()]


def _workspace() -> dict[str, str]:
    with (ROOT / "Cargo.toml").open("rb") as file:
        package: dict[str, str] = tomllib.load(file)["workspace"]["package"]
    return package


def _workspace_lints() -> dict[str, Any]:
    with (ROOT / "Cargo.toml").open("rb") as file:
        lints: dict[str, Any] = tomllib.load(file)["workspace"]["lints"]["rust"]["unexpected_cfgs"]
    return lints


def copy(crate: str, folder: Path) -> list[str]:
    """Makes a workspace of a crate and what it needs in a folder; returns their names.

    Raises StepFailed if the folder has something in it.
    """
    if folder.exists() and any(folder.iterdir()):
        raise StepFailed(f"{folder}: expected an empty folder, or none")
    own, version = closure(crate), _workspace()["version"]
    folder.mkdir(parents=True, exist_ok=True)
    members = json.dumps(own)
    (folder / "Cargo.toml").write_text(f'[workspace]\nresolver = "3"\nmembers = {members}\n')
    shutil.copy2(ROOT / "Cargo.lock", folder)
    for name in own:
        source, copied = ROOT / "crates" / "structures" / name, folder / name
        shutil.copytree(source / "src", copied / "src")
        for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
            shutil.copy2(ROOT / licence, copied)
        (copied / "Cargo.toml").write_text(written(name, own, version))
        about = manifest(name)["package"]["description"]
        (copied / "README.md").write_text(
            README.format(name=PREFIX + name, description=about, library=name.replace("-", "_"))
        )
    return own


def pack(folder: Path, *options: str) -> list[str]:
    """Packs the crates of a folder of `copy`, each built from its package; returns the packages' names and versions."""
    target = ["--target-dir", str(folder / "target")]
    run(["cargo", "package", "--workspace", "--offline", "--quiet", *target, *options], folder=folder)
    return sorted(file.stem for file in (folder / "target" / "package").glob("*.crate"))


def main(arguments: list[str]) -> int:
    """Copies and packs into a folder (target/crates-alone); returns the exit code."""
    if len(arguments) > 1 or any(re.match("-", argument) for argument in arguments):
        print(f"usage: crates_alone.py [FOLDER], not {' '.join(arguments)}", file=sys.stderr)
        return 2
    folder = Path(arguments[0]).resolve() if arguments else ROOT / "target" / "crates-alone"
    try:
        copy("olf", folder)
        print("\n".join(pack(folder)))
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
