"""The loom models are built: one that does not build explores nothing. `make test-long` explores them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.parents[1].name for path in ROOT.glob("crates/*/*/tests/models.rs"))


def test_models_of_all_crates_are_built() -> None:
    """Constant functions that make atomics, which loom's cannot be made in, once broke all of them unseen."""
    assert "olf" in CRATES
    cargo = shutil.which("cargo") or str(Path.home() / ".cargo" / "bin" / "cargo")
    packages = [argument for crate in CRATES for argument in ("--package", crate)]
    command = [cargo, "check", "--quiet", "--locked", "--offline", "--keep-going", *packages, "--test", "models"]
    environment = {**os.environ, "RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": str(ROOT / "target" / "loom")}
    outcome = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr[-4000:]
