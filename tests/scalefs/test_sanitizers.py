"""The structures and the file system under sanitizers, and under Miri.

The sanitizers come with the compiler that the project uses, which gives them out when it is said that it is a
development version. Miri needs a nightly toolchain with its component. Where either is missing the tests are skipped,
with the reason; they never pass without having run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUPPRESSIONS = Path(__file__).with_name("tsan.supp")
TARGET = "x86_64-unknown-linux-gnu"
STRUCTURES = ("seqlock", "percpu", "epoch", "commit", "refcache", "maxima", "radix", "pages", "hashdir", "olf")
PARTS = (*(("-p", crate, "--tests") for crate in STRUCTURES), ("-p", "scalefs", "--test", "data", "--test", "names"))
FEW_CASES = {"PROPTEST_CASES": "4"}


@dataclass(frozen=True)
class Sanitizer:
    """A sanitizer: what the compiler calls it and its library, further flags, how it is given what to do, and a program
    with a fault that it must find.
    """

    name: str
    library: str
    flags: str
    options: Mapping[str, str]
    faulty_program: str


THREAD = Sanitizer(
    "thread",
    "tsan",
    "--cfg tsan",  # fences are what ThreadSanitizer understands
    {"TSAN_OPTIONS": f"suppressions={SUPPRESSIONS}"},
    """
    static mut COUNT: u64 = 0;
    fn main() {
        let count = || for _ in 0..1000 { unsafe { (&raw mut COUNT).write((&raw mut COUNT).read() + 1) } };
        let threads = [std::thread::spawn(count), std::thread::spawn(count)];
        for thread in threads { thread.join().unwrap(); }
    }
    """,
)
ADDRESS = Sanitizer(
    "address",
    "asan",
    "--cfg asan",
    {"ASAN_OPTIONS": "detect_leaks=0"},  # an arena is one allocation; what is lost in it, the tests count themselves
    """
    fn main() {
        let bytes = vec![0_u8; 100].into_boxed_slice();
        let behind = std::hint::black_box(bytes.as_ptr()).wrapping_add(100);
        std::process::exit(unsafe { behind.read_volatile() }.into());
    }
    """,
)
SANITIZERS = pytest.mark.parametrize("sanitizer", [THREAD, ADDRESS], ids=lambda sanitizer: sanitizer.name)


def program(name: str) -> str:
    """The path of one of the toolchain's programs."""
    return shutil.which(name) or str(Path.home() / ".cargo" / "bin" / name)


def run(command: list[str], environment: Mapping[str, str], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs a program of the toolchain without the network."""
    environment = {**os.environ, "CARGO_NET_OFFLINE": "true", "RUSTUP_AUTO_INSTALL": "0", **environment}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def require(outcome: subprocess.CompletedProcess[str]) -> None:
    """Fails, with the end of what was said, if the command failed."""
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-4000:]


def flags_of(sanitizer: Sanitizer) -> str:
    """The compiler's flags for a sanitizer; skips the test if the compiler came without it."""
    libraries = run([program("rustc"), "--print", "target-libdir", "--target", TARGET], {}).stdout.strip()
    if not list(Path(libraries).glob(f"librustc*_rt.{sanitizer.library}.a")):
        pytest.skip(f"{libraries or 'the Rust compiler'} has no {sanitizer.name} sanitizer: nothing was checked")
    return f"-Zsanitizer={sanitizer.name} -Cunsafe-allow-abi-mismatch=sanitizer {sanitizer.flags}".strip()


def run_tests(sanitizer: Sanitizer, part: tuple[str, ...], environment: Mapping[str, str]) -> None:
    """Runs tests of crates under a sanitizer, one after the other."""
    environment = {
        "RUSTFLAGS": flags_of(sanitizer),
        "RUSTC_BOOTSTRAP": "1",
        "CARGO_TARGET_DIR": str(ROOT / "target" / "sanitizers" / sanitizer.name),
        "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
        **sanitizer.options,
        **environment,
    }
    options = ("--quiet", "--locked", "--target", TARGET, *part)
    require(run([program("cargo"), "test", *options, "--", "--test-threads=1"], environment))


@SANITIZERS
def test_a_sanitizer_finds_a_planted_fault(sanitizer: Sanitizer, tmp_path: Path) -> None:
    """So that its silence says something."""
    source, faulty = tmp_path / "faulty.rs", tmp_path / "faulty"
    source.write_text(sanitizer.faulty_program)
    flags = flags_of(sanitizer).split()
    compile_it = [program("rustc"), "--edition", "2024", "--target", TARGET, *flags, "-o", str(faulty), str(source)]
    require(run(compile_it, {"RUSTC_BOOTSTRAP": "1"}, tmp_path))
    outcome = run([str(faulty)], sanitizer.options, tmp_path)
    assert outcome.returncode != 0
    assert f"{sanitizer.name.capitalize()}Sanitizer" in outcome.stderr


@SANITIZERS
def test_structures_in_short(sanitizer: Sanitizer) -> None:
    """All of those that readers look at without locks, with few random cases; the rest takes minutes."""
    crates = ("epoch", "refcache", "maxima", "radix", "hashdir") if sanitizer is THREAD else ("hashdir",)
    run_tests(sanitizer, (*(word for crate in crates for word in ("-p", crate)), "--tests"), FEW_CASES)


@pytest.mark.long
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part[1])
@SANITIZERS
def test_sanitizers(sanitizer: Sanitizer, part: tuple[str, ...]) -> None:
    """All tests of a crate."""
    run_tests(sanitizer, part, {})


@pytest.mark.long
def test_miri() -> None:
    """Some dozens of operations of each structure under the interpreter that knows undefined behaviour."""
    if run([program("cargo"), "+nightly", "miri", "--version"], {}).returncode:
        pytest.skip("`cargo +nightly miri` is not installed: nothing was checked")
    require(run([sys.executable, str(ROOT / "scripts" / "miri.py")], {}))
