"""The page on the four papers has a row for each of their tables and figures, and its rows are true.

The lists below were read off the papers. A row names what it stands for in its first cell: `Figure 7 (a)`,
`Figures 1 and 2`, `Figures 8.1 to 8.3`, `Figure 7 (c), section 7.3`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import pytest

from bench import txos
from bench.__main__ import names as bench_areas
from tests.repository.tree import ROOT, command, toml

PAGE = ROOT / "docs" / "notes" / "papers.md"

PAPERS = {
    "The scalable commutativity rule": [
        *(f"Figure {number}" for number in (1, 2, 3, 4, 5, 6, 7)),
        *(f"Section {number}" for number in ("6.1", "6.3", "6.4", "7.2", "7.3")),
    ],
    "The limits of optimistic concurrency": [
        *("Figure 1", "Table 1", "Table 2", "Table 3"),
        *("Section 3", "Section 4.2", "Section 4.3"),
    ],
    "TxOS": [
        *(f"Table {number}" for number in ("2.1", "2.2", "3.1", "4.1", "5.1", "5.2", "5.3", "5.4", "6.1", "7.1")),
        *(f"Figure {number}" for number in ("1.1", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "4.1", "5.1", "7.1")),
        *(f"Section {number}" for number in ("5.1", "5.2", "5.5", "5.6", "5.8")),
    ],
    "Lists without locks (OLF)": [
        *(f"Table 8.{number}" for number in range(1, 5)),
        *(f"Figure 8.{number}" for number in range(1, 15)),
        "Section 8.4.2",
    ],
    "Hare": [*(f"Figure {number}" for number in range(1, 16)), "Section 5.3.3"],
}
"""What each paper shows: all that it numbers, and sections whose text has figures of its own."""

PARTS = {"Figure 6": {"left half", "right half"}, "Figure 7": {"(a)", "(b)", "(c)"}}
"""What the page shows in several rows, of the first paper."""

OURS = {
    "710": "lines of the model, counted for this page",
    "417": "lines of set-up and observation, counted for this page",
    "422": "tests of fstatx with link and unlink, counted for this page",
    "24": "tests of two opens that share, counted for this page",
    "332": "tests of two opens, counted for this page",
    "18": "how many calls the interface has, which is its name",
    "6.1": "a version of Linux",
    "15": "classes that the command lists unless it is asked for more",
}
"""Numbers of this project that stand on the page itself; all others stand where the links lead to."""


QUOTIENTS = {"0.26": ("1", "3.9"), "2.5": ("1,032", "413"), "3.4": ("2,458", "714")}
"""Numbers of TxOS that the table next to ours works out of those on the page."""


@dataclass(frozen=True)
class Row:
    """A row of the page: what it stands for, and its other cells."""

    paper: str
    what: str
    theirs: str
    ours: str
    command: str
    differs: str

    @property
    def commands(self) -> list[str]:
        """The commands that make ours."""
        return re.findall(r"`([^`]+)`", self.command)

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing here."""
        return self.ours.startswith(("Not built yet", "None:"))


def rows(text: str) -> list[Row]:
    """The rows of the tables that have five columns, each under the heading of its paper."""
    found = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        body = body.partition("\n### ")[0]
        for line in re.findall(r"^\|(?! --- | what \|)(.*)\|$", body, re.MULTILINE):
            cells = [cell.strip() for cell in line.split("|")]
            assert len(cells) == 5, f"{heading}: a row of {len(cells)} cells, not 5: {line[:60]}"
            found.append(Row(heading, *cells))
    return found


def items(what: str) -> list[tuple[str, str]]:
    """Which tables, figures and sections a first cell names, each with the part of it that is meant, if any."""
    found = []
    for piece in what.split(", "):
        kind, _, rest = piece.partition(" ")
        kind = kind.capitalize().removesuffix("s")
        between = re.fullmatch(r"(?:(\d+)\.)?(\d+) to (?:\1\.)?(\d+)", rest)
        if between:
            chapter, first, last = between.groups()
            numbers = [f"{chapter}.{number}" if chapter else str(number) for number in range(int(first), int(last) + 1)]
            found += [(f"{kind} {number}", "") for number in numbers]
        elif kind in {"Left", "Right"}:
            found[-1] = (found[-1][0], piece)
        else:
            for number in rest.split(" and "):
                name, _, part = number.partition(" ")
                found.append((f"{kind} {name}", part))
    return found


ROWS = rows(PAGE.read_text())
IDS = [f"{row.paper}: {row.what}" for row in ROWS]


@pytest.mark.parametrize("paper", PAPERS)
def test_each_table_and_figure_has_a_row(paper: str) -> None:
    shown: dict[str, list[str]] = {}
    for row in ROWS:
        if row.paper == paper:
            for name, part in items(row.what):
                shown.setdefault(name, []).append(part)
    assert sorted(set(PAPERS[paper]) - set(shown)) == [], "without a row"
    assert sorted(set(shown) - set(PAPERS[paper])) == [], "not in the paper"
    for name, parts in shown.items():
        whole = paper == "The scalable commutativity rule" and name in PARTS
        assert sorted(parts) == sorted(PARTS[name] if whole else {""}), f"{name} stands in {len(parts)} rows: {parts}"


def test_each_row_is_of_a_paper() -> None:
    assert {row.paper for row in ROWS} == set(PAPERS)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_leads_to_a_figure_or_says_that_there_is_none(row: Row) -> None:
    assert row.theirs, "says nothing of the paper"
    has_link = "](" in row.ours
    if row.is_missing:
        said = re.sub(r"\[[^\]]*\]\([^)]*\)|`[^`]*`", "", row.ours)
        assert not re.search(r"\d", said), f"a figure of what is not there: {row.ours}"
        assert has_link or not row.commands, "a command, and no link to what it makes"
    else:
        assert has_link, "no link to where ours stands"
        assert row.commands or row.theirs.startswith("drawing"), "no command that makes ours"


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_our_figures_stand_where_the_links_lead(row: Row) -> None:
    said = re.sub(r"\]\([^)]*\)|`[^`]*`|commit \w+", "", row.ours)
    numbers = set(re.findall(r"\d[\d,.]*\d|\d", said)) - OURS.keys()
    assert not numbers, f"{row.what}: {sorted(numbers)} have a place of their own, or belong into OURS"


def test_no_number_that_is_kept_here_is_kept_here_in_vain() -> None:
    text = " ".join(row.ours for row in ROWS)
    assert not [number for number in OURS if not re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d,])", text)]


def test_the_table_beside_txos_has_the_same_numbers_of_the_thesis() -> None:
    theirs = " ".join(row.theirs for row in ROWS if row.paper == "TxOS")
    stated = set(re.findall(r"\d[\d.,]*", theirs.replace(", ", " ")))
    for row in txos.ROWS:
        for number in re.findall(r"\d+(?:\.\d+)?", row.theirs):
            if number in QUOTIENTS:
                above, below = QUOTIENTS[number]
                assert {above, below} - {"1"} <= {one.rstrip(".") for one in stated}, f"{row.words}: {above}, {below}"
                quotient = float(above.replace(",", "")) / float(below.replace(",", ""))
                assert quotient == pytest.approx(float(number), rel=0.02), row.words
            else:
                assert number in {one.rstrip(".") for one in stated}, f"{row.words}: {number} is not on the page"


@functools.cache
def _verbs() -> str:
    return command("commutant", "--help")


@functools.cache
def _options(*verb: str) -> str:
    return command("commutant", *verb, "--help")


def fault_of(line: str) -> str:
    """Why a command cannot be what it looks like; nothing if it can."""
    program, *rest = re.sub(r"^[A-Z]+=(\"[^\"]*\"|\S*) ", "", line).split()
    if program == "commutant":
        if not re.search(rf"^  {re.escape(rest[0])}\b", _verbs(), re.MULTILINE):
            return f"no verb {rest[0]}"
        unknown = [word for word in rest if word.startswith("-") and word not in _options(rest[0])]
        return f"no option {unknown[0]}" if unknown else ""
    if program == "make":
        makefile = (ROOT / "Makefile").read_text()
        target = rest[0]
        if target.startswith("bench-"):
            return "" if target.removeprefix("bench-") in bench_areas() else f"no area {target.removeprefix('bench-')}"
        return "" if re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE) else f"no target {target}"
    if program == "cargo":
        return _fault_of_cargo(rest)
    if program in {"wc", "grep"}:
        pattern = rest[-1]
        return "" if list(ROOT.glob(pattern)) else f"no file {pattern}"
    return f"{program} is no command of this project"


def _fault_of_cargo(words: list[str]) -> str:
    """Whether a crate has the example, the test or the benchmark that a line of cargo names."""
    if "-p" not in words:
        return "no crate"
    name = words[words.index("-p") + 1]
    folders = list((ROOT / "crates").glob(f"*/{name}"))
    if not folders:
        return f"no crate {name}"
    for option, place in (("--example", "examples"), ("--test", "tests"), ("--bench", "benches")):
        if option in words:
            wanted = words[words.index(option) + 1]
            files = [folders[0] / place / f"{wanted}.rs", folders[0] / place / wanted / "main.rs"]
            manifest = toml(str((folders[0] / "Cargo.toml").relative_to(ROOT)))
            declared = {one["name"] for one in manifest.get(option.removeprefix("--"), [])}
            if wanted not in declared and not any(file.exists() for file in files):
                return f"{name} has no {place}/{wanted}"
    return ""


@pytest.mark.parametrize("line", sorted({line for row in ROWS for line in row.commands}))
def test_commands_of_the_page_exist(line: str) -> None:
    assert not fault_of(line)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("commutant chekc posix18", "no verb chekc"),
        ("commutant check posix18 --targte scalefs", "no option --targte"),
        ("make bench-nothing", "no area nothing"),
        ("make nothing", "no target nothing"),
        ("cargo test -p nothing", "no crate nothing"),
        ("cargo run --release -p transact --example nothing -- 4", "transact has no examples/nothing"),
        ('RUSTFLAGS="--cfg loom" cargo test -p olf --test nothing', "olf has no tests/nothing"),
        ("wc -l src/commutant/nothing/*.py", "no file src/commutant/nothing/*.py"),
        ("fio all.fio", "fio is no command of this project"),
    ],
)
def test_a_planted_command_is_refused(line: str, fault: str) -> None:
    assert fault_of(line) == fault


def test_first_cells_are_understood() -> None:
    assert items("Figures 8.9 to 8.11") == [("Figure 8.9", ""), ("Figure 8.10", ""), ("Figure 8.11", "")]
    assert items("Figures 1.1 and 7.1") == [("Figure 1.1", ""), ("Figure 7.1", "")]
    assert items("Figure 7 (c), section 7.3") == [("Figure 7", "(c)"), ("Section 7.3", "")]
    assert items("Figure 6, left half") == [("Figure 6", "left half")]
