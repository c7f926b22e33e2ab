"""`commutant locks` as a user calls it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest

from tests.repository.tree import ROOT

COMMUTANT = ROOT / ".venv" / "bin" / "commutant"
TWO_THREADS = """
#include <pthread.h>
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static long length;
static void *push(void *unused) {
    for (int i = 0; i < 200; i++) { pthread_mutex_lock(&queue_lock); length++; pthread_mutex_unlock(&queue_lock); }
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, push, 0);
    push(0);
    pthread_join(thread, 0);
    return 5;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("program")
    (folder / "two.c").write_text(TWO_THREADS)
    subprocess.run(["cc", "-g", "-pthread", "-o", folder / "two", folder / "two.c"], check=True)
    return str(folder / "two")


def locks(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMUTANT, "locks", *arguments], capture_output=True, text=True, check=False)


def test_tables_name_the_lock_its_data_and_its_users(program: str) -> None:
    answer = locks("--", program)
    assert answer.returncode == 0
    assert answer.stdout.startswith("The lock to look at is queue_lock: it is held for ")
    assert "length: 100.0 % of pairs; without it independence would rise from 0.0 % to 100.0 %" in answer.stdout
    assert "writes push (two.c:6)" in answer.stdout
    assert answer.stderr.strip().endswith("ended with exit code 5")


def test_a_table_that_leaves_classes_out_says_how_much_it_covers(program: str) -> None:
    answer = locks("--top", "1", "--", program)
    assert re.search(r"Shown: 1 of \d+ classes, with \d+\.\d % of the time held", answer.stdout)
    assert "Shown:" not in locks("--top", "1000", "--", program).stdout


def test_the_document_fits_its_schema(program: str) -> None:
    document = json.loads(locks("--format", "json", "--sort", "acquired", "--", program).stdout)
    schema = json.loads((ROOT / "docs" / "schemas" / "locks.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    first = document["locks"][0]
    assert (first["name"], first["acquired"], first["independence_percent"]["1"]) == ("queue_lock", 400, 0)


def test_the_document_stands_alone_on_standard_output() -> None:
    """What the program printed stood in front of the document."""
    answer = locks("--format", "json", "--", "/bin/echo", "from the program")
    assert json.loads(answer.stdout)["schema_version"] == 6
    assert answer.stderr == "from the program\n"
    without = subprocess.run(
        ["sh", "-c", '"$@" 2>&-', "sh", COMMUTANT, "locks", "--format", "json", "--", "/bin/echo"],
        stdout=subprocess.PIPE,
        check=True,
    )
    assert json.loads(without.stdout)["schema_version"] == 6


def test_a_name_like_an_option_is_no_option_of_the_emulator(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`./-version` was handed on without its folder."""
    shutil.copy(program, tmp_path / "-version")
    monkeypatch.chdir(tmp_path)
    answer = locks("--", "./-version")
    assert "queue_lock" in answer.stdout
    assert answer.stderr.strip() == "./-version ended with exit code 5"


NEVER_BEGINS = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--version") == 0)
        return puts("version 7.2.0") < 0;
    if (count == 2 && strcmp(arguments[1], "-h") == 0)
        return puts("-plugin") < 0;
    return pause();
}
"""


def server(folder: Path) -> Path:
    """A program that says that it is ready, and waits."""
    (folder / "two.c").write_text(TWO_THREADS.replace("return 5;", 'puts("ready"); fflush(stdout); pause();'))
    headers = ["-include", "stdio.h", "-include", "unistd.h"]
    subprocess.run(["cc", *headers, "-pthread", "-o", folder / "two", folder / "two.c"], check=True)
    return folder / "two"


def test_a_program_does_not_outlive_a_command_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It went on under the emulator forever; as long as it does, standard output does not end."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [COMMUTANT, "locks", "--", server(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.kill()
        assert process.communicate(timeout=60)[0] == ""
    (left,) = tmp_path.glob("commutant-locks-*")
    os.utime(left, (0, 0))
    assert locks("--", "/bin/true").returncode == 0
    assert not list(tmp_path.glob("commutant-locks-*")), "the next one removes it"


def test_an_interrupt_shows_what_was_recorded(tmp_path: Path) -> None:
    """A server ends by Ctrl-C: minutes of recording were lost to it."""
    command = [COMMUTANT, "locks", "--", server(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        output, messages = process.communicate()
    assert (process.returncode, "queue_lock" in output) == (130, True)
    assert messages.strip() == f"{tmp_path / 'two'} was interrupted; what it did until then is shown"


def test_a_program_that_is_stopped_too_early_is_not_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an emulator that never comes to the program: a real one may end it before it is stopped. Linked statically,
    since the recorder, which is loaded in front of the emulator, fits no other program.
    """
    emulator = tmp_path / "qemu-x86_64"
    (tmp_path / "emulator.c").write_text(NEVER_BEGINS)
    subprocess.run(["cc", "-static", "-o", emulator, tmp_path / "emulator.c"], check=True)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    answer = locks("--timeout", "0.2", "--", "/bin/true")
    line = "commutant: /bin/true: it was stopped after 0.2 s, before anything was recorded"
    assert (answer.returncode, answer.stdout, answer.stderr.splitlines()) == (3, "", [line])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "commutant: expected a program after `--`, got nothing: commutant locks -- PROGRAM [ARGS]"),
        (("--", "/nonexistent"), "commutant: /nonexistent: expected a program, a path or a name on PATH, got neither"),
        (
            ("--sort", "beauty", "--", "/bin/true"),
            (
                "commutant: unknown sort key 'beauty': expected one of acquired, contended, avg_wait, wait_total, "
                "hold_total, independence, speedup"
            ),
        ),
    ],
)
def test_bad_use_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    answer = locks(*arguments)
    assert (answer.returncode, answer.stdout, answer.stderr.splitlines()) == (2, "", [line])


def test_children_that_are_not_shown_are_told_of(tmp_path: Path) -> None:
    source = TWO_THREADS.replace("return 5;", "if (!fork()) { push(0); _exit(0); } wait(0); return 0;")
    (tmp_path / "two.c").write_text("#include <sys/wait.h>\n#include <unistd.h>\n" + source)
    subprocess.run(["cc", "-pthread", "-o", tmp_path / "two", tmp_path / "two.c"], check=True)
    answer = locks("--no-inlined", "--", str(tmp_path / "two"))
    assert answer.stderr.strip() == f"{tmp_path / 'two'} forked: a child was recorded and not shown, with 200 acquires"


def test_a_program_without_threads_has_nothing_to_compare(tmp_path: Path) -> None:
    answer = locks("--", "/bin/true")
    assert answer.returncode == 0
    assert "No lock was used by two threads" in answer.stdout
    assert "; 1 thread, " in answer.stdout, "1 threads"


def test_a_file_in_no_folder_is_refused_before_the_program_runs(program: str, tmp_path: Path) -> None:
    """Minutes of recording were lost to it."""
    answer = locks("--format", "html", "-o", str(tmp_path / "none" / "locks.html"), "--", program)
    line = f"commutant: {tmp_path / 'none'} is no folder; -o takes the name of a new file in one that exists"
    assert (answer.returncode, answer.stdout, answer.stderr.splitlines()) == (2, "", [line])
