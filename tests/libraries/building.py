"""Adapters for tests: built from sources in this folder, and run in one session."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from commutant.corpus import ExpectedOutcome, Order, PlacedCall
from commutant.mtrace.finding import Finding
from commutant.targets.base import Job, WindowRecord
from commutant.targets.library import INCLUDE, RUST_CRATE
from commutant.targets.process.session import ProcessSession
from commutant.targets.registry import load_target
from commutant.testgen import TestCase

SOURCES = Path(__file__).resolve().parent / "sources"

_C = ("gcc", "-O2", "-g", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")
_CPP = ("g++", "-std=c++17", "-O2", "-g", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")


def build(folder: Path, name: str, *sources: str | Path, extra: Sequence[str] = ()) -> Path:
    """Compiles sources of `sources/` (or anywhere) to a shared object in the folder; `extra` has options of a compiler,
    or for Rust further lines of dependencies."""
    paths = [source if isinstance(source, Path) else SOURCES / source for source in sources]
    if paths[0].suffix == ".rs":
        return _build_rust(folder, name, paths[0], extra)
    compiler = _CPP if paths[0].suffix == ".cpp" else _C
    built = folder / f"{name}.so"
    command = [*compiler, f"-I{INCLUDE}", f"-I{SOURCES}", *map(str, paths), "-o", str(built), *extra]
    subprocess.run(command, check=True)
    return built


def _build_rust(folder: Path, name: str, source: Path, dependencies: Sequence[str]) -> Path:
    """Compiles one file to an adapter, against the crate for adapters and what else it depends on."""
    lines = "".join(f"{line}\n" for line in dependencies)
    (folder / "Cargo.toml").write_text(
        f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n'
        f'[lib]\npath = "{source}"\ncrate-type = ["cdylib"]\n'
        f'[dependencies]\ncommutant-adapter = {{ path = "{RUST_CRATE}" }}\n{lines}'
        "[profile.release]\nopt-level = 2\ndebug = true\n[workspace]\n"
    )
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target"), "RUSTFLAGS": "-D warnings"}
    subprocess.run(["cargo", "build", "--release", "--offline", "--quiet"], cwd=folder, env=environment, check=True)
    return folder / "target/release" / f"lib{name}.so"


@contextmanager
def session(path: Path, options: str = "") -> Iterator[ProcessSession]:
    """A session with an adapter, after the self-test."""
    target = load_target(f"library:path={path}{options}")
    try:
        target.start(lambda _: None, 2)
        (session,) = target.sessions(1)
        assert isinstance(session, ProcessSession)
        yield session
    finally:
        target.close()


def pair(call: str, arguments: Sequence[Mapping[str, object]] = ({}, {}), result: object = 0) -> TestCase:
    """A test in which two cores make a call, with these arguments, that gives the same in each order."""
    outcomes = (ExpectedOutcome((result, result), ()),)
    test = TestCase(
        id="",
        level="conflict",
        path=0,
        equivalence_class="planted",
        calls=tuple(PlacedCall(call, dict(arguments[core]), 0, core, core) for core in (0, 1)),
        setup=(),
        observe=(),
        orders=(Order((0, 1), outcomes), Order((1, 0), outcomes)),
    )
    return replace(test, id=test.content_id())


def both_orders(*tests: TestCase) -> list[Job]:
    return [Job(test, order) for test in tests for order in (0, 1)]


@dataclass(frozen=True)
class Planted:
    """A fault of a file of canaries: the variable that is shared, and the lines of its accesses."""

    name: str
    variable: str
    lines: frozenset[int]

    def is_named(self, name: str) -> bool:
        """Whether a finding's variable is this one: a name that ends with `*` is the beginning of one."""
        return name.startswith(self.variable[:-1]) if self.variable.endswith("*") else name == self.variable


def planted(source: Path) -> list[Planted]:
    """The faults that a file's comments speak of: `FAULT name: variable`, and `at name` on lines."""
    text = source.read_text()
    lines: dict[str, set[int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for name in re.findall(r"(?:/\*|//) at (\w+)", line):
            lines.setdefault(name, set()).add(number)
    found = re.findall(r"FAULT (\w+): (.+?)(?: \*/)?$", text, re.MULTILINE)
    return [Planted(name, variable, frozenset(lines.get(name, ()))) for name, variable in found]


def variable(finding: Finding) -> str:
    """A finding's variable without who asked for the memory."""
    return re.sub(r" \([^()]*:\d+(; by \w+)?\)| \(by \w+\)", "", finding.name)


def accessing_lines(finding: Finding, source: Path) -> list[int | None]:
    """The lines of the source in which the two sides' innermost frames of that file are."""
    found: list[int | None] = []
    for access in (finding.first, finding.second):
        frames = (re.search(rf"{re.escape(source.name)}:(\d+)$", frame) for frame in access.stack)
        found.append(next((int(match[1]) for match in frames if match), None))
    return found


def by_test(records: Sequence[WindowRecord]) -> dict[str, list[WindowRecord]]:
    """Records by the name of their tests' first call; none is wrong."""
    grouped: dict[str, list[WindowRecord]] = {}
    for record in records:
        call = record.job.test.calls[0].call
        assert record.wrong is None and record.crashed is None, (call, record.wrong, record.crashed)
        grouped.setdefault(call, []).append(record)
    return grouped
