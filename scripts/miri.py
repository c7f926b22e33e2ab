"""`make miri`: some dozens of operations of every structure, of the file system and of its C interface, under Miri.

Miri interprets Rust and ends at undefined behaviour. It runs the tests in `tests/small.rs` of each crate with tree
borrows, one crate after the other, in about two minutes on a quiet machine; arenas lie in ordinary memory there. It
first has to find a planted fault. It needs a nightly toolchain of rustup with the components `miri` and `rust-src`, and
no network.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from steps import ROOT, StepFailed, say

CARGO = ["cargo", "+nightly", "miri"]
CRATES = tuple(sorted(path.parents[1].name for path in ROOT.glob("crates/*/*/tests/small.rs")))
FLAGS = "-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-disable-isolation"
"""Addresses become pointers again where a word holds them together with other bits; `scalefs-c` asks the host for the
time."""
LIMIT_SECONDS = 600
NEEDS = (
    "`cargo +nightly miri` is not installed: nothing was checked. "
    "It comes by `rustup toolchain install nightly --component miri,rust-src`"
)
FAULTY = """
fn main() {
    let mut value = Box::new(1_u64);
    let shared: *const u64 = &*value;
    let before = unsafe { *shared };
    *value += before;
    unsafe { shared.cast_mut().write(3) };
}
"""
"""Writes through a pointer that came from a shared reference."""


def miri(arguments: Sequence[str], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs `cargo +nightly miri` without the network. Raises TimeoutExpired after `LIMIT_SECONDS`."""
    # What Miri keeps of a program knows the folder of its source: each folder has a target of its own.
    target = str(folder / "target" / "miri")
    chosen = {"MIRIFLAGS": FLAGS, "CARGO_TARGET_DIR": target, "CARGO_NET_OFFLINE": "true", "RUSTUP_AUTO_INSTALL": "0"}
    command = [*CARGO, *arguments]
    environment = {**os.environ, **chosen}
    try:
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", "cargo is not on the path")


def require_miri() -> None:
    """Raises StepFailed, with what is needed, if there is no Miri."""
    if miri(["--version"]).returncode:
        raise StepFailed(NEEDS)


def finds_the_planted_fault() -> bool:
    """Whether Miri reports a program with undefined behaviour."""
    with tempfile.TemporaryDirectory(prefix="commutant-miri-") as name:
        folder = Path(name)
        (folder / "src").mkdir()
        (folder / "src" / "main.rs").write_text(FAULTY)
        manifest = '[package]\nname = "faulty"\nversion = "0.1.0"\nedition = "2024"\n\n[workspace]\n'
        (folder / "Cargo.toml").write_text(manifest)
        outcome = miri(["run", "--quiet"], folder)
    return outcome.returncode != 0 and "Undefined Behavior" in outcome.stderr


def check(crate: str) -> str:
    """What Miri says of a crate's small tests that is no success; empty if they pass."""
    try:
        outcome = miri(["test", "--quiet", "--locked", "-p", crate, "--test", "small"])
    except subprocess.TimeoutExpired:
        return f"did not end within {LIMIT_SECONDS} s"
    return outcome.stdout + outcome.stderr if outcome.returncode else ""


def main() -> int:
    """Checks all crates, or those that the command line names."""
    unknown = set(sys.argv[1:]) - set(CRATES)
    if unknown:
        print(f"expected crates among {', '.join(CRATES)}; got {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    try:
        require_miri()
    except StepFailed as error:
        print(error, file=sys.stderr)
        return 1
    if not finds_the_planted_fault():
        print("Miri missed a planted fault: its silence would say nothing", file=sys.stderr)
        return 1
    failed = []
    for crate in sys.argv[1:] or CRATES:
        began = time.monotonic()
        said = check(crate)
        say(crate, f"{'failed' if said else 'no report'}: {time.monotonic() - began:.0f} s")
        if said:
            failed.append(crate)
            print(said)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
