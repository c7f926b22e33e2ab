"""Crates that say that they need no standard library are built without one by `make test`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import no_std

OF_THE_FILE_SYSTEM = {"posix-calls", "scalefs", "shared-instance", "sockets", "address-space", "transact"}
OF_STRUCTURES = {"sync", "percpu", "epoch", "commit", "refcache", "hashdir", "radix", "pages", "olf", "pool"}


def checked(folder: Path, *crates: str, features: dict[str, list[str]] | None = None) -> str:
    """What the compiler says of a library that uses these crates."""
    no_std.write(folder, {name: no_std.crates()[name] for name in crates}, features)
    command = no_std.command("cargo", folder)
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_the_crates_are_found_by_what_they_say() -> None:
    found = set(no_std.crates())
    assert found >= OF_THE_FILE_SYSTEM | OF_STRUCTURES
    assert not found & {"durable", "wire", "history"}


def test_a_crate_that_brings_the_standard_library_is_found(tmp_path: Path) -> None:
    assert checked(tmp_path / "without", "commit") == ""
    said = checked(tmp_path / "with", "commit", features={"commit": ["std"]})
    assert "duplicate lang item `panic_impl`" in said


@pytest.mark.parametrize("is_there", [True, False])
def test_a_target_that_is_not_installed_is_said(
    is_there: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(no_std, "is_installed", lambda target: is_there and target == no_std.BARE)
    pieces = no_std.pieces("cargo")
    assert [no_std.BARE in piece.command for piece in pieces] == ([False, True] if is_there else [False])
    assert ("skipped" in capsys.readouterr().out) is not is_there
    assert all(piece.is_build for piece in pieces)
