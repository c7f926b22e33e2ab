"""The scripts behind the Makefile: what is done again, and what a user reads when something is missing."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import limited as limited_script
import rust
import setup
import steps
import system_packages
import verify
from tests.repository.tree import ROOT, command


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository for stamps and commands."""
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    monkeypatch.setattr(steps, "STAMPS", tmp_path / "stamps")
    return tmp_path


def test_a_step_is_done_again_if_content_changes_and_not_if_only_times_do(repository: Path) -> None:
    source = repository / "source"
    source.write_text("one")
    steps.record("step", steps.content_hash([source]))
    source.touch()
    assert steps.is_current("step", steps.content_hash([source]))
    source.write_text("two")
    assert not steps.is_current("step", steps.content_hash([source]))


def test_a_step_is_done_again_if_its_product_is_gone(repository: Path) -> None:
    product = repository / "product"
    product.touch()
    steps.record("step", "key")
    assert steps.is_current("step", "key", [product])
    product.unlink()
    assert not steps.is_current("step", "key", [product])


def test_moving_content_between_files_changes_the_hash(repository: Path) -> None:
    (repository / "a").write_text("xy")
    (repository / "b").write_text("")
    before = steps.content_hash(steps.files_below("a", "b"))
    (repository / "a").write_text("x")
    (repository / "b").write_text("y")
    assert steps.content_hash(steps.files_below("a", "b")) != before


def test_a_failing_command_shows_what_it_printed_and_itself(repository: Path) -> None:
    program = "import sys; print('to output'); print('to error', file=sys.stderr); sys.exit(7)"
    with pytest.raises(steps.StepFailed) as failure:
        steps.run([sys.executable, "-c", program])
    for part in ("to output", "to error", "-c", "returned 7"):
        assert part in str(failure.value)


def test_a_long_command_shows_its_lines_but_those_that_say_nothing(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "print(); print('running 0 tests'); print('running 2 tests'); raise SystemExit(3)"
    with pytest.raises(steps.StepFailed, match="returned 3"):
        steps.stream([sys.executable, "-c", program], without=verify.NO_TESTS)
    assert capsys.readouterr().out == "running 2 tests\n"


def test_both_suites_draw_the_same_random_cases_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that had passed could fail by a case that nobody had drawn before."""
    commands: list[list[str]] = []

    def noted(argv: list[str]) -> str:
        commands.append(argv)
        return ""

    monkeypatch.setattr(verify, "run", noted)
    assert verify.test("cargo") == []
    rust, histories, *python = sorted(commands, key=lambda argv: _ORDER.index(verify_name(argv)))
    assert "RUSTFLAGS=--cfg shuttle" in histories, "rounds of chosen schedules are drawn by their number"
    assert rust[:4] == ["env", f"PROPTEST_RNG_SEED={verify.SEED}", "cargo", "test"]
    for pytest_command in python:
        assert f"--hypothesis-seed={verify.SEED}" in pytest_command


def test_what_plants_a_fault_runs_in_the_build_that_can_plant_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list kept by hand had left out eight programs, whose planted faults nobody had looked for. Then two were left
    out that plant none: their threads, the system's, were overtaken by chance alone."""
    crates, tests = verify.scheduled_tests()
    assert {"scalefs", "transact", "radix"} <= set(crates)
    assert {"deaths", "family_histories", "socket_calls", "times"} <= set(tests)
    sources = {
        "room/plain/tests/data.rs": "fn it_works() {}",
        "room/one/tests/chosen.rs": "mod helper;",
        "room/one/tests/helper/mod.rs": "fn planted() { must_be_caught(); }",
        "room/two/tests/whole/main.rs": "mod part;",
        "room/two/tests/whole/part.rs": "fn planted() { must_be_caught(); }",
        "room/two/tests/other.rs": "fn it_works() {}",
        "room/two/tests/few_calls.rs": "fn calls_have_an_order() { overtake_each(plans, check); }",
        "room/three/tests/rounds.rs": "//! Rounds.\n#![cfg(shuttle)]\nfn it_works() {}",
    }
    for name, text in sources.items():
        source = tmp_path / "crates" / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
    monkeypatch.setattr(verify, "ROOT", tmp_path)
    assert verify.scheduled_tests() == (["one", "three", "two"], ["chosen", "few_calls", "rounds", "whole"])


_ORDER = ["cargo test", "histories", "sanitizers", "libraries", "pytest"]


def verify_name(command: list[str]) -> str:
    """Which suite has the command."""
    return next(suite.name for suite in verify.suites("cargo") if suite.command == command)


def test_the_suites_leave_no_file_of_tests_out_and_run_none_twice() -> None:
    suites = {suite.name: suite.command for suite in verify.suites("cargo")}
    assert sorted(suites) == sorted(_ORDER)
    for name, path in verify.BUILDING.items():
        assert (ROOT / path).exists()
        assert path in suites[name]
        assert f"--ignore={path}" in suites["pytest"]


def test_a_lane_that_is_free_takes_the_next_suite(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lanes of fixed suites left a core idle once the shorter one was done. Here the first suite waits for the last."""
    pipe = repository / "pipe"
    os.mkfifo(pipe)
    programs = {"waits": f"open({str(pipe)!r}).read()", "one": "", "two": "", "last": f"open({str(pipe)!r}, 'w')"}
    suites = [verify.Suite(name, [sys.executable, "-c", program]) for name, program in programs.items()]
    monkeypatch.setattr(verify, "suites", lambda cargo: suites)
    assert verify.test("cargo") == []
    ended = [line.split()[0] for line in capsys.readouterr().out.splitlines()][1:]
    assert ended[:2] == ["one", "two"] and sorted(ended[2:]) == ["last", "waits"]


def test_a_suite_that_fails_shows_what_it_printed_and_the_others_run(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "print('test result: ok. 3 passed; 0 failed'); print('4 passed, 1 skipped in 2 s'); "
    program += "print('400 histories'); print('1500 histories'); print('12 deaths at most')"
    broken = verify.Suite(
        "broken", [sys.executable, "-c", "print('running 0 tests'); print('why'); raise SystemExit(1)"]
    )
    whole = verify.Suite("whole", [sys.executable, "-c", program])
    monkeypatch.setattr(verify, "suites", lambda cargo: [broken, whole, whole])
    assert verify.test("cargo") == ["broken"]
    printed = capsys.readouterr()
    assert printed.err.startswith("why\n") and printed.err.endswith("broken failed\n")
    assert printed.out.count(" s, 7 tests, 1,900 histories, 1 skipped\n") == 2


def test_a_program_that_hangs_is_ended_with_the_stacks_of_all_threads(tmp_path: Path) -> None:
    source = tmp_path / "hangs.c"
    source.write_text(
        "#include <pthread.h>\n#include <unistd.h>\n"
        "static void *waits_for_ever(void *unused) { for (;;) pause(); return unused; }\n"
        "int main(void) { pthread_t thread; pthread_create(&thread, 0, waits_for_ever, 0);\n"
        "                 return pthread_join(thread, 0); }\n"
    )
    program = tmp_path / "deps" / "hangs"
    program.parent.mkdir()
    subprocess.run(["gcc", "-g", "-pthread", source, "-o", program], check=True)
    command: list[str | Path] = [sys.executable, ROOT / "scripts" / "limited.py", program, "argument"]
    limited = {**os.environ, "COMMUTANT_TEST_LIMIT_SECONDS": "2"}
    ended = subprocess.run(command, capture_output=True, text=True, env=limited)
    assert ended.returncode == limited_script.TIMED_OUT
    assert ended.stderr.startswith("hangs argument: not done after 2 s; its threads:\n")
    for part in ("Thread 1", "Thread 2", "waits_for_ever", "main ("):
        assert part in ended.stderr, ended.stderr
    assert not [path for path in Path("/proc").glob("[0-9]*/exe") if path.exists() and path.readlink() == program]


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -ABRT $$", 128 + 6), ("exit 0", 0)])
def test_a_program_within_its_limit_ends_as_it_does(script: str, code: int, tmp_path: Path) -> None:
    shell = tmp_path / "deps" / "sh"
    shell.parent.mkdir()
    shell.symlink_to("/bin/sh")
    command: list[str | Path] = [sys.executable, ROOT / "scripts" / "limited.py", shell, "-c", script]
    assert subprocess.run(command).returncode == code


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_program_ends_with_who_limits_it(how: signal.Signals, tmp_path: Path) -> None:
    """Killed, it can end nothing itself; what it had started went on for ever."""
    shell = tmp_path / "deps" / "sh"
    shell.parent.mkdir()
    shell.symlink_to("/bin/sh")
    command: list[str | Path] = [sys.executable, ROOT / "scripts" / "limited.py", shell, "-c", "echo $$; read never"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as limited:
        assert limited.stdin and limited.stdout
        limited.stdout.readline()
        limited.send_signal(how)
        ended, _, _ = select.select([limited.stdout], [], [], 30)
        assert ended and limited.stdout.read() == "", "the end: nobody has the pipe any more"


def test_what_is_no_test_has_no_limit() -> None:
    limited = {**os.environ, "COMMUTANT_TEST_LIMIT_SECONDS": "0.01"}
    command: list[str | Path] = [sys.executable, ROOT / "scripts" / "limited.py", "sh", "-c", "sleep 0.3; exit 3"]
    assert subprocess.run(command, env=limited).returncode == 3


def test_cargo_starts_every_program_by_it() -> None:
    """From any folder of the repository, whoever calls cargo."""
    config = tomllib.loads((ROOT / ".cargo" / "config.toml").read_text())
    assert config["target"]["cfg(all())"]["runner"] == ["scripts/limited.py"]
    assert os.access(ROOT / "scripts" / "limited.py", os.X_OK)


def test_the_long_run_names_each_test_with_its_result(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A dot for each said neither what runs for the last half hour nor, until the very end, what has failed."""
    (repository / "pytest.ini").write_text("[pytest]\nmarkers = long\n")
    (repository / "test_some.py").write_text(
        "import pytest\n\n\n@pytest.mark.long\n@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_one(n):\n    assert n == 1\n\n\ndef test_quick():\n    assert False\n"
    )
    assert verify.test_long([]) == ["pytest -m long"]
    output = capfd.readouterr().out
    assert "test_some.py::test_one[1] PASSED" in output and "test_some.py::test_one[2] FAILED" in output
    assert "test_quick" not in output
    assert verify.main(["--long", "test_some.py::test_one[1]"]) == 0
    assert "verify.py --long test_some.py::test_one[1] passed" in capfd.readouterr().out


def test_a_missing_command_is_named(repository: Path) -> None:
    with pytest.raises(steps.StepFailed, match="cannot start `no-such-command --version`"):
        steps.run(["no-such-command", "--version"])


def _toolchain(folder: Path, release: str, host: str = "x86_64-unknown-linux-gnu") -> None:
    for name in ("cargo", "rustc"):
        program = folder / name
        program.write_text(f"#!/bin/sh\nprintf 'rustc {release}\\nhost: {host}\\nrelease: {release}\\n'\n")
        program.chmod(0o755)


def test_rust_that_is_missing_too_old_or_for_other_hardware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(steps, "VENV", tmp_path / "venv")
    with pytest.raises(steps.StepFailed, match=r"not on the path.*rustup"):
        rust.Toolchain.find()
    _toolchain(tmp_path, "1.63.0")
    with pytest.raises(steps.StepFailed, match=rf"rustc is 1\.63\. Rust {rust.minimum_version()} or newer is needed"):
        rust.Toolchain.find()
    _toolchain(tmp_path, "9.0.0", host="aarch64-unknown-linux-gnu")
    with pytest.raises(steps.StepFailed, match=r"x86-64 Linux.*aarch64"):
        rust.Toolchain.find()
    _toolchain(tmp_path, "9.0.0")
    assert rust.Toolchain.find().host == "x86_64-unknown-linux-gnu"


def test_a_package_is_wanted_exactly_if_its_command_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {"qemu-x86_64", "chromedriver"}
    monkeypatch.setattr(shutil, "which", lambda name, path: None if name in gone else f"/usr/bin/{name}")
    monkeypatch.setattr(system_packages, "STATIC_C_LIBRARY", ROOT)
    assert system_packages.missing() == ["chromium-driver", "qemu-user"]


def test_without_sudo_the_administrators_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_packages, "missing", lambda: ["qemu-user"])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "sudo" else f"/usr/bin/{name}")
    with pytest.raises(steps.StepFailed, match="apt-get install --no-install-recommends qemu-user"):
        system_packages.install_missing()


def test_what_is_missing_even_after_the_installation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(system_packages, "missing", lambda: ["qemu-user"])
    monkeypatch.setattr(system_packages, "run", lambda argv: ran.append(argv[-1]))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(steps.StepFailed, match=r"installed, yet .* qemu-user is not found"):
        system_packages.install_missing()
    assert ran[-1] == "qemu-user"


def test_an_environment_of_another_python_is_used_and_not_deleted(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = repository / ".venv"
    for name in ("PYTHON", "INTERPRETER", "WHEELS"):
        path = venv / getattr(setup, name).relative_to(steps.VENV)
        monkeypatch.setattr(setup, name, path)
        path.parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(setup, "VENV", venv)
    monkeypatch.setattr(setup, "LOCK", repository / "lock")
    monkeypatch.setattr(setup, "THIS", repository / "script")
    for file in (setup.PYTHON, setup.INTERPRETER, setup.LOCK, setup.THIS, venv / "of the user"):
        file.touch()
    ran: list[list[str]] = []
    monkeypatch.setattr(setup, "run", lambda argv: ran.append([str(part) for part in argv]))
    setup.virtual_environment()
    assert (venv / "of the user").exists()
    assert [argv[0] for argv in ran] == [str(setup.PYTHON)] * 2
    setup.PYTHON.unlink()
    setup.PYTHON.symlink_to(repository / "gone")
    with pytest.raises(steps.StepFailed, match="make clean"):
        setup.virtual_environment()
    assert (venv / "of the user").exists()


def test_setting_up_again_does_nothing() -> None:
    assert Path(sys.prefix) == steps.VENV, "the tests run with another Python than that of `make setup`"
    output = command("python", "scripts/setup.py").splitlines()
    assert [line.split()[0] for line in output] == ["setup"]
