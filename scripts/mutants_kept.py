"""What became of mutants: kept between runs of `make test-mutants`, counted, and held against the equivalent ones.

A result is kept under the content of the mutated file, so that an interrupted run goes on where it ended. Mutants that
survive and that no one can tell from the original stand in `scripts/equivalent_mutants.txt`, each with the reason; they
are not counted. `docs/notes/checks.md` holds the score of each area, written by the command itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import re
import resource
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from steps import ROOT, StepFailed, content_hash, run

KEPT = ROOT / "target" / "mutants"
"""Results, one line a mutant, and what is built to try them."""
EQUIVALENT = ROOT / "scripts" / "equivalent_mutants.txt"
PAGE = ROOT / "docs" / "notes" / "checks.md"
BEGIN, END = "<!-- written by scripts/mutants.py: begin -->\n", "<!-- written by scripts/mutants.py: end -->\n"

MEMORY_BYTES = 8 << 30
"""What the tests of one mutant may take."""
PATIENCE = 5
"""A test may take this many times as long as it took without a mutant, and `GRACE_SECONDS` more."""
GRACE_SECONDS = 10.0

Drawn = TypeVar("Drawn")


@dataclass(frozen=True)
class Result:
    """What the tests did with one mutant.

    `outcome` is `killed`, `timeout`, `survived`, or `unviable` if it does not build; `by` is the test that killed it.
    """

    mutant: str
    outcome: str
    by: str = ""


@dataclass(frozen=True)
class Score:
    """What became of the mutants that were drawn of `every`; `missed` are those that no test noticed."""

    every: int
    killed: int
    timed_out: int
    unviable: int
    equivalent: int
    missed: Sequence[str]

    @property
    def counted(self) -> int:
        """How many build and make a difference."""
        return self.killed + self.timed_out + len(self.missed)

    @property
    def percent(self) -> float:
        """How many of these were noticed."""
        return 100 * (self.killed + self.timed_out) / max(1, self.counted)


class Kept:
    """Results of an area. What survived is tried again by other `tests`, or `kinds` of them; what was killed is not."""

    def __init__(self, area: str, tests: Iterable[Path], *kinds: str) -> None:
        self._file = KEPT / f"{area}.jsonl"
        self._tests = content_hash(sorted(tests), *kinds)[:16]
        self._known: dict[str, tuple[str, Result]] = {}
        with contextlib.suppress(OSError):
            for line in self._file.read_text().splitlines():
                entry = json.loads(line)
                result = Result(entry["mutant"], entry["outcome"], entry["by"])
                self._known[entry["key"]] = entry["tests"], result

    def find(self, key: str) -> Result | None:
        """The result that still holds."""
        tests, result = self._known.get(key, ("", None))
        return None if result is None or (result.outcome == "survived" and tests != self._tests) else result

    def add(self, key: str, result: Result) -> None:
        """Keeps a result."""
        self._known[key] = self._tests, result
        KEPT.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps({"key": key, "tests": self._tests, **asdict(result)}) + "\n")


def key_of(content: bytes, name: str) -> str:
    """What a result is kept under: another text of the file makes another mutant."""
    return hashlib.sha256(name.encode() + b"\0" + content).hexdigest()[:24]


def draw(every: Sequence[Drawn], count: int, seed: int, part: tuple[int, int]) -> list[Drawn]:
    """This many of all, by the seed alone, of which a part is to be tried; with a larger count come more of the
    same."""
    few = random.Random(seed).sample(every, len(every))[:count]
    return few[part[0] - 1 :: part[1]]


def score(results: Sequence[Result], every: int) -> Score:
    """Counts results of mutants that were drawn out of `every`."""
    reasons = equivalent()
    outcomes = [result.outcome for result in results]
    survivors = [result.mutant for result in results if result.outcome == "survived"]
    missed = [name for name in survivors if without_place(name) not in reasons]
    return Score(
        every=every,
        killed=outcomes.count("killed"),
        timed_out=outcomes.count("timeout"),
        unviable=outcomes.count("unviable"),
        equivalent=len(survivors) - len(missed),
        missed=missed,
    )


def without_place(name: str) -> str:
    """A mutant without its line and column, which other changes move."""
    return re.sub(r":\d+(:\d+)?: ", ": ", name, count=1)


def equivalent() -> dict[str, str]:
    """The mutants that make no difference, each with the reason that stands after ` # ` in its line."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.exists() else []
    found = {}
    for line in lines:
        if line and not line.startswith("#"):
            name, sign, reason = line.partition(" # ")
            if not sign or not reason.strip():
                raise StepFailed(f"{EQUIVALENT.name}: expected `MUTANT # REASON`, got {line!r}")
            found[name] = reason
    return found


def keep_score(area: str, goal: int, seed: int, of_area: Score) -> None:
    """Writes what was measured into the file of all scores, and from there into the page."""
    file = KEPT / "scores.json"
    KEPT.mkdir(parents=True, exist_ok=True)
    known = json.loads(file.read_text()) if file.exists() else {}
    known[area] = {
        "commit": run(["git", "rev-parse", "--short=7", "HEAD"]).strip(),
        "goal": goal,
        "seed": seed,
        **asdict(of_area),
        "counted": of_area.counted,
        "percent": of_area.percent,
    }
    file.write_text(json.dumps(known, indent=1) + "\n")


def write_page(order: Sequence[str]) -> None:
    """Writes the table of all scores into the page, in the order of the areas.

    The row of an area that was not measured here stays as it is there.
    """
    known = json.loads((KEPT / "scores.json").read_text())
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    old, _, after = rest.partition(END)
    there = {row.split(" ")[1]: row for row in old.splitlines(keepends=True)[2:]}
    rows = "".join(_row(area, known[area]) if area in known else there.get(area, "") for area in order)
    heads = ("area", "commit", "mutants", "tried", "noticed", "goal", "make no difference", "survivors")
    table = f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}\n{rows}"
    PAGE.write_text(f"{before}{BEGIN}{table}{END}{after}", encoding="utf-8")


def _row(area: str, entry: dict[str, object]) -> str:
    missed = entry["missed"]
    assert isinstance(missed, list)
    shown = "<br>".join(f"`{name.replace('|', chr(92) + '|')}`" for name in map(_short, missed)) or "none"
    by_time = f", {entry['timed_out']} by their limit of time" if entry["timed_out"] else ""
    noticed = f"{entry['percent']:.1f} %{by_time}"
    # Scores that an earlier version has kept have none.
    commit = entry.get("commit", "?")
    return (
        f"| {area} | {commit} | {entry['every']} | {entry['counted']} | {noticed} | {entry['goal']} % "
        f"| {entry['equivalent']} | {shown} |\n"
    )


def _short(name: str) -> str:
    """A survivor as the page shows it, without the folder of the crate."""
    return re.sub(r"^crates/[a-z-]+/", "", name)


def bounded() -> None:
    """In a child that will run tests of a mutant: memory is limited."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
