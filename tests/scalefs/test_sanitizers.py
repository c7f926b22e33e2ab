"""The structures and the file system under sanitizers and Miri, which need a nightly toolchain, Miri a component of it.

Where there is none the tests are skipped, with the reason; they never pass without having run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUPPRESSIONS = Path(__file__).with_name("tsan.supp")
STRUCTURES = ("seqlock", "percpu", "epoch", "commit", "refcache", "maxima", "radix", "pages", "hashdir")
PARTS = (*(("-p", crate, "--tests") for crate in STRUCTURES), ("-p", "scalefs", "--test", "data", "--test", "names"))
MIRI_CRATES = ("seqlock", "commit", "epoch")

pytestmark = pytest.mark.long


def cargo(*arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs the nightly cargo without the network."""
    program = shutil.which("cargo") or str(Path.home() / ".cargo" / "bin" / "cargo")
    environment = {**os.environ, "CARGO_NET_OFFLINE": "true", "RUSTUP_AUTO_INSTALL": "0", **environment}
    command = [program, "+nightly", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def skip_without(*tool: str) -> None:
    """Skips the test if cargo has no such tool."""
    if cargo(*tool, "--version", environment={}).returncode:
        pytest.skip(f"`cargo {' '.join(('+nightly', *tool))}` is not installed: nothing was checked")


def require(outcome: subprocess.CompletedProcess[str]) -> None:
    """Fails, with the end of what was said, if the command failed."""
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-4000:]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part[1])
@pytest.mark.parametrize("sanitizer", ["thread", "address"])
def test_sanitizers(sanitizer: str, part: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> None:
    """All tests of a crate, one after the other; `--cfg tsan` makes fences what ThreadSanitizer understands."""
    skip_without()
    flags = f"-Zsanitizer={sanitizer} -Cunsafe-allow-abi-mismatch=sanitizer"
    environment = {
        "RUSTFLAGS": f"{flags} --cfg tsan" if sanitizer == "thread" else flags,
        "CARGO_TARGET_DIR": str(tmp_path_factory.getbasetemp() / sanitizer),
        "TSAN_OPTIONS": f"suppressions={SUPPRESSIONS} exitcode=66",
        "ASAN_OPTIONS": "detect_leaks=0",  # an arena is one allocation; what is lost in it, the tests count themselves
    }
    options = ("--quiet", "--locked", "--target", "x86_64-unknown-linux-gnu", *part)
    require(cargo("test", *options, "--", "--test-threads=1", environment=environment))


@pytest.mark.parametrize("crate", MIRI_CRATES)
def test_miri(crate: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Under the interpreter that knows undefined behaviour, what it does in minutes."""
    skip_without("miri")
    environment = {"CARGO_TARGET_DIR": str(tmp_path_factory.getbasetemp() / "miri"), "PROPTEST_CASES": "2"}
    require(cargo("miri", "test", "--quiet", "--locked", "-p", crate, "--tests", environment=environment))
