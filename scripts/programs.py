"""`make test-programs`: programs and suites that people have, in a tree of `scalefs run`, in a mount, and on tmpfs.

A program does the same work in each place: what it prints and what it leaves must be the same. A suite says of each of
its tests how it ended: one that passes on tmpfs must pass here. What is not installed is named as skipped, and a mount
where none can be made.

    python scripts/programs.py [NAME ...]   all, or those with these names
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rust import Toolchain
from steps import ROOT, StepFailed, say, stream

SCALEFS = ROOT / "target" / "release" / "scalefs"
SECONDS = 900
"""So long a program may take in one place: a suite on a slow machine."""
SIZE = "1G"
LEFT = (
    r"find . \( -type d -printf '%P %y %m\n' \) -o \( -type l -printf '%P %l\n' \) -o "
    r"\( -printf '%P %y %m %s ' -exec sha256sum {} \; \) | LC_ALL=C sort"
)
"""What is there in the end: kind, mode, size, target and contents of everything, by name."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program by name: what it needs, how it says its version, and what it does in an empty directory."""

    name: str
    needs: tuple[str, ...]
    version: str
    script: str
    results: Callable[[str], Mapping[str, str]] | None = None
    """Of a suite: what it prints says this of each test. What it leaves is its own matter."""


def unittest_results(printed: str) -> Mapping[str, str]:
    """By test how it ended, as `python -m unittest -v` says it; what others print in between is passed over."""
    ends = r"(ok|skipped|FAIL|ERROR|expected failure)\b"
    return dict(re.findall(r"(?m)^(test\w+ \([\w.]+\))(?:\n.*)?? \.\.\. (?:.*\n){0,3}?.*?" + ends, printed))


def pjdfstest_results(printed: str) -> Mapping[str, str]:
    """By test how it ended, as the crate `pjdfstest` says it."""
    return dict(re.findall(r"(?m)^(\S+) +(ok|FAILED|skipped)\s*$", printed))


RESULTS = {"unittest": unittest_results, "pjdfstest": pjdfstest_results}


def programs() -> list[Program]:
    """All programs, as their list has them."""
    listed = tomllib.loads((ROOT / "scripts" / "programs.toml").read_text())["program"]
    return [
        Program(one["name"], tuple(one["needs"]), one["version"], one["script"], RESULTS.get(one.get("results", "")))
        for one in listed
    ]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program runs: a directory, and what is put before the shell."""

    name: str
    directory: Path
    before: tuple[str, ...] = ()


def run(place: Place, program: Program) -> str:
    """What a program prints, and what it leaves in the place."""
    script = program.script if program.results else f"{program.script}\n{LEFT}"
    at = str(place.directory)
    environment = {**os.environ, "HOME": at, "TMPDIR": at, "OLD_HOME": str(Path.home())}
    environment |= {"LC_ALL": "C", "TZ": "UTC", "GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    outcome = subprocess.run(
        [*place.before, "bash", "-euc", script],
        cwd=place.directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    said = (outcome.stdout + outcome.stderr).decode(errors="replace").replace(at, "TOP")
    return f"{said}\nexit code {outcome.returncode}"


@contextmanager
def places() -> Iterator[list[Place]]:
    """A new empty directory on tmpfs, one that a tree hides, and one in a mount if there can be one."""
    with ExitStack() as stack:

        def folder(above: str | None) -> Path:
            made = tempfile.TemporaryDirectory(dir=above, ignore_cleanup_errors=True)
            return Path(stack.enter_context(made))

        hidden = folder(None)
        tree = Place("tree", hidden, (str(SCALEFS), "run", "--size", SIZE, "--at", str(hidden), "--"))
        found = [Place("tmpfs", folder("/dev/shm")), tree]
        if not why_no_mount():
            point = folder(None)
            subprocess.run([SCALEFS, "mount", "--size", SIZE, "--dev", "--suid", point], check=True)
            stack.callback(unmount, point)
            inner = point / "d"
            inner.mkdir(mode=0o700)
            found.append(Place("mount", inner))
        yield found


def unmount(point: Path) -> None:
    """Takes a mount away, whatever was left open there."""
    subprocess.run([SCALEFS, "unmount", "--lazy", point], check=False)


def why_no_mount() -> str:
    """Why nothing can be mounted here; empty if it can."""
    if os.geteuid() != 0:
        return "it takes root"
    return "" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "there is no /dev/fuse"


def missing(program: Program) -> list[str]:
    """What a program needs and is not there; `python3:MODULE` is a module."""

    def is_there(need: str) -> bool:
        name, _, module = need.partition(":")
        if shutil.which(name) is None:
            return False
        looked = [name, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"]
        return not module or subprocess.run(looked, capture_output=True, check=False).returncode == 0

    return [need for need in program.needs if not is_there(need)]


def version_of(program: Program) -> str:
    """The first number in what a program says of its version."""
    said = subprocess.run(program.version.split(), capture_output=True, text=True, check=False)
    number = re.search(r"\d+(?:\.\d+)+\S*", said.stdout + said.stderr)
    return number.group().strip("(),") if number else "without a version"


def differences(program: Program, expected: str, found: str) -> list[str]:
    """What is not as on tmpfs: lines, or tests that pass there and not here."""
    if program.results is None:
        pairs = zip(expected.splitlines(), found.splitlines(), strict=False)
        changed = [f"expected {left!r}, got {right!r}" for left, right in pairs if left != right]
        return changed if expected != found else []
    there, here = program.results(expected), program.results(found)
    if not there:
        return [f"expected results of tests on tmpfs, got none: {expected[-300:]}"]
    passed = sorted(name for name, how in there.items() if how == "ok")
    return [f"{name} passes on tmpfs, here {here.get(name, 'not')}" for name in passed if here.get(name) != there[name]]


def test(program: Program) -> bool:
    """Runs a program in each place, and says what came of it; whether all is as on tmpfs."""
    if lacks := missing(program):
        say(program.name, f"skipped: not installed: {', '.join(lacks)}")
        return True
    with places() as found:
        try:
            outputs = {place.name: run(place, program) for place in found}
        except subprocess.TimeoutExpired as late:
            say(program.name, f"FAILED: not done within {late.timeout:.0f} seconds")
            return False
    expected = outputs.pop("tmpfs")
    wrong = {place: differences(program, expected, output) for place, output in outputs.items()}
    results = program.results(expected).values() if program.results else ()
    counted = f", {sum(how == 'ok' for how in results)} tests" if program.results else ""
    for place, lines in wrong.items():
        how = "as on tmpfs" if not lines else f"FAILED: {len(lines)} differences"
        say(f"{program.name} {version_of(program)}", f"in a {place}: {how}{counted}")
        for line in lines[:5]:
            print(f"    {line[:300]}")
    return not any(wrong.values())


def main(names: Sequence[str]) -> int:
    """Tests all, or those with the given names; returns the exit code."""
    known = {program.name: program for program in programs()}
    if unknown := [name for name in names if name not in known]:
        print(f"no such program: {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    try:
        build = [Toolchain.find().cargo, "build", "--release", "--quiet", "--locked", "--offline"]
        stream([*build, "-p", "scalefs-program"])
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    if why := why_no_mount():
        say("mounts", f"skipped: {why}")
    outcomes = [test(program) for name, program in known.items() if not names or name in names]
    print(f"{sum(outcomes)} passed or skipped, {outcomes.count(False)} failed")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
