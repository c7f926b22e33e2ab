"""`commutant new adapter`: a project that builds, answers as an empty object does, and in which its line is found."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from commutant.cli.main import run
from commutant.lang.load import SHIPPED, load_interface
from commutant.support.errors import UsageError
from commutant.targets.base import Job
from commutant.targets.library import LANGUAGES, RUST_CRATE, new_project
from commutant.testgen import generate
from tests.libraries.building import accessing_lines, session, variable

BUILDS: dict[str, tuple[str, Sequence[Sequence[str]]]] = {
    "c": ("adapter.c", (("cmake", "-B", "build"), ("cmake", "--build", "build"))),
    "cpp": ("adapter.cpp", (("cmake", "-B", "build"), ("cmake", "--build", "build"))),
    "rust": ("src/lib.rs", (("cargo", "build", "--release", "--offline", "--quiet"),)),
}
WITH_COMMANDS = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "CARGO_TARGET_DIR": "target",
}


def test_every_language_has_a_build() -> None:
    assert set(BUILDS) == set(LANGUAGES)


@pytest.mark.parametrize("language", BUILDS)
def test_a_new_project_builds_runs_and_finds_its_planted_line(language: str, tmp_path: Path) -> None:
    model = load_interface("map")
    built = new_project(model, "map", language, tmp_path / "project").built
    source, commands = BUILDS[language]
    for command in commands:
        subprocess.run(command, cwd=tmp_path / "project", env=WITH_COMMANDS, check=True, stdout=subprocess.DEVNULL)
    tests = tuple(generate(model, calls=["get", "remove"]).tests)
    with session(built) as running:
        records = [record for record in running.run([Job(test, 0) for test in tests]) if record.wrong is None]
    assert records, "an empty object answers some test as the model does"
    text = (tmp_path / "project" / source).read_text().splitlines()
    planted = {number for number, line in enumerate(text, 1) if re.search(r"calls(\+\+|\.fetch_add)", line)}
    for record in records:
        assert [variable(finding).lower() for finding in record.findings] in (["struct object.calls"], ["object.calls"])
        assert planted.issuperset(accessing_lines(record.findings[0], Path(source)))


@pytest.mark.parametrize("language", BUILDS)
def test_every_shipped_interface_of_a_library_has_a_project(language: str, tmp_path: Path) -> None:
    names = [name for name, where in SHIPPED.items() if ".libraries." in where]
    assert len(names) >= 7
    for name in names:
        new_project(load_interface(name), name, language, tmp_path / name)
        text = (tmp_path / name / BUILDS[language][0]).read_text()
        for signature in load_interface(name).signatures():
            assert f'"{signature.name}(' in text
    with pytest.raises(UsageError, match="exists already"):
        new_project(load_interface("map"), "map", language, tmp_path / "map")


def test_the_command_says_what_to_do_next(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "commutant",
        "new",
        "adapter",
        "queue",
        "--lang",
        "c",
        "-o",
        str(tmp_path / "mine"),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cmake -B build && cmake --build build" in answer.stdout
    assert "commutant check queue --target library:path=build/adapter.so" in answer.stdout
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 2 and len(again.stderr.splitlines()) == 1


@pytest.mark.parametrize(("written", "file"), [("c++", "adapter.cpp"), ("C++", "adapter.cpp"), ("rs", "src/lib.rs")])
def test_a_language_is_known_as_people_write_it(written: str, file: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["new", "adapter", "map", "--lang", written]) == 0
    assert (tmp_path / "map-adapter" / file).is_file()


@pytest.mark.parametrize(
    ("language", "answers"),
    [
        ("c", ("/* where it succeeds: commutant_member(result, number); */",)),
        ("cpp", ("// where it succeeds: commutant_member(result, number);",)),
        ("rust", ("// where it succeeds: Ok(Member(number))",)),
    ],
)
def test_a_new_project_says_how_a_call_answers_that_succeeds(language: str, answers, tmp_path: Path) -> None:
    """The empty object of a map fails in `get`: a first adapter answered a number there, and 56 tests were wrong."""
    new_project(load_interface("map"), "map", language, tmp_path / "project")
    text = (tmp_path / "project" / BUILDS[language][0]).read_text()
    assert [line.strip() for line in text.splitlines() if "where it succeeds" in line] == [*answers]


def test_a_models_file_is_found_from_within_the_project(tmp_path: Path) -> None:
    def command(*arguments: str, folder: Path) -> str:
        line = [sys.executable, "-m", "commutant", *arguments]
        return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False).stdout

    command("new", "model", "store", folder=tmp_path)
    said = command("new", "adapter", "store.py", "--lang", "c", "-o", "mine", folder=tmp_path)
    (line,) = (line.strip() for line in said.splitlines() if "commutant check" in line)
    assert line == "commutant check ../store.py --target library:path=build/adapter.so"
    assert "commutant check ../store.py --target" in (tmp_path / "mine" / "adapter.c").read_text()
    for build in BUILDS["c"][1]:
        subprocess.run(build, cwd=tmp_path / "mine", check=True, stdout=subprocess.DEVNULL)
    assert "struct object.calls" in command(*line.split()[1:], folder=tmp_path / "mine")


GATES: dict[str, Sequence[str]] = {
    "c": ("ctest", "--test-dir", "build", "--output-on-failure"),
    "cpp": ("ctest", "--test-dir", "build", "--output-on-failure"),
    "rust": ("cargo", "test", "--offline", "--quiet"),
}
COUNTING = {
    "c": (
        ("own->calls++;", "own->calls += arguments[0].number;", ""),
        ("commutant_number(result, 0);", "commutant_number(result, own->calls);"),
    ),
    "cpp": (
        ("object.calls++;", "object.calls += arguments[0].number;", ""),
        ("commutant_number(result, 0);", "commutant_number(result, object.calls);"),
    ),
    "rust": (
        ("object.calls.fetch_add(1, Relaxed);", "object.calls.fetch_add(_arguments.number(0), Relaxed);", ""),
        ("    0\n", "    object.calls.load(Relaxed)\n"),
    ),
}
"""What makes a new project of `counter` a counter: its planted line in `add` and in `read`, and what `read` answers."""
MORE = {
    "c": "static long more[32]; more[16]++;",
    "cpp": "static long more[32]; more[16]++;",
    "rust": "static MORE: AtomicI64 = AtomicI64::new(0); MORE.fetch_add(1, Relaxed);",
}
"""A second line that all calls share, as a change of the library might bring it."""


@pytest.mark.parametrize("language", ["c", "rust", pytest.param("cpp", marks=pytest.mark.long)])
def test_the_gate_of_a_new_project_fails_on_sharing_that_its_baseline_does_not_know(
    language: str, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    built = new_project(load_interface("counter"), "counter", language, folder).built
    source, builds = BUILDS[language]

    def command(*line: str) -> tuple[int, str]:
        answer = subprocess.run(line, cwd=folder, env=WITH_COMMANDS, capture_output=True, text=True, check=False)
        return answer.returncode, answer.stdout + answer.stderr

    def gate() -> tuple[int, str]:
        for line in builds:
            assert command(*line)[0] == 0
        return command(*GATES[language])

    (planted, adds, reads), answer = COUNTING[language]
    text = (folder / source).read_text().replace(planted, adds, 1).replace(planted, reads, 1).replace(*answer)
    (folder / source).write_text(text)
    code, told = gate()
    assert code != 0 and "object.calls" in told.lower(), told
    target = f"library:path={built.relative_to(folder)}"
    assert command("commutant", "check", "counter", "--target", target, "-o", "baseline")[0] == 0
    code, told = gate()
    assert code == 0, told
    (folder / source).write_text(text.replace(adds, adds + MORE[language]))
    code, told = gate()
    assert code != 0 and "more" in told.lower(), told


def test_the_crate_for_adapters_passes_its_own_tests(tmp_path: Path) -> None:
    # Of a copy: cargo would put a lock file next to the sources, and they would no longer be what setup has built.
    crate = shutil.copytree(RUST_CRATE, tmp_path / "crate")
    subprocess.run(["cargo", "test", "--offline", "--quiet"], cwd=crate, check=True)


def test_rust_has_the_types_that_the_model_says(tmp_path: Path) -> None:
    model = f"{Path(__file__).with_name('job_queue.py')}:JobQueue"
    new_project(load_interface(model), model, "rust", tmp_path / "queue")
    text = (tmp_path / "queue/src/lib.rs").read_text()
    for call, answer in (
        ("submit", "Handle"),
        ("lease", "Result<Handle, Errno>"),
        ("payload", "Result<Member, Errno>"),
        ("ack", "Result<i64, Errno>"),
    ):
        assert f"fn {call}(object: &Object, _arguments: Arguments) -> {answer} {{" in text
    assert text.count("Err(Errno(11)) // EAGAIN") == 1
    new_project(load_interface("counter"), "counter", "rust", tmp_path / "counter")
    assert "fn read(object: &Object, _arguments: Arguments) -> i64 {" in (tmp_path / "counter/src/lib.rs").read_text()


@pytest.mark.parametrize("language", BUILDS)
def test_what_is_built_and_run_is_not_kept(language: str, tmp_path: Path) -> None:
    new_project(load_interface("map"), "map", language, tmp_path / "project")
    ignored = (tmp_path / "project/.gitignore").read_text().splitlines()
    assert ignored == ["/target/" if language == "rust" else "/build/", "/runs/"]
