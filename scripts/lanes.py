"""Which tests `make test` runs, which continuous integration runs besides, and how much time each area may take.

There are three lanes. *Quick* is what a person waits for: `make test`. *Whole* is what `.ci/run` runs besides: tests
that take long, histories, and what mostly builds. *Long* is `make test-long`: tests marked `long`. Quick and whole are
distinguished by measured processor time alone, which `tests/seconds.json` keeps: what takes more than a limit is whole.
A test that has not been measured is quick. An area is a folder of `tests/`, or a folder of `crates/`.

`lanes.py` writes `tests/seconds.json` again from what the last `make test ALL=1` measured.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tests" / "seconds.json"
MEASURED = ROOT / "target" / "test-seconds.json"
"""What the last runs measured; written by scripts/verify.py."""

PYTHON_LIMIT_SECONDS = 1.0
"""Of one Python test. Few of them take more, and those take more than all others together."""
PROGRAM_LIMIT_SECONDS = 3.0
"""Of one program of Rust tests."""
AREA_BUDGET_SECONDS = 40.0
"""Of processor time, for the quick tests of one area."""
BUILDING = {"sanitizers": "tests/scalefs/test_sanitizers.py", "libraries": "tests/libraries"}
"""Python tests that mostly build: crates with sanitizers, and projects in three languages. They are whole."""
UNKNOWN_SECONDS = 2.0
"""What a file of Python tests, or a program, is expected to take before it has been measured."""


@dataclass(frozen=True)
class Seconds:
    """Processor time of tests: of each file of Python tests without its slow tests, of these by name, of each program
    of Rust tests (`crate/program`), and of those that are built for a scheduler."""

    files: Mapping[str, float] = field(default_factory=dict)
    slow: Mapping[str, float] = field(default_factory=dict)
    programs: Mapping[str, float] = field(default_factory=dict)
    schedules: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def kept(cls, file: Path = KEPT) -> Seconds:
        """Those of `tests/seconds.json`."""
        found = json.loads(file.read_text(encoding="utf-8"))
        return cls(found["files"], found["slow"], found["programs"], found["schedules"])

    def save(self, file: Path = KEPT) -> None:
        """Writes them, in tenths of a second, one a line, so that a difference can be read."""
        tables = {"files": self.files, "slow": self.slow, "programs": self.programs, "schedules": self.schedules}
        rounded = {
            title: {name: round(seconds, 1) for name, seconds in sorted(table.items())}
            for title, table in tables.items()
        }
        file.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def of_file(self, name: str) -> float:
        """Of the quick tests of a file."""
        return self.files.get(name, UNKNOWN_SECONDS)

    def of_whole_file(self, name: str) -> float:
        """Of all tests of a file, the slow ones included."""
        return self.of_file(name) + sum(
            seconds for test, seconds in self.slow.items() if test.partition("::")[0] == name
        )

    def of_program(self, name: str) -> float:
        """Of a program of Rust tests."""
        return self.programs.get(name, UNKNOWN_SECONDS)

    def of_schedules(self, name: str) -> float:
        """Of a program that is built for a scheduler."""
        return self.schedules.get(name, 20.0)

    def is_quick_program(self, name: str) -> bool:
        """Whether `make test` runs it."""
        return self.of_program(name) <= PROGRAM_LIMIT_SECONDS

    def quick_by_area(self, area_of_crate: Mapping[str, str]) -> dict[str, float]:
        """Seconds of the quick lane, by area; `area_of_crate` names the folder below `crates/` of each crate."""
        found: defaultdict[str, float] = defaultdict(float)
        for name, seconds in self.files.items():
            if not is_building(name):
                found[area_of_file(name)] += seconds
        for name, seconds in self.programs.items():
            if self.is_quick_program(name):
                found[f"crates/{area_of_crate[name.partition('/')[0]]}"] += seconds
        return found


def area_of_file(name: str) -> str:
    """The area of a file of Python tests, such as `tests/report`."""
    return str(Path(name).parent)


def is_building(name: str) -> bool:
    """Whether a file of Python tests, or a test, is in `BUILDING`."""
    path = name.partition("::")[0]
    return any(path == part or path.startswith(f"{part}/") for part in BUILDING.values())


def lane_of(test: str, slow: Mapping[str, float]) -> str:
    """The lane of a Python test that is not marked `long`, named as pytest does: `quick` or `whole`."""
    return "whole" if is_building(test) or test in slow else "quick"


def shards(seconds: Mapping[str, float], count: int) -> list[list[str]]:
    """Splits names into at most `count` lists of about equal time, each sorted: the longest goes where least is."""
    lists: list[list[str]] = [[] for _ in range(count)]
    loads = [0.0] * count
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        least = loads.index(min(loads))
        lists[least].append(name)
        loads[least] += seconds[name]
    return [sorted(names) for names in lists if names]


def area_of_crate() -> dict[str, str]:
    """The folder below `crates/` in which each crate lies."""
    return {manifest.parent.name: manifest.parent.parent.name for manifest in ROOT.glob("crates/*/*/Cargo.toml")}


def summed(tests: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of single Python tests as `Seconds` has them: of files without slow tests, and of slow tests.

    What has been measured once as slow and is still nearly so stays, so that noise moves no test.
    """
    before = Seconds.kept().slow if KEPT.exists() else {}
    files: defaultdict[str, float] = defaultdict(float)
    slow = {}
    for test, seconds in tests.items():
        limit = PYTHON_LIMIT_SECONDS * (0.7 if test in before else 1.0)
        file = test.partition("::")[0]
        files[file] += 0.0  # also where all its tests are slow, or long
        if seconds > limit and not is_building(test):
            slow[test] = seconds
        else:
            files[file] += seconds
    return dict(files), slow


def over_budget(areas: Mapping[str, float]) -> list[str]:
    """A line for each area whose quick tests take more than they may."""
    return [
        f"{name}: {seconds:.0f} s of processor time, and {AREA_BUDGET_SECONDS:.0f} s are allowed; make its tests "
        "cheaper, share what they set up, or let `make lanes` move the slowest to the whole lane"
        for name, seconds in sorted(areas.items())
        if seconds > AREA_BUDGET_SECONDS
    ]


PARTS = ("tests", "programs", "schedules")


def measured() -> dict[str, dict[str, float]]:
    """What the last runs measured: `tests` by pytest's names, the others by crate and program. Empty without a run."""
    try:
        found = json.loads(MEASURED.read_text(encoding="utf-8"))
        return {part: {str(name): float(value) for name, value in found[part].items()} for part in PARTS}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {part: {} for part in PARTS}


def note(seconds: Mapping[str, Mapping[str, float]]) -> None:
    """Adds to what the last runs measured; by part, of `PARTS`."""
    known = measured()
    for part, values in seconds.items():
        known[part].update(values)
    MEASURED.parent.mkdir(exist_ok=True)
    temporary = MEASURED.with_name(MEASURED.name + ".new")
    temporary.write_text(json.dumps(known, indent=1, sort_keys=True))
    temporary.replace(MEASURED)


def test_files() -> list[str]:
    """All files of Python tests."""
    return sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("tests/**/test_*.py"))


def main(arguments: Sequence[str]) -> int:
    """Writes what was measured into the kept list, and says which areas are over their budget."""
    if arguments:
        print(f"usage: lanes.py, not {' '.join(arguments)}", file=sys.stderr)
        return 2
    found = measured()
    missing = missing_of(found)
    if missing:
        print(f"not measured: {', '.join(missing)}; run `make test ALL=1` first", file=sys.stderr)
        return 1
    there = set(test_files())
    tests = {name: seconds for name, seconds in found["tests"].items() if name.partition("::")[0] in there}
    files, slow = summed(tests)
    crates = area_of_crate()
    programs, schedules = (
        {name: value for name, value in found[part].items() if name.partition("/")[0] in crates}
        for part in ("programs", "schedules")
    )
    seconds = Seconds(files, slow, programs, schedules)
    seconds.save()
    areas = seconds.quick_by_area(crates)
    for name, value in sorted(areas.items(), key=lambda area: -area[1]):
        print(f"{name:<24} {value:6.1f} s")
    print(f"{'all quick tests':<24} {sum(areas.values()):6.1f} s; whole: {len(slow)} Python tests, ", end="")
    print(f"{sum(not seconds.is_quick_program(name) for name in programs)} programs")
    for line in over_budget(areas):
        print(line, file=sys.stderr)
    return 0


def missing_of(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Files of Python tests that were not run, and suites of which no program was."""
    ran = {test.partition("::")[0] for test in found["tests"]}
    suites = {"programs": "cargo test", "schedules": "histories"}
    return [*(name for part, name in suites.items() if not found[part]), *sorted(set(test_files()) - ran)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
