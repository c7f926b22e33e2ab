"""The crates that need no standard library, checked without one.

A library that has a handler of panics of its own has no place for the standard library, which brings another one. So
one that uses all these crates, without their features, is checked: for this machine, and for a target that has no
standard library at all, where that is installed (`rustup target add x86_64-unknown-none`).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from steps import ROOT, run, say
from work import Work

SUITE = "no_std"
BARE = "x86_64-unknown-none"

_HEAD = """#![no_std]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
"""


def crates() -> dict[str, Path]:
    """By name: the folders of crates that say of themselves that they need no standard library."""
    found = {}
    for library in sorted(ROOT.glob("crates/*/*/src/lib.rs")):
        if re.search(r"(?m)^#!\[(?:cfg_attr\(.*, )?no_std\b", library.read_text(encoding="utf-8")):
            found[library.parent.parent.name] = library.parent.parent
    return found


def write(folder: Path, used: Mapping[str, Path], features: Mapping[str, Sequence[str]] | None = None) -> None:
    """Writes the library into a folder: it uses these crates, without features but for those that are named."""
    (folder / "src").mkdir(parents=True, exist_ok=True)

    def needed(name: str, path: Path) -> str:
        asked = json.dumps((features or {}).get(name, []))
        return f'{name} = {{ path = "{path}", default-features = false, features = {asked} }}'

    own = ["[package]", 'name = "without-std"', 'edition = "2024"', "[workspace]", "[dependencies]"]
    manifest = [*own, *(needed(name, path) for name, path in used.items())]
    (folder / "Cargo.toml").write_text("\n".join(manifest) + "\n")
    uses = [f"use {name.replace('-', '_')} as _;" for name in used]
    (folder / "src" / "lib.rs").write_text("\n".join([_HEAD, *uses]) + "\n")
    shutil.copy2(ROOT / "Cargo.lock", folder)


def command(cargo: str, folder: Path, *options: str) -> list[str]:
    """Checks the library of a folder."""
    target = ["--target-dir", str(folder / "target"), *options]
    return [cargo, "check", "--quiet", "--offline", "--manifest-path", str(folder / "Cargo.toml"), *target]


def is_installed(target: str) -> bool:
    """Whether there is a library for a target."""
    return Path(run(["rustc", "--print", "target-libdir", "--target", target]).strip()).is_dir()


def pieces(cargo: str) -> list[Work]:
    """The checks: for this machine, and for the target without a standard library, or a line that it is not there."""
    folder = ROOT / "target" / "no-std"
    write(folder, crates())
    targets: list[tuple[str, list[str]]] = [("this machine", [])]
    if is_installed(BARE):
        targets.append((BARE, ["--target", BARE]))
    else:
        say(SUITE, f"{BARE} skipped: `rustup target add {BARE}` installs it")
    return [
        Work(SUITE, f"{SUITE} for {name}", command(cargo, folder, *options), is_build=True) for name, options in targets
    ]
