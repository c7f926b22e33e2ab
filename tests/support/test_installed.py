"""What a user learns of whose installation something is missing: in a clone, and with a wheel alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant.support import annotations_folder, build_advice, installed, kernel_advice, package_advice, pages_folder


def test_a_clone_is_told_of_make_setup() -> None:
    assert installed.is_clone()
    assert {build_advice(), kernel_advice()} == {"run `make setup` again", "run `make setup`"}
    assert (pages_folder() / "docs" / "guides" / "patterns.md").is_file()
    assert (annotations_folder() / "commutant_locks.h").is_file()


def test_a_wheel_alone_is_told_what_works_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_CLONE", tmp_path)
    advice = [build_advice(), kernel_advice(), package_advice("qemu-user")]
    assert not any("make" in one for one in advice)
    assert "commutant prepare" in advice[1] and "apt-get install qemu-user" in advice[2]
    assert pages_folder().name == "_artifacts"
    assert annotations_folder() == pages_folder() / "include"
