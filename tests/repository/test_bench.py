"""The page of figures: made from its JSON file, and honest about goals that were missed."""

from __future__ import annotations

import importlib
import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import document, doors, scaling
from bench.__main__ import main, names
from bench.areas import durable, instructions, processes, programs, scale
from bench.figure import Figure, Goal, number
from bench.highlights import HIGHLIGHTS
from bench.plot import Plot, Series, bars
from bench.txos import ROWS, section, table

FIGURE = Figure(
    "windows per second", "windows/s", (1510.0, 1490.0, 1600.0), "make bench-windows", Goal("at_least", 1500)
)


def test_figure_survives_its_json() -> None:
    assert Figure.from_json(FIGURE.to_json()) == FIGURE


def test_goal_is_held_against_the_median() -> None:
    assert FIGURE.met is True
    assert Figure("late", "s", (1.0, 7.0, 6.0), "make demo", Goal("at_most", 5)).met is False
    assert Figure("plain", "s", (1.0,), "make demo").met is None


def test_page_shows_median_spread_goal_command_and_machine() -> None:
    area = {
        "title": "Speed",
        "date": "2026-01-31",
        "machine": {"cores": "2", "commit": "abc"},
        "figures": [FIGURE.to_json(), Figure("late", "s", (6.0,), "make demo", Goal("at_most", 5)).to_json()],
    }
    page = document.samples({"speed": area})
    assert "`make bench-speed`, 2026-01-31; cores 2, commit abc." in page
    assert "| 1510 windows/s | 1490 to 1600 (3 samples) | ≥ 1500, reached | `make bench-windows` |" in page
    assert "≤ 5, **missed**" in page


def test_page_in_docs_is_the_one_that_its_json_gives() -> None:
    areas = document.load()
    assert document.PAGE.read_text() == document.page(areas)
    assert document.SAMPLES.read_text() == document.samples(areas)
    assert document.TIMES.read_text() == document.times(areas)
    assert set(areas) <= set(names())


@pytest.mark.parametrize("name", names())
def test_an_area_has_what_the_run_of_all_of_them_asks_for(name: str) -> None:
    """An area's own constant was once called as the table that a run prints at its end, when all was measured."""
    area = importlib.import_module(f"bench.areas.{name}")
    assert isinstance(area.TITLE, str) and callable(area.measure)
    assert callable(getattr(area, "TABLE", callable))


def test_unknown_area_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-area"]) == 2
    message = capsys.readouterr().err
    assert "no-such-area" in message
    assert all(name in message for name in names())


@given(st.floats(min_value=1e-4, max_value=1e9))
def test_numbers_keep_three_digits(value: float) -> None:
    text = number(value)
    assert "e" not in text
    assert float(text) == pytest.approx(value, rel=0.006)


OUTPUT = """   close-on-exec   spawn (ns)    fork (ns) host's spawn
               3         1000         2000       900000
          100000         1200       400000            -
    mapped pages   spawn (ns)    fork (ns) host's spawn
               3         1000         3000            -
"""


def test_processes_are_read_by_what_their_parent_has() -> None:
    noisy = OUTPUT.replace(" 1000 ", " 1500 ").replace("1200", "1500")
    found = processes.times_of([OUTPUT, noisy, OUTPUT])
    closed, pages = "descriptors that exec closes", "mapped pages"
    thrice = (1000, 1500, 1000)
    assert found == {
        closed: [(3, thrice, (2000,) * 3), (100_000, (1200, 1500, 1200), (400_000,) * 3)],
        pages: [(3, thrice, (3000,) * 3)],
    }
    figures = {figure.name: figure for figure in processes.figures_of(found)}
    ratio = figures[f"posix_spawn with 100,000 {closed}, of its time with 3"]
    assert ratio.samples == (1.2, 1.0, 1.2)
    assert ratio.met is False
    drawn = ElementTree.fromstring(processes.picture(found))[1]
    places = [(circle.attrib["cx"], circle.attrib["cy"]) for circle in drawn.iter("{http://www.w3.org/2000/svg}circle")]
    assert len({across for across, _ in places}) == 2
    assert len(places) == 4
    spreads = [
        line.attrib
        for line in drawn.iter("{http://www.w3.org/2000/svg}line")
        if line.attrib["x1"] == line.attrib["x2"] and line.attrib["y1"] != line.attrib["y2"]
    ]
    assert len(spreads) == 2, "times of fork were the same in all runs"
    assert {(spread["x1"], spread["y1"]) for spread in spreads} < set(places), "the median is the least here"


PRINTED = """stat   273 [260, 290]   1269 [1200, 1300]   0.200 [0.200, 0.240]
stat, against a mount   280 [260, 290]   1500 [1400, 1600]   0.187 [0.180, 0.240]
stat, after 1000 programs   300 [260, 340]   1269 [1200, 1300]   0.260 [0.200, 0.300]
getppid, passed on   220 [219, 221]   164 [160, 170]   1.250 [1.240, 1.340]
fork, exec of true, wait   1993000 [1900000, 2000000]   906000 [900000, 910000]   2.260 [2.080, 2.400]
create and close, call 10 of a transaction, against the same without   60 [50, 70]   50 [40, 60]   1.200 [1.100, 2.400]
tar of 20000 files   900 [800, 1000]   1000 [900, 1100]   0.900 [0.800, 1.000]
not tested: rsync is not installed
"""


def test_programs_are_held_against_tmpfs_and_a_mount() -> None:
    figures = {figure.name: figure for figure in programs.figures_of(PRINTED, "command", "tree")}
    assert figures["tree: stat, of tmpfs's time"].met is True
    assert figures["tree: stat, of the time in a mount"].median == 0.187
    assert figures["tree: stat, after 1000 programs, of tmpfs's time"].met is False
    assert figures["tree: getppid, passed on, of tmpfs's time"].goal is None
    assert (
        figures["tree: create and close, call 10 of a transaction, of the time without"].goal_text == "≤ 2.5, reached"
    )
    assert figures["tree: fork, exec of true, wait, longer than on tmpfs"].met is False
    assert figures["tree: tar of 20000 files, of tmpfs's time"].goal_text == "≤ 0.8, **missed**"
    area = {
        "date": "2001-02-03",
        "machine": {"commit": "0123456789"},
        "figures": [one.to_json() for one in figures.values()],
    }
    rows = [line for line in doors.section(area) if line.startswith("| ")]
    assert len(rows) == 2 + 5
    assert rows[2] == "| stat | 273 | **0.200** [0.200, 0.240] | ≤ 0.2, reached | **0.187** [0.180, 0.240] |"
    assert doors.section({**area, "figures": []}) == []
    assert doors.section(None) == []


def test_runs_of_other_rows_are_not_samples_of_one_figure() -> None:
    with pytest.raises(RuntimeError, match="other rows"):
        processes.times_of([OUTPUT, OUTPUT.replace("100000", "100001")])


def test_a_plot_places_every_point_within_its_frame() -> None:
    series = [Series("a < b", [(1, 0.02), (2, 700.0)]), Series("one", [(1, 5.0)])]
    root = ElementTree.fromstring(Plot.drawn([Plot("left", "calls", series), Plot("right", "calls", series)]))
    *_, width, height = map(float, root.attrib["viewBox"].split())
    groups = [element for element in root if element.tag.endswith("}g")]
    assert len(groups) == 2
    for group in groups:
        circles = [element.attrib for element in group if element.tag.endswith("}circle")]
        assert len(circles) == 3
        assert all(0 < float(c["cx"]) < width / 2 and 20 < float(c["cy"]) < height - 30 for c in circles)
        assert float(circles[1]["cy"]) < float(circles[2]["cy"]) < float(circles[0]["cy"])


def test_a_picture_stands_above_its_figures() -> None:
    area = {"title": "T", "date": "d", "machine": {}, "figures": [FIGURE.to_json()], "picture": "p.svg"}
    assert "![T](../p.svg)\n\n| figure" in document.samples({"a": area})


def test_the_page_begins_with_what_matters_and_leaves_out_what_was_not_measured() -> None:
    figure = Figure("from the command to the heat map", "s", (5.0, 6.0, 7.0), "make demo", Goal("at_most", 5))
    area = {"title": "T", "date": "2026-01-31", "machine": {"commit": "abcdef012"}, "figures": [figure.to_json()]}
    table = document.page({"demo": area}).split("## ")[0]
    assert "| **6.00 s** | ≤ 5, **missed** |  | `make bench-demo`, 2026-01-31, abcdef0 |" in table
    assert "windows" not in table


def test_every_highlight_is_a_figure_that_an_area_measures() -> None:
    areas = document.load()
    recorded = {(area, figure["name"]) for area, found in areas.items() for figure in found["figures"]}
    assert not {(highlight.area, highlight.figure) for highlight in HIGHLIGHTS} - recorded
    assert not {(one.area, one.limit) for one in HIGHLIGHTS if one.limit} - recorded


def test_bars_are_as_long_as_their_values() -> None:
    root = ElementTree.fromstring(bars({"a < b": 0.25, "c": 1.5}, "title"))
    widths = [float(r.attrib["width"]) for r in root if r.attrib.get("fill") == "#1b6ca8"]
    assert widths == [90.0, 360.0]


def test_what_is_not_measured_beside_txos_says_why() -> None:
    name = "10,000 names in one, per name, of outside"
    figure = Figure(name, "", (3.0, 2.5, 9.0), "cargo bench", Goal("at_most", 2))
    head, _, *rows = table({name: figure})
    assert len(rows) == len(ROWS)
    assert all(row.count("|") == head.count("|") and not row.endswith("| |") for row in rows)
    assert f"| {name} | ≤ 2, **missed** |  | **3.00** | 2.50 to 9.00 | `cargo bench` |" in rows
    assert sum("not measured" in row or "commits" in row or "campaign" in row for row in rows) == len(ROWS) - 1
    area = {"figures": [figure.to_json()], "machine": {"cores": "2", "commit": "abcdefgh"}, "date": "2026-01-31"}
    text = "\n".join(section(area))
    assert "on 2026-01-31 at commit abcdefg." in text
    assert "Ours are of cores 2." in text
    assert not list(section(None))


def test_the_table_of_transfers_has_a_row_for_each_benchmark() -> None:
    step = {"cores": 8, "transfers": 0.0, "maintenance": 0.25, "after_maintenance": 0.5}
    documents = [
        {"benchmark": name, "steps": [step, {**step, "cores": 32, "transfers": 2.0}]} for name in ("statx", "stat")
    ]
    figures = [figure for document in documents for figure in scale.figures_of(document, "command")]
    assert [figure.met for figure in figures] == [True, False, False, False, None, None, None, None]
    area = {"date": "2026-01-01", "machine": {"commit": "0123456789"}, "figures": [one.to_json() for one in figures]}
    lines = scaling.section(area)
    first, second = (line for line in lines if line.startswith("| `stat"))
    assert first == "| `statx` | yes | 0 / 0.750 | 2.00 / 0.750 |"
    assert second == "| `stat` |  | 0 / 0.750 | 2.00 / 0.750 |"
    assert scaling.section(None) == []


def test_a_counting_is_the_runs_of_each_number_of_cores() -> None:
    counting = scale.Counting("statx", (2, 8), ("--operations", "64"))
    assert counting.command == "commutant scale statx --cores 2,8 --operations 64"
    assert counting.arguments(8) == ("scale", "statx", "--cores", "8", "--operations", "64")
    steps = [{"cores": cores, "accesses": accesses} for cores, accesses in ((8, 300.0), (32, 310.0), (256, 330.0))]
    (figure,) = scale.of_two({"benchmark": "stat-two", "steps": steps}, counting.command)
    assert (figure.name, figure.met) == ("stat-two: accesses at 256 cores to those at 8", True)
    assert figure.median == pytest.approx(1.1)
    steps[-1]["accesses"] = 3000.0
    (figure,) = scale.of_two({"benchmark": "stat-two", "steps": steps}, counting.command)
    assert figure.met is False


def test_the_table_of_durable_commits_has_peers_of_the_same_sizes() -> None:
    assert durable.sqlite_served(clients=2, requests=4) > 0
    figures = {
        f"{what}, {size}": Figure(f"{what}, {size}", "ms", (4.8,), "make bench-durable")
        for what in ("append and fdatasync", "durable transaction", "redb", "SQLite, WAL, full")
        for size in (durable.SMALL, durable.LARGE)
    }
    assert durable.TABLE(figures)[2] == "| append and fdatasync | 4.80 ms | 4.80 ms |"


def test_the_curves_of_throughput_have_a_point_for_each_number_of_cores() -> None:
    steps = [{"cores": cores, "predicted": {"operation_ns": 5.0 * cores}} for cores in (1, 10, 20)]
    documents = [{"benchmark": name, "steps": steps} for names in scale.CURVES.values() for name in names]
    figures = [figure for document in documents for figure in scale.curve_of(document, "command")]
    assert (figures[1].name, figures[1].median) == ("statx, 10 cores: predicted throughput per core", 0.1)
    picture = scale.drawn(figures)
    assert picture.count("<polyline") == len(documents)
    assert all(title in picture for title in scale.CURVES)
    area = {"date": "2026-01-01", "machine": {"commit": "0123456789"}, "figures": [one.to_json() for one in figures]}
    assert not any(line.startswith("| `statx`") for line in scaling.section(area)), "no row of transfers"


def test_instructions_are_held_against_what_is_kept() -> None:
    rows = json.loads(instructions.KEPT.read_text())["rows"]
    assert {"stat", "pread", "rename", "front-stat", "front-create-unlink"} <= rows.keys()
    assert all(count > 500 for count in rows.values())
    allowed = [instructions.allowed(row) for row in ("stat", "front-stat", "front-link-unlink", "front-create-unlink")]
    assert allowed == [0, 25, 50, 75]
