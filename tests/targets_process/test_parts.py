"""What needs no emulator: names of programs, and programs that do not start."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal

import pytest

from commutant import _native
from commutant.guest import user_emulator as emulator
from commutant.guest.versions import PROGRAMS
from commutant.mtrace.finding import Access, Finding
from commutant.support import artifacts
from commutant.support.errors import RunError
from commutant.targets.process.objects import ObjectMap
from commutant.targets.process.program import FixedProgram, MemoryRegion, load_program
from commutant.targets.process.session import ProcessSession
from commutant.targets.process.traced import TracedProgram
from commutant.targets.runner import ask, read_calls, signature
from commutant.targets.stacks import Stacks, distinct_names, without_copy

NO_NAMES = _native.ProgramNames([])
NO_STACKS = Stacks(Path("p"), [])


def access(core: int, offset: int) -> Access:
    return Access(core, True, offset, 8, "f", ("f+0x1",))


def test_findings_in_a_region_are_named_after_it_and_the_bytes_of_the_line() -> None:
    regions = (MemoryRegion(0x1000, 0x2000, "low"), MemoryRegion(0x2000, 0x3000, "high"))
    program = FixedProgram(Path("p"), (), NO_NAMES, NO_STACKS, regions)

    def name(line: int, sharing: str, first: int, second: int) -> str:
        assert sharing in ("true", "false")
        kind = "true" if sharing == "true" else "false"
        finding = Finding(line, "memory without symbol", "", kind, access(0, first), access(1, second))  # type: ignore[arg-type]
        return program.in_region(finding).name

    assert name(0x1040, "true", 8, 16) == "low.+0x10"
    assert name(0x2000, "true", 0, 0) == "high.+0x0"
    assert name(0x1FC0, "false", 24, 8) == "low.+0x8 | +0x18"
    assert name(0x3000, "true", 0, 0) == "memory without symbol"
    assert name(0xFC0, "true", 0, 0) == "memory without symbol"


LIST = b"""kind 128 entry
field 0 next
field 16 state
field 64 value
memory 1000 2000
kind 64 slot
field 0 word
memory 3000 4000
"""


@pytest.fixture
def listing(tmp_path: Path) -> Iterator[BinaryIO]:
    """A list of objects that can grow."""
    with (tmp_path / "objects").open("w+b", buffering=0) as file:
        yield file


def test_findings_in_listed_memory_have_type_and_field(listing: BinaryIO) -> None:
    listing.write(LIST[:-5])  # the program is in the middle of a line
    objects = ObjectMap(listing.fileno())

    def named(line: int, first: int, second: int, sharing: Literal["true", "false"] = "true") -> Finding | None:
        return objects.named(Finding(line, "memory", "", sharing, access(0, first), access(1, second)))

    def name(line: int, first: int, second: int, sharing: Literal["true", "false"] = "true") -> str | None:
        finding = named(line, first, second, sharing)
        return finding and finding.name

    assert name(0x1000, 0, 8) == name(0x1F80, 8, 8) == "entry.next"
    assert name(0x1080, 16, 24) == "entry.state"
    assert name(0x10C0, 0, 32) == "entry.value"
    assert name(0x1000, 20, 0, "false") == "entry.next | state"
    assert name(0x1000, 20, 24, "false") == "entry.state"
    assert name(0x3000, 0, 0) is None and name(0x2000, 0, 0) is None and name(0xFC0, 0, 0) is None
    listing.write(LIST[-5:])
    assert name(0x3FC0, 63, 8) == "slot.word"
    line = named(0x1000, 0, 0)
    assert line is not None
    assert [(one.offset, one.size_bytes, one.name) for one in line.fields] == [
        (0, 16, "entry.next"),
        (16, 48, "entry.state"),
    ]


TABLES = b"""kind 192 record
field 0 state
field 64 magazines
table 1040 1280
kind 64 array
field 0 word
whose tree/space/ a space
whose tree/files/file a file
memory 2000 3000
kind 256 root
field 64 mark
memory 3000 3100
"""


def test_objects_of_a_table_are_counted_from_its_start(listing: BinaryIO) -> None:
    listing.write(TABLES)
    objects = ObjectMap(listing.fileno())

    def name(line: int) -> str | None:
        finding = objects.named(Finding(line, "memory", "", "true", access(0, 0), access(1, 0)))
        return finding and finding.name

    assert [name(0x1040), name(0x1080), name(0x1100), name(0x1140)] == [
        *("record.state", "record.magazines", "record.state", "record.magazines")
    ]
    assert name(0x1240) == "record.magazines" and name(0x1280) is None
    assert objects.place(0x1170) == ("record", 0x1100)
    assert name(0x3040) == "root.mark"


def test_an_array_is_called_after_the_sources_that_reach_it(listing: BinaryIO) -> None:
    listing.write(TABLES)
    objects = ObjectMap(listing.fileno())

    def name(*stacks: tuple[str, ...]) -> str:
        first, second = (Access(core, True, 0, 8, "f", stack) for core, stack in enumerate(stacks))
        finding = objects.named(Finding(0x2000, "memory", "", "true", first, second))
        assert finding is not None
        return finding.name

    load, space, file = "load tree/array.rs:3", "fault tree/space/fault.rs:7", "f+0x1 tree/files/file.rs:9"
    assert name((load, space, file), (load, space)) == "array of a space.word"
    assert name((load, file, space), (load, file)) == "array of a file.word", "the innermost decides"
    assert name((load, space), (load, file)) == "array of a file or a space.word"
    assert name((load,), ("f+0x1",)) == "array.word"


@pytest.mark.parametrize(
    "line",
    [
        b"memory 1 2",
        b"kind 0 entry",
        b"kind 100 entry\nmemory 1 2",
        b"kind 64",
        b"field x y",
        b"\xff a b",
        b"cake 1 2",
    ],
)
def test_a_damaged_list_is_refused(listing: BinaryIO, line: bytes) -> None:
    listing.write(line + b"\n")
    with pytest.raises(RunError, match="the program's list of objects is damaged at"):
        ObjectMap(listing.fileno()).named(Finding(0, "memory", "", "true", access(0, 0), access(1, 0)))


def test_stacks_get_inlined_functions_with_their_lines() -> None:
    runner = artifacts.scalefs_runner_path()
    listed = (line.split(" ", 2) for line in ask(runner, "--symbols").splitlines())
    symbols = [(int(start, 16), int(end, 16), name) for start, end, name in listed]
    stacks = Stacks(runner, symbols)
    (start, end) = next((start, end) for start, end, name in symbols if name == "posix_calls::data::duplicate_to")
    frames = [f"posix_calls::data::duplicate_to+{offset:#x}" for offset in range(end - start)]
    finding = Finding(0, "memory", "", "true", Access(0, True, 0, 8, "f", tuple(frames)), access(1, 0))
    expanded = stacks.expanded(finding)
    inlined = [frame for frame in expanded.first.stack if "+0x" not in frame]
    of_ours = re.compile(r"\w+ crates/(?:file-system|structures)/[\w-]+/src/\w+\.rs:\d+")
    assert any(of_ours.fullmatch(frame) for frame in inlined)
    outer = [frame for frame in expanded.first.stack if "+0x" in frame]
    assert [frame.split(" ")[0] for frame in outer] == frames
    placed = [frame for frame in outer if " " in frame]
    assert len(placed) > len(outer) / 4  # how many is the compiler's choice: two thirds with 1.95, a third with 1.96
    assert all(re.search(r" crates/file-system/posix-calls/src/data\.rs:[1-9]\d*$", frame) for frame in placed)
    assert expanded.second.stack == ("f+0x1",)  # no such symbol


def test_copies_of_code_that_have_one_name_are_distinct_names_for_their_lines() -> None:
    runner = artifacts.scalefs_runner_path()
    listed = (line.split(" ", 2) for line in ask(runner, "--symbols").splitlines())
    symbols = [(int(start, 16), int(end, 16), name) for start, end, name in listed]
    apart = distinct_names(symbols)
    assert len({name for _, _, name in apart}) == len(apart)
    assert [(start, end, without_copy(name)) for start, end, name in apart] == symbols
    function = "posix_calls::data::write_file"
    copies = [one for one in apart if without_copy(one[2]) == function]
    assert len(copies) > 1
    stacks, alike = Stacks(runner, apart), Stacks(runner, symbols)
    disagree = 0
    for offset in range(min(end - start for start, end, _ in copies)):
        told = [
            stacks.expanded(
                Finding(0, "m", "", "true", Access(0, True, 0, 8, name, (f"{name}+{offset:#x}",)), access(1, 0))
            )
            for _, _, name in copies
        ]
        assert {one.first.function for one in told} == {function}
        assert all(one.first.stack[-1].startswith(f"{function}+{offset:#x}") for one in told)
        frame = f"{function}+{offset:#x}"
        stack = Access(0, True, 0, 8, "f", (frame,))
        (*_, first) = said = alike.expanded(Finding(0, "m", "", "true", stack, access(1, 0))).first.stack
        # Without their addresses, what all agree on is given, from the outermost function inwards.
        if all(one.first.stack[-len(said) :] == said for one in told):
            continue
        disagree += 1
        assert said == (frame,) and first == frame
        assert len({one.first.stack[-1] for one in told}) > 1
    assert disagree


def test_regions_depend_on_the_arguments() -> None:
    runner = artifacts.scalefs_runner_path()
    arguments = (tuple(f"--cores {n} --workers 2 --seed 1".split()) for n in (2, 200))
    few, many = (load_program(runner, one).regions for one in arguments)
    assert [region.name for region in few] == [region.name for region in many]
    assert all(left.end == right.start for left, right in itertools.pairwise(many))
    assert few[1].end < many[1].end


@pytest.mark.parametrize("contents", [None, b"", b"#!/bin/false\n"])
def test_a_runner_that_does_not_answer_is_named(tmp_path: Path, contents: bytes | None) -> None:
    path = tmp_path / "runner"
    if contents is not None:
        path.write_bytes(contents)
        path.chmod(0o755)
    for question in (lambda path: load_program(path, ()), read_calls):
        with pytest.raises(RunError, match=r"the runner does not start: .*; run `make setup` again"):
            question(path)


def test_calls_are_known_by_name_and_parameters(tmp_path: Path) -> None:
    path = tmp_path / "runner"
    path.write_text("#!/bin/sh\necho 'link(old, new)'\necho 'sync()'\n")
    path.chmod(0o755)
    assert read_calls(path) == {signature("link", ["new", "old"]), signature("sync", [])}
    path.write_text("#!/bin/sh\necho link\n")
    with pytest.raises(RunError, match="expected calls such as"):
        read_calls(path)


def test_a_program_that_cannot_be_run_ends_the_session(tmp_path: Path) -> None:
    program = FixedProgram(tmp_path / "missing", (), NO_NAMES, NO_STACKS)
    session = ProcessSession(
        lambda: TracedProgram(emulator.find_user_emulator().command, artifacts.plugin_path(), program)
    )
    try:
        with pytest.raises(RunError, match=r"it ended \(exit code 1\)"):
            session._program.results(60)
    finally:
        session.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("qemu-x86_64 version 7.1.0 (Debian)", "version 7.1.0 .* cannot trace; tested with 7.2"),
        ("hello", "expected a version, got 'hello'"),
    ],
)
def test_another_emulator_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, message: str
) -> None:
    fake = tmp_path / PROGRAMS
    fake.write_text(f"#!/bin/sh\necho '{answer}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RunError, match=message):
        emulator.find_user_emulator()


def test_an_emulator_without_plugins_is_named_with_the_package_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / PROGRAMS
    fake.write_text('#!/bin/sh\n[ "$1" = -h ] && echo "-g port -L path" || echo "qemu-x86_64 version 7.2.0"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        RunError, match=r"built without plugins, so it cannot trace; run `commutant prepare --emulator`"
    ):
        emulator.find_user_emulator()


def test_no_emulator_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RunError, match="qemu-x86_64 is not in PATH; run `commutant prepare --emulator`"):
        emulator.find_user_emulator()
