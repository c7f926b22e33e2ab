"""The tests of the crates as pieces of work: one build, then each program of tests by itself, as cargo would run it.

Cargo runs programs one after the other. Here workers take them side by side, with Python tests between them. What cargo
gives a program (its folder, a few variables, where libraries are) it gets here too, and `limited.py` ends one that
hangs. Documentation tests are cargo's own, and stay with it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from lanes import Seconds
from steps import ROOT, run
from work import Work

RUST = ["--workspace", "--locked", "--offline"]
SEED = 2013
"""Of all random cases: what passes once passes always. Without it, `cargo test` and `pytest` draw others each time."""
RUST_SEED = {"PROPTEST_RNG_SEED": str(SEED)}
SCHEDULED = {"RUSTFLAGS": "--cfg shuttle", "CARGO_TARGET_DIR": str(ROOT / "target" / "shuttle")}
"""For threads of which a scheduler lets one run at a time (crates/structures/sync); all is built apart."""
LIMITED = str(ROOT / "scripts" / "limited.py")


def programs_of(printed: str) -> list[tuple[str, Path, Path]]:
    """Name (`crate/program`), executable and crate's folder of each program of tests that a build of cargo's made.

    `printed` are the JSON messages of `cargo test --no-run`. The unit tests of a crate's library are `crate/lib`.
    """
    found = []
    for line in printed.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") != "compiler-artifact" or not message["profile"]["test"]:
            continue
        if message.get("executable") is None:
            continue
        folder = Path(message["manifest_path"]).parent
        target = message["target"]
        kind = target["kind"][0]
        name = {"test": target["name"], "bin": f"{target['name']} (bin)"}.get(kind, "lib")
        found.append((f"{folder.name}/{name}", Path(message["executable"]), folder))
    return sorted(found)


def program(suite: str, cargo: str, built: tuple[str, Path, Path], seconds: float, variables: dict[str, str]) -> Work:
    """One program of tests as cargo would run it; tests that pass print as well, how much they looked at."""
    name, executable, folder = built
    return Work(
        suite,
        f"{suite} {name}",
        [LIMITED, str(executable), "--quiet", "--show-output"],
        seconds,
        folder,
        {
            **variables,
            "CARGO": cargo,
            "CARGO_MANIFEST_DIR": str(folder),
            "CARGO_PKG_NAME": folder.name,
            "LD_LIBRARY_PATH": os.pathsep.join(
                [str(executable.parent), str(executable.parent.parent), *_library_path()]
            ),
        },
    )


def _library_path() -> list[str]:
    sysroot = run(["rustc", "--print", "sysroot"]).strip()
    libraries = run(["rustc", "--print", "target-libdir"]).strip()  # what the tests of a macro are linked to
    return [f"{sysroot}/lib", libraries, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]


def tests(cargo: str, kept: Seconds, whole: bool) -> Work:
    """The build of all tests, which then gives their programs: all, or those that are quick."""

    def programs(printed: str) -> list[Work]:
        return [
            program("cargo test", cargo, built, kept.of_program(built[0]), RUST_SEED)
            for built in programs_of(printed)
            if whole or kept.is_quick_program(built[0])
        ]

    return _build("cargo test", [cargo, "test", *RUST], RUST_SEED, programs)


def documentation(cargo: str) -> Work:
    """The tests in the crates' documentation, which cargo builds and runs."""
    return Work("cargo test --doc", "cargo test --doc", [cargo, "test", "--quiet", "--doc", *RUST], is_build=True)


def histories(cargo: str, kept: Seconds) -> Work:
    """The build of all that is made for a scheduler, which then gives the programs."""
    crates, names = scheduled_tests()
    chosen = [*(f"--package={crate}" for crate in crates), *(part for name in names for part in ("--test", name))]
    command = [cargo, "test", "--profile=schedules", *chosen, *RUST[1:]]

    def programs(printed: str) -> list[Work]:
        return [
            program("histories", cargo, built, kept.of_schedules(built[0]), {**SCHEDULED, **RUST_SEED})
            for built in programs_of(printed)
        ]

    return _build("histories", command, SCHEDULED, programs)


def _build(
    suite: str, command: Sequence[str], variables: dict[str, str], programs: Callable[[str], list[Work]]
) -> Work:
    whole = [*command, "--no-run", "--message-format=json-render-diagnostics"]
    return Work(suite, f"build of {suite}", whole, variables=variables, then=programs, is_build=True)


SEEKS_SCHEDULES = r"must_be_caught|must_catch|\bovertake|\bexplore\(|(?m:^#!\[cfg\(shuttle\)\])"
"""What a test program says that is made for a scheduler."""


def test_programs() -> list[tuple[str, str, Path]]:
    """Crate, name and main file of each program below a crate's `tests/`."""
    files = [*ROOT.glob("crates/*/*/tests/*.rs"), *ROOT.glob("crates/*/*/tests/*/main.rs")]
    found = []
    for file in files:
        name, folder = (file.parent.name, file.parent.parent) if file.name == "main.rs" else (file.stem, file.parent)
        found.append((folder.parent.name, name, file))
    return sorted(found)


def scheduled_tests() -> tuple[list[str], list[str]]:
    """The crates and test programs that plant faults, themselves or in a module of theirs, let threads be overtaken,
    or are nothing without a scheduler. Only the build under `--cfg shuttle` can do so: what is left out has never been
    seen to fail, and of its plans the system's threads overtake each other by chance, if at all."""
    crates, tests = set(), set()
    for crate, name, file in test_programs():
        text = file.read_text(encoding="utf-8")
        modules = [file.parent / module for module in re.findall(r"(?m)^mod (\w+);", text)]
        parts = [text, *(part.read_text(encoding="utf-8") for module in modules for part in module_files(module))]
        if any(re.search(SEEKS_SCHEDULES, part) for part in parts):
            crates.add(crate)
            tests.add(name)
    return sorted(crates), sorted(tests)


def module_files(module: Path) -> list[Path]:
    """The files of a module that lies at this path, in one file or in a folder."""
    file = module.with_suffix(".rs")
    return [*([file] if file.is_file() else []), *module.glob("**/*.rs")]
