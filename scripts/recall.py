"""`make recall`: holds the tool against changes of Linux that removed needless sharing (`bench/recall.toml`).

The rows of that table were chosen before anything was run. This says first what each run takes in time and space, then
makes the runs that are not there yet on the kernels of Debian's archives (an interrupted one goes on), asks of each row
what `commutant remedy` and `commutant prove` would say, and writes `docs/notes/recall.md`. A row that cannot be run
stays in the page, with its reason. A row is

- *found* if the run on the kernel before the change has tests whose transfers the change concerns,
- *predicted* if the change is predicted to save some of them, with the row's mix of calls,
- *counted* if the run on the kernel with the change has fewer transfers of the objects that it is about.

The page ends with what is open: the changes that save most on the newest kernel, and which patch of ours makes them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from commutant.cli.remedy import sense_of, traffic_in
from commutant.remedy import (
    Change,
    Mix,
    Saving,
    Sense,
    Traffic,
    TransferProof,
    TransferTally,
    Way,
    prove_transfers,
    rank_savings,
    read_change,
    read_mix,
    saving_of,
)
from commutant.runs import load_run
from commutant.support import CommutantError
from remedies import CHANGES, PATCHES
from steps import ROOT, StepFailed

COMMUTANT = ROOT / ".venv" / "bin" / "commutant"
TABLE = ROOT / "bench" / "recall.toml"
PAGE = ROOT / "docs" / "notes" / "recall.md"
RUNS = ROOT / "runs" / "recall"
CORES = 32
NEWEST = "6.12"
"""The newest kernel of the archives, on which what is open is looked for, with these tests."""
OPEN_RUNS = ("files", "memory")
_LISTED = 20
_OPEN_LISTED = 12
_RANKED = 60
"""This many are looked at: several of one line are one row."""
_SERIES = ("6.12", "6.1")
_WITHOUT_MEANING = (Way.PART, Way.MOVE, Way.SPREAD, Way.DROP_PREFETCH, Way.DROP_WRITE)
"""Ways that leave what the kernel does as it is, but for writes that change nothing."""


@dataclass(frozen=True)
class Tests:
    """The tests of some rows: an interface and its calls, options of the target, and what a run of them takes."""

    interface: str
    calls: str
    options: str
    seconds: int
    megabytes: int


@dataclass(frozen=True)
class Row:
    """A change of Linux, and how the tool is asked for it; `not_run` says why it cannot be run, or not after it."""

    id: str
    title: str
    commit: str
    version: str
    claim: str
    field: str
    change: tuple[str, ...] = ()
    mix: str = ""
    run: str = ""
    before: str = ""
    after: str = ""
    not_run: str = ""


@dataclass(frozen=True)
class Table:
    """All of it, with the package of each kernel."""

    kernels: dict[str, str]
    runs: dict[str, Tests]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Answer:
    """What the tool said of a row: `saved` of `transfers` at a time are predicted to go in `tests` tests, `rank` of the
    changes that it lists by itself names the field, and what was counted."""

    tests: int
    share: float
    saved: float
    transfers: float
    rank: int | None
    proof: TransferProof | None


def read_table(path: Path) -> Table:
    """The table; raises StepFailed with one line where it is not what it should be."""
    try:
        document = tomllib.loads(path.read_text())
        runs = {name: _made(Tests, f"runs.{name}", known) for name, known in document["runs"].items()}
        rows = tuple(
            _made(Row, f"row {number}", known | {"change": tuple(known.get("change", ()))})
            for number, known in enumerate(document["row"], 1)
        )
        table = Table(dict(document["kernels"]), runs, rows)
    except (OSError, tomllib.TOMLDecodeError, KeyError, AttributeError) as error:
        raise StepFailed(f"{path}: expected a table of rows, runs and kernels: {error}") from None
    for row in rows:
        _check(row, table, path)
    if len({row.id for row in rows}) < len(rows):
        raise StepFailed(f"{path}: expected an id of its own for each row")
    return table


def _made(kind: type, place: str, known: dict[str, Any]) -> Any:
    expected = [one.name for one in fields(kind)]
    unknown = sorted(set(known) - set(expected))
    if unknown:
        raise StepFailed(f"{TABLE.name}, {place}: {unknown[0]!r} is none of {', '.join(expected)}")
    try:
        return kind(**known)
    except TypeError as error:
        raise StepFailed(f"{TABLE.name}, {place}: {error}") from None


def _check(row: Row, table: Table, path: Path) -> None:
    if not row.run and not row.not_run:
        raise StepFailed(f"{path}: {row.id} has neither a run nor a reason why it is not run")
    if row.run and row.run not in table.runs:
        raise StepFailed(f"{path}: {row.id} names the run {row.run!r}; expected one of {', '.join(table.runs)}")
    for kernel in (row.before, row.after) if row.run else ():
        if kernel and kernel not in table.kernels:
            raise StepFailed(
                f"{path}: {row.id} names the kernel {kernel!r}; expected one of {', '.join(table.kernels)}"
            )
    if row.run and not (row.before and row.change and row.mix):
        raise StepFailed(f"{path}: {row.id} lacks what it takes to run it: before, change and mix")


def needed(table: Table) -> list[tuple[str, str]]:
    """The runs that rows need, as a name of tests and a kernel."""
    asked = [(row.run, kernel) for row in table.rows if row.run for kernel in (row.before, row.after) if kernel]
    return list(dict.fromkeys(asked))


def plan(table: Table) -> list[str]:
    """What is made, and what it takes."""
    lines = []
    for name, kernel in needed(table):
        tests = table.runs[name]
        there = " (there)" if is_finished(folder_of(name, kernel)) else ""
        used = ", ".join(row.id for row in table.rows if row.run == name and kernel in (row.before, row.after))
        takes = f"about {tests.seconds} s of two processors, {tests.megabytes} MB{there}"
        lines.append(f"{name} on Linux {kernel}: {takes}; for {used}")
    return lines


def folder_of(name: str, kernel: str) -> Path:
    """Where a run lies."""
    return RUNS / f"{name}-{kernel}"


def is_finished(run: Path) -> bool:
    """Whether a run is there, and over."""
    return (run / "summary.json").is_file()


def commutant(*arguments: str) -> None:
    """Runs the command; raises StepFailed if it fails."""
    answer = subprocess.run([COMMUTANT, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if answer.returncode != 0:
        raise StepFailed(f"commutant {' '.join(arguments)}: exit code {answer.returncode}")


def make(table: Table, name: str, kernel: str) -> None:
    """Makes a run, or goes on with it."""
    run, tests = folder_of(name, kernel), table.runs[name]
    if is_finished(run):
        return
    say(f"{'going on with' if run.is_dir() else 'making'} {run.relative_to(ROOT)}")
    if run.is_dir():
        commutant("resume", str(run))
        return
    run.parent.mkdir(parents=True, exist_ok=True)
    package = table.kernels[kernel]
    commutant("prepare", package)
    options = ",".join(part for part in (tests.options, f"kernel={package}") if part)
    calls = ("--calls", tests.calls) if tests.calls else ()
    commutant("check", tests.interface, *calls, "--target", f"linux:{options}", "-o", str(run))
    check_kernel(run, kernel)


def check_kernel(run: Path, kernel: str) -> None:
    """Raises StepFailed if a run is of another series of Linux than its rows are about."""
    release = str(json.loads((run / "run.json").read_text())["target_description"].get("kernel", "unknown"))
    if not release.startswith(f"{kernel}."):
        raise StepFailed(
            f"{run.relative_to(ROOT) if run.is_relative_to(ROOT) else run}: expected Linux {kernel}, got {release}; "
            "this release of Debian has another one under that package's name"
        )


class Asked:
    """The runs that are there, each read once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Traffic, Sense]] = {}

    def _traffic(self, name: str, kernel: str) -> tuple[Traffic, Sense]:
        run = folder_of(name, kernel)
        known = self._known.get(run.name)
        if known is None:
            say(f"reading {run.name}")
            loaded = load_run(run)
            traffic = traffic_in(loaded, CORES)
            known = self._known[run.name] = traffic, sense_of(traffic.scene, loaded.tests)
        return known

    def best(self, name: str) -> list[Saving]:
        """The changes without meaning that save most in a run on the newest kernel, all pairs of calls alike."""
        say(f"asking what is open in {folder_of(name, NEWEST).name}")
        traffic, sense = self._traffic(name, NEWEST)
        listed = rank_savings(traffic, sense, Mix({}), _RANKED)
        return [one for one in (*listed.layouts, *listed.accesses) if one.changes[0].way in _WITHOUT_MEANING]

    def answer(self, row: Row) -> Answer:
        """What the tool says of a row whose runs are there."""
        say(f"asking for {row.id}")
        traffic, sense = self._traffic(row.run, row.before)
        flag, place = row.change
        changes, mix = [read_change(Way(flag.removeprefix("--")), place)], read_mix(row.mix)
        saving = saving_of(traffic, changes, mix)
        listed = rank_savings(traffic, sense, mix, _LISTED)
        by_itself = [*listed.layouts, *listed.accesses]
        rank = next((place for place, one in enumerate(by_itself, 1) if row.field in str(one.changes[0])), None)
        proof = None
        if row.after and saving.tests and is_finished(folder_of(row.run, row.after)):
            proof = prove_transfers(traffic, self._traffic(row.run, row.after)[0], changes)
        return Answer(len(saving.tests), saving.share.plain, saving.saved.plain, saving.of.plain, rank, proof)


@dataclass(frozen=True)
class Open:
    """A change that saves much on the newest kernel, and the tests that show it."""

    run: str
    saving: Saving

    @property
    def change(self) -> Change:
        """The change."""
        return self.saving.changes[0]


def still_open(table: Table, found: dict[str, list[Saving]]) -> list[Open]:
    """The best of these that no row has as mended after the newest kernel, and of each line the best one."""
    mended = {tuple(row.change) for row in table.rows if row.change and row.before == NEWEST and row.version != "open"}
    ranked = [Open(run, saving) for run, savings in found.items() for saving in savings]
    kept: list[Open] = []
    seen: set[str] = set()
    for one in sorted(ranked, key=lambda one: -round(one.saving.share.plain, 6)):
        # Who parts a line moves each of its members.
        way = "move" if one.change.way is Way.PART else one.change.way.value
        if seen.isdisjoint(one.change.places) and not any((f"--{way}", place) in mended for place in one.change.places):
            kept.append(one)
        seen.update(one.change.places, one.saving.neighbours)
    return kept[:_OPEN_LISTED]


def patch_of(change: Change) -> str:
    """The patch of ours that makes this change, of the newest series that has one."""
    asked = (f"--{change.way.value}", change.place)
    names = [name for name, (_, flags) in CHANGES.items() if flags == asked]
    there = [
        f"`{series}/{name}`" for series in _SERIES for name in names if (PATCHES / series / f"{name}.patch").is_file()
    ]
    return there[0] if there else "-"


def is_found(answer: Answer) -> bool:
    """Whether the tests of the row have what the change is about."""
    return answer.tests > 0


def is_predicted(answer: Answer) -> bool:
    """Whether the change is predicted to save anything."""
    return answer.share > 0


def is_counted(answer: Answer) -> bool:
    """Whether the kernel with the change has fewer transfers there."""
    return answer.proof is not None and answer.proof.every.counted.plain < answer.proof.every.before.plain


_HEAD = """# Recall: the tool held against changes of Linux
These are changes of 2022 to 2026 that removed needless sharing from Linux. `bench/recall.toml` has them as data, with
the field that each is about and what its author measured. The rows were chosen before anything was run for them, and
stay whatever comes of them. `make recall` makes this page.

Of {rows} changes {asked} were run. Of these the tool finds {found} and predicts {predicted} to save transfers. Debian
has a kernel with the change for {counted} of those found; there {fewer} have fewer transfers than before.

## What the columns mean
- *saves*: transfers of lines per round of two calls that the change is predicted to save, of those that there are, in
  the tests that it concerns, with {cores} cores.
- *share*: of all transfers, weighed by the row's mix of calls.
- *rank*: the place of the field in what `commutant remedy RUN --by transfers --mix MIX` lists by itself.
- *before, predicted, after*: transfers of the lines that the change is about, on the kernel before, as predicted, and
  on the kernel with it. Then the median error of the tests, and in how many of them the direction is right.
- *where alike*: of a layout, the same in those of these tests in which both kernels do the same to these lines. In the
  others more has changed: the kernels are of different versions, not one with and without a patch.

## Changes that were run
| change | Linux | field | mix | found | saves | share | rank | before, predicted, after; error, right | where alike |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


_OPEN_HEAD = """
## What is open in Linux {kernel}
Of each line the best change, if no row above has it as mended since: the twelve that save most there. They are layouts,
writes that change nothing, and prefetches for writing. All pairs of calls weigh alike; the columns are those above.
*Freed* counts tests that share nothing any more. *Patch* is ours, [proved](remedies.md) on the kernel that its folder
is called after.

| change | tests | share | saves | freed | patch |
| --- | --- | --- | --- | --- | --- |
"""


def page(table: Table, answers: dict[str, Answer], left: Sequence[Open] = ()) -> str:
    """The page."""
    asked = [answers[row.id] for row in table.rows if row.id in answers]
    counted = [answer for answer in asked if answer.proof is not None]
    lines = _HEAD.format(
        rows=len(table.rows),
        asked=len(asked),
        found=sum(map(is_found, asked)),
        predicted=sum(map(is_predicted, asked)),
        counted=len(counted),
        fewer=sum(map(is_counted, counted)),
        cores=CORES,
    ).splitlines()
    lines += [_line(row, answers[row.id]) for row in table.rows if row.id in answers]
    lines += ["", "What was claimed, and what is not counted:", ""]
    for row in table.rows:
        if row.id in answers:
            reason = f" Not counted: {row.not_run}." if row.not_run else ""
            lines.append(f"- `{row.id}`: {row.title}{_commit(row)}. Claimed: {row.claim}.{reason}")
    lines += ["", "## Not run", "| change | Linux | field | why |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {row.title}{_commit(row)} | {row.version} | `{row.field}` | {row.not_run or 'its runs are not there yet'} |"
        for row in table.rows
        if row.id not in answers
    ]
    if left:
        lines += _OPEN_HEAD.format(kernel=NEWEST).splitlines()
        lines += [_open_line(one) for one in left]
    return "\n".join(lines) + "\n"


def _open_line(one: Open) -> str:
    saving = one.saving
    away = f", away from {', '.join(f'`{name}`' for name in saving.neighbours[:3])}" if saving.neighbours else ""
    return (
        f"| {one.change}{away} | {one.run} | {100 * saving.share.plain:.1f} % | {saving.saved.plain:.2f} of "
        f"{saving.of.plain:.1f} in {len(saving.tests):,} tests | {saving.freed:,} | {patch_of(one.change)} |"
    )


def _commit(row: Row) -> str:
    return f" ({row.commit})" if row.commit else ""


def _line(row: Row, answer: Answer) -> str:
    counted, alike = ("-", "-") if answer.proof is None else (_tally(answer.proof.every), _tally(answer.proof.alike))
    saves = f"{answer.saved:.2f} of {answer.transfers:.1f} in {answer.tests:,} tests" if answer.tests else "-"
    share, rank = f"{100 * answer.share:.1f} %", answer.rank or "-"
    found = "yes" if is_found(answer) else "no"
    cells = (f"`{row.id}`", row.version, f"`{row.field}`", row.mix, found, saves, share, rank, counted, alike)
    return f"| {' | '.join(map(str, cells))} |"


def _tally(tally: TransferTally | None) -> str:
    if tally is None:
        return "-"
    values = [one.plain for one in (tally.before, tally.predicted, tally.counted)]
    return (
        f"{', '.join(f'{value:.1f}' for value in values)} in {tally.tests:,} tests; {tally.median_error:.2f}, "
        f"{tally.right:,}"
    )


def say(what: str) -> None:
    """What is done next."""
    print(f"recall: {what}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Makes runs and page; `--plan` says what it would take, and does nothing, `--kept` makes no run."""
    table = read_table(TABLE)
    for text in plan(table):
        say(text)
    if arguments == ["--plan"]:
        return 0
    if arguments not in ([], ["--kept"]):
        raise StepFailed(f"expected --plan, --kept or nothing, got {' '.join(arguments)}")
    if not arguments:
        for name, kernel in needed(table):
            make(table, name, kernel)
    answers, asked = {}, Asked()
    for row in table.rows:
        if row.run and is_finished(folder_of(row.run, row.before)):
            answers[row.id] = asked.answer(row)
    found = {name: asked.best(name) for name in OPEN_RUNS if is_finished(folder_of(name, NEWEST))}
    PAGE.write_text(page(table, answers, still_open(table, found)))
    say(f"{PAGE.relative_to(ROOT)} is written")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (StepFailed, CommutantError) as error:
        sys.exit(f"recall: {error}")
