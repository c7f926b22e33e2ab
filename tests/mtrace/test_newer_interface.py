"""The tracer builds for a newer plugin interface of QEMU too, and a QEMU that does not offer it refuses the plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_a_build_for_interface_4_is_refused_by_an_older_qemu(tmp_path: Path) -> None:
    cargo = shutil.which("cargo") or str(Path.home() / ".cargo" / "bin" / "cargo")
    command = [cargo, "build", "--quiet", "--locked", "--offline", "-p", "mtrace-plugin", "--features", "interface-4"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(tmp_path)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=900)
    plugin = tmp_path / "debug" / "libmtrace_plugin.so"
    answer = subprocess.run(
        ["qemu-x86_64", "-plugin", f"{plugin},out=/dev/null,mode=user", "/bin/true"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode != 0
    assert "version 4" in answer.stderr
