"""A runner whose ScaleFS can share without need (its feature `planted-causes`), built once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.repository.tree import ROOT

WHICH = "COMMUTANT_PLANTED_CAUSES"


def build() -> Path:
    """The runner; it has a folder of its own, so that only the first build takes minutes."""
    folder = ROOT / "target" / "planted"
    crate = ROOT / "crates" / "file-system" / "scalefs-runner" / "Cargo.toml"
    command = ("cargo", "rustc", "--release", "--locked", "--offline", "--manifest-path", crate, "--bins")
    features = ("--features", "planted-causes", "--target-dir", folder)
    flags = ("--", "-C", "target-feature=+crt-static", "-C", "relocation-model=static")
    subprocess.run((*command, *features, *flags), check=True)
    return folder / "release" / "commutant-scalefs-runner"


@contextmanager
def planting(sum_of_causes: int) -> Iterator[None]:
    """Runners that start before it ends share this (crates/file-system/scalefs/src/planted_causes.rs)."""
    os.environ[WHICH] = str(sum_of_causes)
    try:
        yield
    finally:
        del os.environ[WHICH]
