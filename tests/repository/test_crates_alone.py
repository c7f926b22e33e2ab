"""Crate `olf` is ready for a registry: it builds from packages of what it needs, and asks for no standard library."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import crates_alone
from steps import StepFailed

NEEDED = ["sync", "percpu", "rounds", "commit", "epoch", "olf-derive", "olf"]

WITHOUT_STD = """#![no_std]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

struct Nothing;

unsafe impl core::alloc::GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: core::alloc::Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: core::alloc::Layout) {}
}

#[global_allocator]
static NOTHING: Nothing = Nothing;

pub fn limits() -> olf::Limits {
    olf::Limits { threads: olf::MOST_THREADS, lists: 1 }
}
"""
"""Does not build if anything underneath has the standard library, which has a panic handler of its own."""


def test_a_copy_needs_nothing_but_itself(tmp_path: Path) -> None:
    assert crates_alone.copy("olf", tmp_path / "copy") == crates_alone.closure("olf")
    assert set(crates_alone.closure("olf")) == set(NEEDED)
    manifest = (tmp_path / "copy/olf/Cargo.toml").read_text()
    assert 'name = "commutant-olf"' in manifest
    assert 'sync = { package = "commutant-sync"' in manifest
    assert "workspace" not in manifest
    assert "dev-dependencies" not in manifest


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(StepFailed, match="expected an empty folder"):
        crates_alone.copy("olf", tmp_path)
    assert crates_alone.main([str(tmp_path)]) == 1
    assert crates_alone.main(["--help"]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.long
def test_packages_build_alone(tmp_path: Path) -> None:
    own = crates_alone.copy("olf", tmp_path)
    names = [package.rpartition("-")[0] for package in crates_alone.pack(tmp_path)]
    assert sorted(names) == sorted(f"commutant-{name}" for name in own)


@pytest.mark.long
def test_the_crate_asks_for_no_standard_library(tmp_path: Path) -> None:
    crates_alone.copy("olf", tmp_path / "copy")
    program = tmp_path / "program"
    (program / "src").mkdir(parents=True)
    (program / "src/lib.rs").write_text(WITHOUT_STD)
    (program / "Cargo.toml").write_text(
        '[package]\nname = "program"\nversion = "0.1.0"\nedition = "2024"\n'
        '[lib]\ncrate-type = ["staticlib"]\n[profile.dev]\npanic = "abort"\n[workspace]\n'
        '[dependencies]\nolf = { package = "commutant-olf", path = "../copy/olf", default-features = false }\n'
    )

    def build() -> subprocess.CompletedProcess[str]:
        command = ["cargo", "build", "--offline", "--quiet"]
        return subprocess.run(command, cwd=program, capture_output=True, text=True, check=False)

    built = build()
    assert built.returncode == 0, built.stderr
    file = tmp_path / "copy/sync/src/lib.rs"
    file.write_text(file.read_text() + "\nextern crate std as planted;\n")
    assert "panic_impl" in build().stderr
