"""Makes docs/gallery from nothing: `make gallery`, or `python scripts/gallery_pages.py [--keep] [--pages] [ENTRY...]`.

Debian's packages that are missing are installed. Each entry is built, checked on each of its interfaces with the
program's allocator and with one that is private to each core, and what was found goes into docs/gallery/gallery.json.
Pages and pictures are made of that alone. `--keep` keeps runs that are complete (`make gallery KEEP=1` goes on where it
was ended), `--pages` only writes the pages again.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import picture
import system_packages
from commutant.report import RunReport, rank_shared
from commutant.runs import load_run, report_of
from commutant.targets.gallery import ENTRIES, Entry, installed_version, version_of

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "runs" / "gallery"
PAGES = ROOT / "docs" / "gallery"
DATA = PAGES / "gallery.json"
ALLOCATORS = ("program", "per-core")
SHOWN_FIELDS = 3
KEPT_FIELDS = 12

Result = dict[str, Any]


def runs_of(entries: Sequence[Entry]) -> Iterator[tuple[Entry, str, str, Path]]:
    """Entry, interface, allocator and run directory of each run."""
    for entry in entries:
        for interface in entry.interfaces:
            for allocator in ALLOCATORS:
                yield entry, interface, allocator, RUNS / f"{interface}-{entry.name}-{allocator}"


def install(entries: Sequence[Entry]) -> None:
    """Debian's packages of the entries, those that are missing. Raises StepFailed."""
    packages = sorted({entry.package for entry in entries if entry.package})
    system_packages.install([package for package in packages if not installed_version(package)])


def check(entry: Entry, interface: str, allocator: str, run: Path) -> None:
    """One run; says in a line what came of it."""
    shutil.rmtree(run, ignore_errors=True)
    target = f"gallery:{entry.name},allocator={allocator}"
    command = [sys.executable, "-m", "commutant", "check", interface, "--target", target, "--jobs", "1", "-o", str(run)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    first = answer.stdout.strip().partition("\n")[0]
    last = answer.stderr.strip().rpartition("\n")[2]
    print(
        first if answer.returncode == 0 else f"{interface} on {target}: exit code {answer.returncode}: {last}",
        flush=True,
    )


def result(entry: Entry, interface: str, allocator: str, run: Path) -> Result:
    """What a run found, as plain data."""
    report = report_of(load_run(run))
    summary: dict[str, Any] = dict(report.summary)
    ranked = rank_shared(report.tests)
    fields = [{"name": shared.name, "tests": shared.tests, "sets": shared.sets} for shared in ranked[:KEPT_FIELDS]]
    counts = ("tests", "conflict_free", "conflicting", "unstable", "wrong_result", "crashed", "skipped")
    return {
        "interface": interface,
        "entry": entry.name,
        "shown": entry.shown,
        "version": version_of(entry),
        "allocator": allocator,
        **{name: summary[name] for name in counts},
        "sets": [{name: one[name] for name in ("calls", "tests", "conflict_free")} for one in summary["sets"]],
        "fields": fields,
        "blocks": blocks(report),
    }


def blocks(report: RunReport) -> list[str]:
    """The distinct blocks of memory that a run's findings lie in: what each consists of, and who asked for it."""
    found = set()
    for judged in report.tests:
        for finding in judged.findings:
            place = re.search(r"\(([^()]+, [^()]+:\d+)(?:; by \w+)?\)$", finding.name)
            if place and " | " not in finding.object:
                found.add(f"{finding.object.removesuffix(place[0]).strip()} ({place[1]})")
    return sorted(found)


def percent(found: Result) -> str:
    """The share of judged tests that are free of conflicts."""
    judged = found["tests"] - found["skipped"]
    return f"{100 * found['conflict_free'] / judged:.0f} %" if judged else "–"


def worst(found: Result) -> str:
    """The field that most tests share."""
    return f"`{found['fields'][0]['name']}`" if found["fields"] else "none"


def cell(text: str) -> str:
    """A text within a table: a bar would begin the next cell."""
    return text.replace("|", "\\|")


def sentences(results: Sequence[Result]) -> str:
    """Two sentences on an interface: who shares least and most, and what an allocator of its own changes."""
    own = [found for found in results if found["allocator"] == "program"]
    alone = {found["entry"]: found for found in results if found["allocator"] == "per-core"}
    ranked = sorted(own, key=lambda found: (-found["conflict_free"], found["shown"]))
    best, last = ranked[0], ranked[-1]
    tests = max(found["tests"] for found in own)
    of_best = tests - best["conflict_free"]
    first = f"Of {tests} tests whose calls commute, {best['shown']} shares memory in {of_best}"
    if last is best:
        first += "."
    else:
        first += f", {last['shown']} in {tests - last['conflict_free']}, mostly {worst(last)}."
    gained = {found["entry"]: alone[found["entry"]]["conflict_free"] - found["conflict_free"] for found in own}
    most = max(own, key=lambda found: gained[found["entry"]])
    if gained[most["entry"]] > 0:
        second = (
            f"With memory that is private to each core {gained[most['entry']]} more tests of {most['shown']} are "
            "free of conflicts: those the allocator has to answer for."
        )
    else:
        second = "With memory that is private to each core no more tests are free of conflicts: the rest is their own."
    return f"{first} {second}"


def page(interface: str, results: Sequence[Result]) -> str:
    """The page of an interface."""
    lines = [f"# Gallery: {interface}", "", sentences(results), "", f"![Heat maps]({interface}.svg)", ""]
    lines += [
        "| library | version | tests | conflict-free | with memory private to each core |",
        "| --- | --- | --- | --- | --- |",
    ]
    own = [found for found in results if found["allocator"] == "program"]
    alone = {found["entry"]: found for found in results if found["allocator"] == "per-core"}
    for found in own:
        shares = f"{percent(found)} | {percent(alone[found['entry']])}"
        lines.append(f"| {found['shown']} | {found['version']} | {found['tests']} | {shares} |")
    for found in own:
        lines += [
            "",
            f"## {found['shown']}",
            "",
            f"`commutant check {interface} --target gallery:{found['entry']}`",
            "",
        ]
        if found["wrong_result"] or found["crashed"]:
            lines += [
                f"In {found['wrong_result']} tests a result was wrong, in {found['crashed']} the program ended.",
                "",
            ]
        if not found["fields"]:
            lines.append("Nothing is shared.")
        else:
            lines += ["| shared | tests |", "| --- | --- |"]
            lines += [f"| `{cell(shared['name'])}` | {shared['tests']} |" for shared in found["fields"][:SHOWN_FIELDS]]
    return "\n".join(lines) + "\n"


def index(by_interface: dict[str, list[Result]]) -> str:
    """The page that leads to all others, with the table of all libraries."""
    lines = [
        "# Gallery: what well-known libraries share",
        "",
        "Each library was checked with the tests that a model of its interface gives: pairs of calls that commute, and",
        "so could be made without a shared cache line that anybody writes. `make gallery` makes these pages from",
        "nothing; `commutant check INTERFACE --target gallery:NAME` repeats a line ([how](../guides/libraries.md)).",
        "",
        "| interface | library | version | tests | conflict-free | with memory private to each core | worst field |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for interface, results in by_interface.items():
        alone = {found["entry"]: found for found in results if found["allocator"] == "per-core"}
        lines += [
            f"| [{interface}]({interface}.md) | {found['shown']} | {found['version']} | {found['tests']} | "
            f"{percent(found)} | {percent(alone[found['entry']])} | {cell(worst(found))} |"
            for found in results
            if found["allocator"] == "program"
        ]
    return "\n".join(lines) + "\n"


def pages(results: Sequence[Result]) -> dict[str, str]:
    """All pages by the names of their files, from the data alone."""
    by_interface: dict[str, list[Result]] = {}
    for found in results:
        by_interface.setdefault(found["interface"], []).append(found)
    written = {f"{interface}.md": page(interface, of_it) for interface, of_it in by_interface.items()}
    return {"README.md": index(by_interface), **written}


def main(arguments: list[str]) -> int:
    """Runs, gathers, writes; returns the exit code."""
    flags = {argument for argument in arguments if argument.startswith("--")}
    names = [argument for argument in arguments if not argument.startswith("--")]
    if flags - {"--keep", "--pages"} or set(names) - set(ENTRIES):
        print(__doc__, file=sys.stderr)
        return 2
    entries = [ENTRIES[name] for name in names] or list(ENTRIES.values())
    PAGES.mkdir(parents=True, exist_ok=True)
    if "--pages" not in flags:
        install(entries)
        for entry, interface, allocator, run in runs_of(entries):
            if not ("--keep" in flags and (run / "summary.json").exists()):
                check(entry, interface, allocator, run)
        done = [one for one in runs_of(list(ENTRIES.values())) if (one[3] / "summary.json").exists()]
        results = [result(*one) for one in done]
        order = list(dict.fromkeys(interface for entry in ENTRIES.values() for interface in entry.interfaces))
        results.sort(key=lambda found: order.index(found["interface"]))
        DATA.write_text(json.dumps({"schema_version": 1, "runs": results}, indent=1, ensure_ascii=False) + "\n")
        for interface in {found["interface"] for found in results}:
            shown = [run for _, of, allocator, run in done if of == interface and allocator == "program"]
            (PAGES / f"{interface}.svg").write_text(picture.draw(shown))
    for name, text in pages(json.loads(DATA.read_text())["runs"]).items():
        (PAGES / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
