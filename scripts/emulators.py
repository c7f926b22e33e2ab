"""The emulator that is installed, judged before anything is built: by the same words as `commutant doctor`."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from types import ModuleType

from steps import ROOT, StepFailed, say

_ANSWER_SECONDS = 15.0


def _versions() -> ModuleType:
    """Which versions can trace; loaded alone, since nothing that the package needs is installed yet."""
    path = ROOT / "src" / "commutant" / "guest" / "versions.py"
    spec = importlib.util.spec_from_file_location("emulator_versions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def judge_emulator() -> None:
    """Raises StepFailed if the emulator in PATH cannot trace; says so if no one has tried its version. None is well:
    the system's package is installed then, and judged afterwards."""
    versions = _versions()
    path = shutil.which(versions.MACHINES)
    if path is None:
        return
    advice = f"put another {versions.MACHINES} first in PATH, or remove that one, and the system's package is installed"
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StepFailed(f"{path} does not start ({error}); {advice}") from None
    version = versions.version_in(answer.stdout)
    if isinstance(version, str):
        raise StepFailed(f"{path}: {version}; {advice}")
    if not version.is_tested:
        say("emulator", f"{path}: {version.text} was not tested (tested: {versions.tested_versions()}); going on")
