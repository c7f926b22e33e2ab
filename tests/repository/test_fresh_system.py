"""A fresh Debian 13: what the README promises there, and the same outcomes from both emulators."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fresh_system
import steps
import system_packages
from tests.repository.tree import ROOT

MIRROR = """Debian http://mirror/debian/ bookworm
Debian http://mirror/debian/ bookworm-updates
Debian http://mirror/debian-security/ bookworm-security
Debian http://mirror/debian/ bookworm-backports
Other http://other/ stable"""


def test_the_archives_are_those_of_this_machine_with_the_other_release() -> None:
    lines = [line.partition("] ")[2] for line in fresh_system.sources("trixie", MIRROR)]
    assert lines == [
        "http://mirror/debian/ trixie main",
        "http://mirror/debian/ trixie-updates main",
        "http://mirror/debian-security/ trixie-security main",
    ]
    with pytest.raises(steps.StepFailed, match="knows no archive of Debian"):
        fresh_system.sources("trixie", "Other http://other/ stable")


def test_what_is_missing_for_a_fresh_system_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert fresh_system.main(["trixie"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "fresh system: expected root, and mmdebstrap (apt-get install mmdebstrap)"
    ]


PARTS = ("tests/mtrace", "tests/targets", "tests/targets_process", "tests/kernels", "tests/lock_view", "tests/support")
"""What depends on the system: emulators, packages, tools, the C library."""


@pytest.mark.long
def test_a_fresh_debian_13_does_what_the_readme_says_and_both_emulators_agree(tmp_path: Path) -> None:
    """Nothing but what `git clone` gives, and this machine's kernel, so that both emulators run the same one.

    To mount and to change the root needs an administrator: it asks for one as `make setup` does.
    """
    if shutil.which("mmdebstrap") is None:
        system_packages.install(["mmdebstrap"])
    administrator = [] if os.geteuid() == 0 else ["sudo", "-E"]
    folder = tmp_path / "trixie"
    script = [*administrator, sys.executable, str(ROOT / "scripts" / "fresh_system.py"), "--folder", str(folder)]

    def there(*command: str) -> None:
        subprocess.run([*script, "--keep", "--kernels", "trixie", *command], check=True)

    try:
        there("make", "demo")
        there(".venv/bin/pytest", "-q", *PARTS)
        there(".venv/bin/commutant", "check", "names", "--target", "linux", "-o", "runs/there")
        other = folder / fresh_system.CLONE.lstrip("/") / "runs" / "there"
        commutant = str(ROOT / ".venv" / "bin" / "commutant")
        subprocess.run([commutant, "check", "names", "--target", "linux", "-o", str(tmp_path / "here")], check=True)
        diff = [commutant, "diff", str(tmp_path / "here"), str(other), "--format", "json"]
        compared = json.loads(subprocess.run(diff, check=True, capture_output=True, text=True).stdout)
        assert (compared["common"], compared["worse"], compared["better"]) == (1038, [], [])
    finally:
        subprocess.run([*administrator, "rm", "-rf", "--one-file-system", str(folder)], check=False)
