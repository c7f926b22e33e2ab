"""`make fuzz`: what it says where something is missing, whose libraries its programs have, and a short run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fuzz
from steps import StepFailed

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "fuzz.py"


def _toml(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text())


@pytest.mark.parametrize("arguments", [[], ["0"], ["-1"], ["1.5"], ["soon"], ["1", "2"]])
def test_bad_seconds_get_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(arguments) == 2
    said = capsys.readouterr().err
    assert said == f"expected one number of seconds from 1 on; got {' '.join(arguments) or 'nothing'}\n"


def test_without_a_compiler_it_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert fuzz.main(["1"]) == 1
    assert capsys.readouterr().err == fuzz.NEEDS_COMPILER + "\n"


def test_without_the_source_of_libfuzzer_it_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = []

    def refused(argv: list[str]) -> str:
        tried.append("--offline" in argv)
        raise StepFailed("no network")

    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(fuzz, "run", refused)
    assert fuzz.main(["1"]) == 1
    assert capsys.readouterr().err == f"no network\n{fuzz.NEEDS_LIBRARY}\n"
    assert tried == [True, False]


def test_a_fuzzer_that_misses_the_planted_fault_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = tmp_path / "calls"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    monkeypatch.setattr(fuzz, "require_what_it_takes", lambda: None)
    monkeypatch.setattr(fuzz, "build", lambda: program)
    assert fuzz.main(["1"]) == 1
    assert "was missed" in capsys.readouterr().err


def test_inputs_of_another_version_are_told_and_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Bytes stand for other calls once the crate that draws them from bytes has changed."""
    language = tmp_path / "draw.rs"
    monkeypatch.setattr(fuzz, "LANGUAGE", (language,))
    monkeypatch.setattr(fuzz, "KEPT", tmp_path / "corpus")
    versions = []
    for text in ("one", "one", "two"):
        language.write_text(text)
        versions.append(fuzz.language())
        own, *others = fuzz.kept_inputs(versions[-1])
        (own / text).write_text("input")
    assert versions[0] == versions[1] != versions[2]
    assert [folder.name for folder in others] == [f"calls-{versions[0]}"]
    (line,) = capsys.readouterr().out.splitlines()
    assert "1 of other versions of the calls: they stand for other calls now" in line


def test_the_sources_that_draw_calls_are_there() -> None:
    assert {"draw.rs", "draw_data.rs", "random.rs", "comparison.rs"} <= {file.name for file in fuzz.LANGUAGE}
    assert all(file.is_file() for file in fuzz.LANGUAGE)


def test_the_programs_of_the_fuzzer_have_the_libraries_of_the_workspace() -> None:
    """Their lock file is a second one: `make lock` writes both, and anyone who adds a library to a crate has to."""
    locked = _toml(ROOT / "fuzz" / "Cargo.lock")["package"]
    workspace = {(package["name"], package["version"]) for package in _toml(ROOT / "Cargo.lock")["package"]}
    added = {package["name"] for package in locked if (package["name"], package["version"]) not in workspace}
    assert added == {"commutant-fuzz", "libfuzzer-sys", "arbitrary", "jobserver"}
    known = {package["name"]: {name.split()[0] for name in package.get("dependencies", [])} for package in locked}
    manifests = {file.parent.name: _toml(file) for file in ROOT.glob("crates/*/*/Cargo.toml")}
    own = set(known) & set(manifests)
    assert own >= {"scalefs", "plain", "call-language"}
    for crate in own:
        manifest = manifests[crate]
        tables = [manifest, *manifest.get("target", {}).values()]
        assert {name for table in tables for name in table.get("dependencies", {})} <= known[crate], crate


@pytest.mark.long
def test_a_planted_fault_is_found_and_without_it_nothing() -> None:
    ended = subprocess.run([sys.executable, SCRIPT, "10"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    planted, calls = ended.stdout.splitlines()[-2:]
    assert planted.startswith("planted fault") and " on ScaleFS, " in planted
    assert calls.startswith("calls") and "no difference" in calls
