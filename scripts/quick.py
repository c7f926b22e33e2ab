"""`make check`: what one looks at between two thoughts, within 90 seconds, and what it leaves out.

It runs the quick linters over everything, clippy and the tests of the crates that changed, and those files of Python
tests that import what changed. Changed is what differs from the last commit; without any difference, what that commit
changed. Files of tests whose turn would end after the budget are named and left to `make test`, as are crates that
depend on the changed ones, sanitizers and histories. How long a file takes is in `tests/seconds.json`.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import lanes
from lanes import Seconds
from rust import Toolchain
from rust_tests import RUST, RUST_SEED
from steps import ROOT, VENV, StepFailed, run, say, stream
from verify import NO_TESTS, PYTHON, PYTHON_SEED, Report, linters, worker_count
from work import Workers

BUDGET_SECONDS = 90.0
ALWAYS = ("tests/repository/test_rooms.py", "tests/repository/test_docs.py")
"""What is quick and concerns every change: the order of rooms, and links and commands of the pages."""


def changed_files() -> list[str]:
    """Paths of what differs from the last commit, new files included; else of what the last commit changed."""
    now = run(["git", "diff", "--name-only", "HEAD"]) + run(["git", "ls-files", "--others", "--exclude-standard"])
    return (now or run(["git", "diff", "--name-only", "HEAD~1", "HEAD"])).split()


def changed_crates(changed: Iterable[str]) -> list[str]:
    """The packages whose folder has a changed file."""
    found = {match[1] for path in changed if (match := re.match(r"crates/[^/]+/([^/]+)/", path))}
    return sorted(name for name in found if any(ROOT.glob(f"crates/*/{name}/Cargo.toml")))


def concerned_tests(changed: Sequence[str]) -> list[str]:
    """The files of Python tests that changed, that import a changed module, or a room one of whose modules changed."""
    rooms = {match[1] for path in changed if (match := re.match(r"src/commutant/(\w+?)(?:\.py|/)", path))}
    packages = {match[1] for path in changed if (match := re.match(r"packages/(\w+)/", path))}
    named = [rf"\bcommutant\.(?:{'|'.join(sorted(rooms))})\b"] if rooms else []
    named += [rf"^(?:from|import) (?:{'|'.join(sorted(packages))})\b"] if packages else []
    mentions = re.compile("|".join(named) or "(?!)", re.MULTILINE)
    found = {path for path in changed if re.fullmatch(r"tests/.*test_\w+\.py", path) and (ROOT / path).is_file()}
    for file in ROOT.glob("tests/**/test_*.py"):
        if mentions.search(file.read_text(encoding="utf-8")):
            found.add(str(file.relative_to(ROOT)))
    return sorted(found | set(ALWAYS))


def chosen(tests: Iterable[str], seconds_left: float, kept: Seconds) -> tuple[list[str], list[str]]:
    """The quickest of the tests as far as time allows, and the rest."""
    taken: list[str] = []
    left: list[str] = []
    for name in sorted(tests, key=lambda name: (kept.of_file(name), name)):
        seconds_left -= kept.of_file(name)
        (taken if seconds_left >= 0 else left).append(name)
    return sorted(taken), sorted(left)


def main() -> int:
    """Checks what changed; returns the exit code."""
    started = time.monotonic()
    kept = Seconds.kept()
    report = Report()
    try:
        cargo = Toolchain.find().cargo
        changed = changed_files()
        crates = changed_crates(changed)
        Workers(worker_count(), report.ended, report.suite_ended).run(linters(cargo, crates))
        if report.failed:
            print(f"make check failed in: {', '.join(report.failed)}", file=sys.stderr)
            return 1
        if crates:
            packages = [f"--package={crate}" for crate in crates]
            variables = [f"{name}={value}" for name, value in RUST_SEED.items()]
            stream(["env", *variables, cargo, "test", "--quiet", *packages, *RUST[1:]], without=NO_TESTS)
        left_seconds = BUDGET_SECONDS - (time.monotonic() - started)
        concerned = [name for name in concerned_tests(changed) if not lanes.is_building(name)]
        tests, left = chosen(concerned, left_seconds, kept)
        if tests:
            stream([PYTHON, "-m", "pytest", "--quiet", PYTHON_SEED, "--lane", "quick", *tests])
    except StepFailed as failure:
        print(f"{failure}\nmake check failed", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    every = lanes.test_files()
    say("left to make test", f"{len(every) - len(tests)} of {len(every)} files of Python tests, crates without changes")
    for name in left:
        say("", f"{name}: would take {kept.of_file(name):.0f} s more")
    say("make check", f"passed: {time.monotonic() - started:.0f} s; {len(crates)} crates, {len(tests)} files of tests")
    return 0


if __name__ == "__main__":
    assert Path(PYTHON).parent.parent == VENV
    sys.exit(main())
