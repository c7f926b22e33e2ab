"""Pairs of calls that commute, drawn from `posix18`, as two programs under `try`: both commit, or are listed here.

A pair is a test whose two calls are those of two processes and use names alone: what a command has open ends with it.
Its files are made, each call is made by a program in a workspace of its own, both see the same tree, and both are
committed, one after the other.

Two kinds of pairs may be refused, though their calls commute, since an overlay renames and links by copies. One empties
an empty file, which gives it another time, and the other one renames or links it: the copy keeps the time that was
found, and no one knows whether the command has looked at it. Or one renames a name of a file to another one of its
names, which does nothing, but in an overlay takes the first name away. Of all others every pair commits.
"""

from __future__ import annotations

import platform
import random
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from commutant import documents
from commutant.lang import load_interface
from commutant.support import artifacts
from commutant.testgen import TestCase, generate
from commutant.trying import TriedOutcome, TryDocument
from tests.trying.test_document import needs_rights

CALLS = ["open", "link", "unlink", "rename", "stat"]
FEW, MANY = 10, 500
SEED = 7

NUMBERS = {
    "x86_64": {"open": 257, "link": 265, "unlink": 263, "rename": 316, "stat": 262},
    "aarch64": {"open": 56, "link": 37, "unlink": 35, "rename": 276, "stat": 79},
}
"""Of openat, linkat, unlinkat, renameat2, newfstatat."""

PROGRAM = r"""
use Errno; my ($call, $number, @given) = @ARGV; my ($here, $room) = (-100, "\0" x 256); my $done;
if ($call eq "open") { $done = syscall($number + 0, $here, $given[0], $given[1] + 0, 0666) }
elsif ($call eq "link" || $call eq "rename") { $done = syscall($number + 0, $here, $given[0], $here, $given[1], 0) }
elsif ($call eq "unlink") { $done = syscall($number + 0, $here, $given[0], 0) }
else { $done = syscall($number + 0, $here, $given[0], $room, 0) }
exit($done >= 0 ? 0 : $! + 0);
"""
"""One call, and its error number as exit code. Perl is part of each Debian. Its own functions ask for more: `unlink` of
root looks by `lstat` whether the name is a directory's, and `sysopen` looks by `fstat` what it has opened."""

pytestmark = needs_rights


@dataclass(frozen=True)
class Refusal:
    """A pair of which one was not committed."""

    test_id: str
    kind: str | None
    paths: tuple[str, ...]


def files_of(test: TestCase) -> dict[tuple[str, str], int]:
    """The names of the tree, each with its file."""
    steps = [dict(step.args) for step in test.setup if step.call == "name_file"]
    return {(str(given["directory"]), str(given["name"])): given["file"] for given in steps}


def kind_of(test: TestCase) -> str | None:
    """Why a pair may be refused; nothing if it must not."""
    files = files_of(test)
    emptied, copied = set[int](), set[int]()
    for index in (0, 1):
        (call, *given), directory = words(test, index)
        found = [files.get((directory, name)) for name in given[:2]]
        if call == "rename" and found[0] is not None and found[0] == found[1] and given[0] != given[1]:
            return "one renames a name to another one of the same file"
        if found[0] is not None and call == "open" and int(given[1]) & 0o1000:
            emptied.add(found[0])
        if found[0] is not None and call in ("link", "rename"):
            copied.add(found[0])
    return "one empties a file that the other one links or renames" if emptied & copied else None


def pairs() -> list[TestCase]:
    """All that fit."""
    tests = generate(load_interface("posix18"), calls=CALLS).tests
    return [test for test in tests if len({call.process for call in test.calls}) == 2]


def words(test: TestCase, index: int) -> tuple[list[str], str]:
    """The arguments of a call's program, and the directory that it is in."""
    call = test.calls[index]
    given: dict[str, Any] = dict(call.args)
    entered = [step for step in test.setup if step.call == "enter_directory" and step.process == call.process]
    directory = str(dict(entered[-1].args)["directory"]) if entered else "d0"
    if call.call != "open":
        return [call.call, *(str(value) for value in given.values())], directory
    rights = {(True, True): 2, (False, True): 1}.get((given.get("readable", True), given.get("writable", True)), 0)
    flags = rights | 0o100 * given["creat"] | 0o200 * given["excl"] | 0o1000 * given["trunc"]
    return ["open", str(given["name"]), str(flags)], directory


def numbered(arguments: Sequence[str]) -> list[str]:
    """The arguments of the program, with the number of the call on this machine."""
    call, *given = arguments
    return [call, str(NUMBERS[platform.machine()][call]), *given]


def make_files(test: TestCase, tree: Path) -> None:
    """The tree before both calls."""
    for name in ("d0", "d1"):
        (tree / name).mkdir(parents=True)
    first: dict[int, Path] = {}
    for step in test.setup:
        given: dict[str, Any] = dict(step.args)
        if step.call == "name_file":
            path = tree / given["directory"] / given["name"]
            if given["file"] in first:
                path.hardlink_to(first[given["file"]])
            else:
                path.write_bytes(b"")
                first[given["file"]] = path


def names_of(tree: Path) -> set[str]:
    return {str(path.relative_to(tree)) for path in tree.glob("d?/*")}


def tried(test: TestCase, number: int, folder: Path) -> Refusal | None:
    """Tries both, and commits them in one of both orders; what was refused."""
    tree = folder / "tree"
    make_files(test, tree)
    program = str(artifacts.try_path())
    environment = {"PATH": "/usr/bin:/bin", "TRY_SHELL": "/bin/sh", "HOME": str(folder), "LC_ALL": "C"}

    def run(*arguments: str, inside: str = ".") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            arguments, cwd=tree / inside, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    for index in (0, 1):
        workspace = folder / f"changes{index}"
        workspace.mkdir()
        arguments, directory = words(test, index)
        ran = run(
            program, "--json", "-N", str(workspace), "--", "perl", "-e", PROGRAM, *numbered(arguments), inside=directory
        )
        document = documents.read(TryDocument, ran.stdout.encode())
        assert document.outcome is TriedOutcome.KEPT, (test.id, ran.stdout, ran.stderr)
    for index in (0, 1) if number % 2 == 0 else (1, 0):
        ran = run(program, "--json", "commit", str(folder / f"changes{index}"))
        document = documents.read(TryDocument, ran.stdout.encode())
        assert document.outcome in (TriedOutcome.COMMITTED, TriedOutcome.NOTHING, TriedOutcome.REFUSED), ran.stderr
        if document.outcome is TriedOutcome.REFUSED:
            paths = (f"{Path(conflict.path).relative_to(tree)}: {conflict.question}" for conflict in document.conflicts)
            return Refusal(test.id, kind_of(test), tuple(paths))
    return None


def refusals(chosen: Sequence[TestCase], folder: Path) -> list[Refusal]:
    """Those of all of them; a pair takes most of its time waiting for the disk."""

    def one(number: int) -> Refusal | None:
        of_pair = folder / str(number)
        of_pair.mkdir()
        return tried(chosen[number], number, of_pair)

    with ThreadPoolExecutor(4) as threads:
        return [found for found in threads.map(one, range(len(chosen))) if found is not None]


def check(count: int, folder: Path) -> None:
    chosen = random.Random(SEED).sample(pairs(), count)
    refused = refusals(chosen, folder)
    for refusal in refused:
        print(refusal.test_id, refusal.kind, *refusal.paths, sep="\n  ")
    print(f"{count - len(refused)} of {count} pairs of programs both commit")
    print(f"{sum(kind_of(test) is None for test in chosen)} of these are of no kind that may be refused")
    assert [refusal for refusal in refused if refusal.kind is None] == []


def test_a_few_programs_that_commute_both_commit(tmp_path: Path) -> None:
    check(FEW, tmp_path)


@pytest.mark.long
def test_programs_that_commute_both_commit(tmp_path: Path) -> None:
    check(MANY, tmp_path)
