"""The scripts behind the Makefile: what is done again, and what a user reads when something is missing."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import emulators
import lanes
import limited as limited_script
import rust
import rust_tests
import setup
import steps
import system_packages
import verify
from lanes import Seconds
from tests.repository.tree import ROOT, command
from work import Work, Workers


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


def test_all_suites_draw_the_same_random_cases_each_time(tmp_path: Path) -> None:
    """A commit that had passed could fail by a case that no one had drawn before."""
    kept = Seconds.kept()
    for build in (rust_tests.tests("cargo", kept, whole=True), rust_tests.histories("cargo", kept)):
        assert build.then is not None
        (program,) = build.then(_built("some", "data"))
        assert program.variables["PROPTEST_RNG_SEED"] == str(rust_tests.SEED)
    assert rust_tests.histories("cargo", kept).variables["RUSTFLAGS"] == "--cfg shuttle"
    for piece in verify.python_tests(tmp_path, kept, True, 2):
        assert f"--hypothesis-seed={rust_tests.SEED}" in piece.command


def _built(crate: str, program: str, kind: str = "test", is_test: bool = True) -> str:
    """A line that cargo prints of a program that it has built."""
    message = {
        "reason": "compiler-artifact",
        "manifest_path": f"/crates/{crate}/Cargo.toml",
        "target": {"name": program, "kind": [kind]},
        "profile": {"test": is_test},
        "executable": f"/target/debug/deps/{program}-0123",
    }
    return json.dumps(message) + "\n"


def test_programs_of_tests_are_those_that_cargo_has_built() -> None:
    printed = _built("one", "data") + _built("one", "one", "lib") + _built("two", "two", "bin", is_test=False)
    printed += _built("three", "other", "bin") + json.dumps({"reason": "build-finished", "success": True})
    names = [name for name, _, _ in rust_tests.programs_of(printed)]
    assert names == ["one/data", "one/lib", "three/other (bin)"]


def test_a_program_of_tests_gets_what_cargo_would_give_it() -> None:
    """Its folder, cargo itself, and where libraries are that are not the system's."""
    (built,) = rust_tests.programs_of(_built("one", "data"))
    piece = rust_tests.program("cargo test", "/bin/cargo", built, 1.0, {})
    assert piece.folder == Path("/crates/one")
    assert piece.variables["CARGO_MANIFEST_DIR"] == "/crates/one" and piece.variables["CARGO"] == "/bin/cargo"
    assert piece.variables["LD_LIBRARY_PATH"].startswith("/target/debug/deps:/target/debug:")
    assert piece.command[:2] == [rust_tests.LIMITED, "/target/debug/deps/data-0123"]


def test_what_plants_a_fault_runs_in_the_build_that_can_plant_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list kept by hand had left out eight programs, whose planted faults no one had looked for. Then two were left
    out that plant none: their threads, the system's, were overtaken by chance alone."""
    crates, tests = rust_tests.scheduled_tests()
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
    monkeypatch.setattr(rust_tests, "ROOT", tmp_path)
    assert rust_tests.scheduled_tests() == (["one", "three", "two"], ["chosen", "few_calls", "rounds", "whole"])


def test_no_file_of_tests_is_left_out_and_none_runs_twice(tmp_path: Path) -> None:
    for whole in (False, True):
        pieces = verify.python_tests(tmp_path, Seconds.kept(), whole, 4)
        given = [part for piece in pieces for part in piece.command if part.startswith("tests/")]
        building = set(lanes.BUILDING.values())
        assert len(given) == len(set(given))
        assert set(given) - building == {name for name in lanes.test_files() if not lanes.is_building(name)}
        assert set(given) & building == (building if whole else set())


def _run(pieces: list[Work], count: int = 2) -> verify.Report:
    """What two workers report of the pieces."""
    report = verify.Report()
    Workers(count, report.ended, report.suite_ended).run(pieces)
    return report


def _python(suite: str, program: str, seconds: float = 0.0) -> Work:
    return Work(suite, suite, [sys.executable, "-c", program], seconds)


def test_a_worker_that_is_free_takes_the_longest_piece_that_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lanes of fixed suites left a core idle once the shorter one was done. Here the first piece waits for the last."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    programs = {"waits": f"open({str(pipe)!r}).read()", "one": "", "two": "", "last": f"open({str(pipe)!r}, 'w')"}
    pieces = [_python(name, program, 9.0 - number) for number, (name, program) in enumerate(programs.items())]
    assert _run(pieces[::-1]).failed == []
    ended = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert ended[:2] == ["one", "two"] and sorted(ended[2:]) == ["last", "waits"]


def test_what_a_build_makes_runs_after_it_and_counts_as_its_suite(capsys: pytest.CaptureFixture[str]) -> None:
    def made(printed: str) -> list[Work]:
        return [_python("programs", f"print('{number} passed')") for number in map(int, printed.split())]

    build = Work("programs", "build", [sys.executable, "-c", "print(3, 4)"], then=made)
    assert _run([build]).failed == []
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("programs") and line.endswith(" s of processor time, 7 tests")


def test_a_build_that_fails_makes_nothing_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def made(printed: str) -> list[Work]:
        raise AssertionError(f"nothing comes of {printed}")

    build = Work("programs", "build", [sys.executable, "-c", "raise SystemExit(3)"], then=made)
    assert _run([build]).failed == ["build"]
    assert _run([Work("lint", "lint", ["no-such-command"])]).failed == ["lint"]
    assert "cannot start `no-such-command`" in capsys.readouterr().err


def test_a_piece_that_fails_shows_what_it_printed_and_the_others_run(capsys: pytest.CaptureFixture[str]) -> None:
    program = "print('test result: ok. 3 passed; 0 failed'); print('4 passed, 1 skipped in 2 s'); "
    program += "print('400 histories'); print('1500 histories'); print('12 deaths at most')"
    broken = _python("broken", "print('running 0 tests'); print('why'); raise SystemExit(1)")
    assert _run([broken, _python("whole", program), _python("whole", program)]).failed == ["broken"]
    printed = capsys.readouterr()
    assert printed.err.startswith("why\n") and printed.err.endswith("broken failed\n")
    assert printed.out.count(" s of processor time, 14 tests, 3,800 histories, 2 skipped\n") == 1


def test_an_interrupt_ends_the_commands_that_run(tmp_path: Path) -> None:
    """The commands have their own pipes: what waits for no one is not left behind."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = f"import os; open({str(pipe)!r}, 'w').write(str(os.getpid())); import time; time.sleep(1000)"
    interrupted = (
        "import sys, _thread, threading; from work import Work, Workers\n"
        "def interrupt():\n"
        "    print(open(sys.argv[1]).read(), flush=True); _thread.interrupt_main()\n"
        "threading.Thread(target=interrupt).start()\n"
        "try: Workers(2, print, print).run([Work('s', 'n', [sys.executable, '-c', sys.argv[2]])])\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", interrupted, pipe, program],
        capture_output=True, text=True, cwd=ROOT / "scripts",
    )  # fmt: skip
    process, last = ended.stdout.split()
    assert last == "interrupted" and not Path("/proc", process).exists(), ended.stderr


def running_programs() -> set[Path]:
    """Programs of all processes but others' and those that end while they are asked."""
    programs = set()
    for path in Path("/proc").glob("[0-9]*/exe"):
        with contextlib.suppress(OSError):
            programs.add(path.readlink())
    return programs


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
    assert program not in running_programs()


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -ABRT $$", 128 + 6), ("exit 0", 0)])
def test_a_program_within_its_limit_ends_as_it_does(script: str, code: int, tmp_path: Path) -> None:
    shell = tmp_path / "deps" / "sh"
    shell.parent.mkdir()
    shell.symlink_to("/bin/sh")
    command: list[str | Path] = [sys.executable, ROOT / "scripts" / "limited.py", shell, "-c", script]
    assert subprocess.run(command).returncode == code


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_program_ends_with_who_limits_it(how: signal.Signals, tmp_path: Path) -> None:
    """Killed, it can end nothing itself; what it had started went on forever."""
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
    """From any folder of the repository, whatever calls cargo."""
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


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo QEMU emulator version 5.2.0", r"qemu-system-x86_64: version 5\.2\.0 cannot trace; tested with 7\.2"),
        ("echo hello", "expected a version, got 'hello'; put another"),
        ("", "expected a version"),
    ],
)
def test_an_emulator_that_cannot_trace_is_told_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: str
) -> None:
    """Setup worked for minutes, said that it was ready, and nothing could be checked."""
    fake = tmp_path / "qemu-system-x86_64"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(steps.StepFailed, match=expected):
        emulators.judge_emulator()
    done: list[str] = []
    for name in (
        "fetch_missing_lists",
        "packages_of_rust",
        "install_missing",
        "virtual_environment",
        "crates",
        "artifacts",
    ):
        monkeypatch.setattr(setup, name, lambda *_, name=name: done.append(name))
    assert setup.main() == 1
    assert done == []


def test_an_emulator_of_another_version_is_used_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    emulators.judge_emulator()  # none: it will be installed
    fake = tmp_path / "qemu-system-x86_64"
    for version, expected in (("7.2.22", ""), ("8.1.0", "version 8.1.0 was not tested")):
        fake.write_text(f"#!/bin/sh\necho QEMU emulator version {version}\n")
        fake.chmod(0o755)
        emulators.judge_emulator()
        printed = capsys.readouterr().out
        assert expected in printed
        assert bool(printed) == bool(expected)


def _apt_cache(folder: Path, candidate: str) -> None:
    program = folder / "apt-cache"
    program.write_text(f"#!/bin/sh\nprintf 'rustc-web:\\n  Installed: (none)\\n  Candidate: {candidate}\\n'\n")
    program.chmod(0o755)
    (folder / "env").symlink_to("/usr/bin/env")


def test_debians_new_toolchain_is_installed_only_where_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(steps, "VENV", tmp_path / "venv")
    assert rust.packages_of_rust() == ()  # no Debian
    _apt_cache(tmp_path, "1.96.0+dfsg1-1~deb12u2")
    assert {"cargo-web", "rustc-web"} <= set(rust.packages_of_rust())
    apt_cache = tmp_path / "apt-cache"
    apt_cache.write_text(apt_cache.read_text().replace("1.96.0", "1.85.0"))
    with pytest.raises(steps.StepFailed, match=r"apt has rustc-web 1\.85; Rust .* or newer is needed.*rustup"):
        rust.packages_of_rust()
    policy = apt_cache.read_text()
    newer = "printf 'rustc:\\n  Installed: (none)\\n  Candidate: 1.97.1+dfsg1-1\\n'\n"
    apt_cache.write_text(policy + newer)  # the release's own is new enough
    assert {"cargo", "rustc"} <= set(rust.packages_of_rust())
    apt_cache.write_text(f"#!/bin/sh\n{newer}")  # as in Debian's testing, which has no other
    assert {"cargo", "rustc"} <= set(rust.packages_of_rust())
    _toolchain(tmp_path, "1.63.0")
    with pytest.raises(steps.StepFailed, match=r"rustc is 1\.63"):
        rust.packages_of_rust()
    _toolchain(tmp_path, "9.0.0")
    assert rust.packages_of_rust() == ()
    for name in ("rustc", "cargo"):
        (tmp_path / name).unlink()
    (tmp_path / "rustup").touch(0o755)
    with pytest.raises(steps.StepFailed, match="cargo and rustc are not on the path"):
        rust.packages_of_rust()  # it excludes the packages, and can install a toolchain itself


def test_a_package_is_wanted_exactly_if_its_command_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {"qemu-x86_64", "chromedriver"}
    monkeypatch.setattr(shutil, "which", lambda name, path: None if name in gone else f"/usr/bin/{name}")
    monkeypatch.setattr(system_packages, "STATIC_C_LIBRARY", ROOT)
    monkeypatch.setattr(system_packages, "release", lambda: {"ID": "debian", "VERSION_ID": "12"})
    assert system_packages.missing() == ["chromium-driver", "qemu-user"]
    monkeypatch.setattr(system_packages, "release", lambda: {"ID": "debian", "VERSION_ID": "13"})
    assert system_packages.missing() == ["chromium-driver"], "its qemu-user takes no plugins"


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
