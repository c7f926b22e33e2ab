"""What needs no emulator: names of programs, and programs that do not start."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from commutant import _native, artifacts
from commutant.errors import RunError
from commutant.mtrace.finding import Access, Finding
from commutant.targets.process import emulator
from commutant.targets.process.program import Program, Region, read_regions, read_symbols
from commutant.targets.process.session import ProcessSession
from commutant.targets.runner import read_calls, signature

NO_NAMES = _native.ProgramNames([])


def access(core: int, offset: int) -> Access:
    return Access(core, True, offset, 8, "f", ("f+0x1",))


def test_findings_in_a_region_are_named_after_it_and_the_bytes_of_the_line() -> None:
    program = Program(Path("p"), (), NO_NAMES, (Region(0x1000, 0x2000, "low"), Region(0x2000, 0x3000, "high")))

    def name(line: int, sharing: str, first: int, second: int) -> str:
        assert sharing in ("true", "false")
        kind = "true" if sharing == "true" else "false"
        finding = Finding(line, "memory without symbol", "", kind, access(0, first), access(1, second))  # type: ignore[arg-type]
        return program.named(finding).name

    assert name(0x1040, "true", 8, 16) == "low.+0x10"
    assert name(0x2000, "true", 0, 0) == "high.+0x0"
    assert name(0x1FC0, "false", 24, 8) == "low.+0x8 | +0x18"
    assert name(0x3000, "true", 0, 0) == "memory without symbol"
    assert name(0xFC0, "true", 0, 0) == "memory without symbol"


def test_regions_depend_on_the_arguments() -> None:
    runner = artifacts.scalefs_runner_path()
    few, many = (read_regions(runner, f"--cores {n} --workers 2 --seed 1".split()) for n in (2, 200))
    assert [region.name for region in few] == [region.name for region in many]
    assert all(left.end == right.start for left, right in itertools.pairwise(many))
    assert few[1].end < many[1].end


@pytest.mark.parametrize("contents", [None, b"", b"#!/bin/false\n"])
def test_a_runner_that_does_not_answer_is_named(tmp_path: Path, contents: bytes | None) -> None:
    path = tmp_path / "runner"
    if contents is not None:
        path.write_bytes(contents)
        path.chmod(0o755)
    for ask in (read_symbols, read_calls):
        with pytest.raises(RunError, match=r"the runner does not start: .*; run `make setup` again"):
            ask(path)


def test_calls_are_known_by_name_and_parameters(tmp_path: Path) -> None:
    path = tmp_path / "runner"
    path.write_text("#!/bin/sh\necho 'link(old, new)'\necho 'sync()'\n")
    path.chmod(0o755)
    assert read_calls(path) == {signature("link", ["new", "old"]), signature("sync", [])}
    path.write_text("#!/bin/sh\necho link\n")
    with pytest.raises(RunError, match="expected calls such as"):
        read_calls(path)


def test_a_program_that_cannot_be_run_ends_the_session(tmp_path: Path) -> None:
    program = Program(tmp_path / "missing", (), NO_NAMES)
    session = ProcessSession(emulator.find_user_emulator().path, artifacts.plugin_path(), program)
    try:
        with pytest.raises(RunError, match=r"it ended \(exit code 1\)"):
            session._traced.results(60)
    finally:
        session.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("qemu-x86_64 version 7.1.0 (Debian)", "version 7.1.0 .* cannot trace; expected 7.2"),
        ("qemu-x86_64 version 9.0.0", "cannot trace"),
        ("hello", "'hello.*' cannot trace"),
    ],
)
def test_another_emulator_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, message: str
) -> None:
    fake = tmp_path / emulator.PROGRAM
    fake.write_text(f"#!/bin/sh\necho '{answer}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(RunError, match=message):
        emulator.find_user_emulator()


def test_no_emulator_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="qemu-x86_64 is not in PATH; run `make setup`"):
        emulator.find_user_emulator()
