"""The border of the file system: POSIX's rules and their plain implementation need nothing of ScaleFS."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def needed(crate: str) -> set[str]:
    """The crates of this workspace that a build of a crate needs, itself among them."""
    command = ["cargo", "metadata", "--offline", "--locked", "--format-version", "1"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    described = json.loads(answer.stdout)
    ours = {package["id"]: package["name"] for package in described["packages"] if package["source"] is None}
    by_id = {node["id"]: node for node in described["resolve"]["nodes"]}
    (start,) = [identity for identity, name in ours.items() if name == crate]
    seen, waiting = {start}, [start]
    while waiting:
        for dependency in by_id[waiting.pop()]["deps"]:
            is_needed = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_needed and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    return {ours[identity] for identity in seen if identity in ours}


@pytest.mark.parametrize(
    ("crate", "expected"),
    [
        ("posix-calls", {"posix-calls", "sync"}),
        ("plain", {"plain", "posix-calls", "sync"}),
        ("call-language", {"call-language", "posix-calls", "sync"}),
    ],
)
def test_the_call_layer_needs_no_structure_of_scalefs(crate: str, expected: set[str]) -> None:
    assert needed(crate) == expected


def test_scalefs_needs_its_structures() -> None:
    """A reader of metadata that finds nothing would hold everything."""
    assert {"posix-calls", "hashdir", "percpu", "radix"} <= needed("scalefs")


@pytest.mark.parametrize("crate", ["posix-calls", "plain", "call-language"])
def test_these_crates_have_no_unsafe_code(crate: str) -> None:
    root = ROOT / "crates" / "file-system" / crate / "src" / "lib.rs"
    assert "#![forbid(unsafe_code)]" in root.read_text()
