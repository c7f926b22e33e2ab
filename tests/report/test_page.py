"""The page as a file: valid HTML that asks for nothing, holds every test, and lets no name be more than a name."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import html5lib
import pytest

from commutant.campaign.verdict import Outcome
from commutant.corpus.words import headline
from commutant.report import c_program, rank_shared, write_html
from commutant.report.data import RunReport
from commutant.report.page import render_html
from commutant.report.page.bundle import MODULES, page_template, script
from commutant.report.page.pack import unique_names
from commutant.support.errors import RunError
from commutant.support.text import safe_text
from tests.report.invented import POSIX18, changed_run, hostile_run, invented_run, summary_of

LARGEST_PAGE_BYTES = 10_000_000
LARGEST_RUN_TESTS = 25_000
KNOWN = {
    *("html", "head", "title", "meta", "link", "style", "script", "noscript", "body", "header", "footer", "main"),
    *("section", "article", "div", "h1", "h2", "p", "a", "b", "small", "strong", "span", "code", "dl", "dt", "dd"),
    *("table", "thead", "tbody", "tfoot", "tr", "th", "td", "meter", "ol", "li", "details", "summary"),
    *("form", "label", "input", "select", "option", "button"),
}


def _parse(html: str) -> Any:
    """The document tree; any error in the HTML raises."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(html)


def _data(html: str) -> dict[str, Any]:
    packed = re.search(r'<script type="application/gzip" id="data">([A-Za-z0-9+/=]+)</script>', html)
    assert packed is not None
    tables = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    assert isinstance(tables, dict)
    return tables


@pytest.fixture(scope="module")
def friendly() -> RunReport:
    return invented_run()


@pytest.fixture(scope="module")
def base() -> RunReport:
    """Another run of the same tests and of some more, with other findings."""
    return changed_run(invented_run())


@pytest.fixture(scope="module", params=["friendly", "hostile", "empty", "triples", "one"])
def run(request: pytest.FixtureRequest, friendly: RunReport) -> RunReport:
    match request.param:
        case "friendly":
            return friendly
        case "hostile":
            return hostile_run()
        case "empty":
            return RunReport(summary_of([]), [])
        case "one":
            return RunReport(summary_of(friendly.tests[:1]), friendly.tests[:1])
        case _:
            sets = [{"calls": ["get", "get", "put"], "conflict_free": 7, "conflicting": 1, "crashed": 1}]
            return RunReport({**summary_of([]), "sets": sets}, [])


def test_html_is_valid_and_of_known_elements(run: RunReport) -> None:
    document = _parse(render_html(run))
    elements = list(document.iter())
    assert {element.tag for element in elements} <= KNOWN
    ids = [element.get("id") for element in elements if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in elements:
        assert not any(name.startswith("on") for name in element.attrib), element.attrib
        for reference in ("headers", "for", "aria-labelledby", "aria-controls"):
            assert set((element.get(reference) or "").split()) <= set(ids)


def test_page_asks_for_nothing_and_allows_its_own_code_alone(run: RunReport) -> None:
    document = _parse(render_html(run))
    for element in document.iter():
        assert element.get("src") is None
        assert (element.get("href") or "#").startswith("#") or element.get("href") == "data:,"
        assert element.get("style") is None
    policy = document.find(".//meta[@http-equiv='Content-Security-Policy']").get("content")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    code, own_style = document.find(".//script[@type='module']"), document.find(".//style")
    for directive, element in (("script-src", code), ("style-src", own_style)):
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert len(document.findall(".//script")) == 2
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", code.text + own_style.text)


def test_the_page_of_two_runs_is_valid_and_has_two_maps(friendly: RunReport, base: RunReport) -> None:
    for one, other in ((base, friendly), (friendly, hostile_run()), (RunReport(summary_of([]), []), friendly)):
        document = _parse(render_html(other, one))
        elements = list(document.iter())
        assert {element.tag for element in elements} <= KNOWN
        ids = [element.get("id") for element in elements if element.get("id")]
        assert len(ids) == len(set(ids))
        for element in elements:
            for reference in ("headers", "for", "aria-labelledby", "aria-controls", "aria-describedby"):
                assert set((element.get(reference) or "").split()) <= set(ids)
    document = _parse(render_html(friendly, base))
    assert len(document.findall(".//table[@class='map']")) == 2
    heads = [head.text for head in document.findall(".//table[@id='ranking']/thead//th")]
    assert heads == ["variable", "sharing", "base", "tests", "alone", "sets"]


def test_tables_of_two_runs_hold_both_verdicts(friendly: RunReport, base: RunReport) -> None:
    data = _data(render_html(friendly, base))
    columns, outcomes = data["tests"], [outcome for outcome, _ in data["outcomes"]]
    verdicts = {judged.test.id: [None, judged] for judged in friendly.tests}
    for judged in base.tests:
        verdicts.setdefault(judged.test.id, [None, None])[0] = judged
    assert sorted(columns["id"]) == sorted(verdicts)
    only_one = 0
    for index, test_id in enumerate(columns["id"]):
        for judged, outcome, findings in zip(
            verdicts[test_id], ("before", "outcome"), ("was", "findings"), strict=True
        ):
            only_one += judged is None
            assert columns[outcome][index] == (outcomes.index(judged.outcome) if judged else -1)
            shown = [_finding(data, finding)[0] for finding in columns[findings][index]]
            assert shown == [finding.name for finding in (judged.findings if judged else ())]
    assert only_one > 0
    names = {variable.name for run in (friendly, base) for variable in rank_shared(run.tests)}
    assert set(data["variables"]) == names


def test_lines_have_their_fields_and_what_every_core_touched(friendly: RunReport) -> None:
    data = _data(render_html(friendly))
    for index, judged in enumerate(friendly.tests):
        for finding, packed in zip(judged.findings, data["tests"]["findings"][index], strict=True):
            fields, touched = data["lines"][data["findings"][packed][6]]
            own = f"{finding.object}."
            assert [(at, size, data["strings"][name]) for at, size, name in fields] == [
                (one.offset, one.size_bytes, one.name.removeprefix(own)) for one in finding.fields
            ]
            assert touched == [
                [one.core, list(map(list, one.read)), list(map(list, one.written))] for one in finding.touched
            ]


def test_the_same_run_gives_the_same_page(friendly: RunReport) -> None:
    assert render_html(friendly) == render_html(friendly)


def test_heat_map_and_ranking_are_there_without_scripts(friendly: RunReport) -> None:
    document = _parse(render_html(friendly))
    cells = document.findall(".//table[@id='map-0']//a")
    assert len(cells) == 21
    assert all(re.search(r"\d+ of \d+ tests? not conflict-free", cell.get("title")) for cell in cells)
    names = [link.text for link in document.findall(".//table[@id='ranking']//a")]
    assert names == [variable.name for variable in rank_shared(friendly.tests)]
    assert "data-variable" in document.find(".//table[@id='ranking']//a").attrib
    assert unquote(cells[1].get("href")) == f"#calls={cells[1].get('data-calls')}"


def test_what_a_run_cannot_reach_stands_beside_each_percentage(friendly: RunReport, base: RunReport) -> None:
    for one, count in ((render_html(friendly), 1), (render_html(friendly, base), 2)):
        found = ["".join(line.itertext()) for line in _parse(one).iter("p") if "Not reached" in (line.text or "")]
        assert len(found) == count
        assert all("names beyond 7 letters" in line and "sets of more than 2 calls" in line for line in found)


def test_packed_tables_hold_every_test_and_point_inside(run: RunReport) -> None:
    data = _data(render_html(run))
    assert json.dumps(data).isascii()
    columns = data["tests"]
    assert {len(column) for column in columns.values()} == {len(run.tests)}
    for name in ("strings", "parts", "blocks", "lists", "stacks", "accesses", "lines", "findings", "orders"):
        distinct = {json.dumps(item) for item in data[name]}
        assert len(distinct) == len(data[name]), f"{name} holds something twice"
    strings = data["strings"]
    for index, judged in enumerate(run.tests):
        assert columns["id"][index] == safe_text(judged.test.id)
        assert strings[columns["headline"][index]] == headline(judged.test.calls)
        assert data["outcomes"][columns["outcome"][index]][0] == judged.outcome
        shown = [_finding(data, finding) for finding in columns["findings"][index]]
        assert [stacks for _, stacks in shown] == [
            [[safe_text(frame) for frame in access.stack] for access in (finding.first, finding.second)]
            for finding in judged.findings
        ]


def _finding(data: dict[str, Any], index: int) -> tuple[str, list[list[str]]]:
    variable, _, *accesses = data["findings"][index][:4]
    stacks = [data["stacks"][data["accesses"][access][5]] for access in accesses]
    return data["variables"][variable], [[data["strings"][frame] for frame in stack] for stack in stacks]


def test_packed_programs_are_the_programs(friendly: RunReport) -> None:
    data = _data(render_html(friendly))
    for judged, program in zip(friendly.tests, data["tests"]["program"], strict=True):
        text = "".join(data["parts"][part] for block in program for part in data["blocks"][block])
        assert text == c_program(judged.test)


def test_a_call_without_c_form_is_said_instead() -> None:
    run = invented_run(("mmap",), 3)
    data = _data(render_html(run))
    assert data["tests"]["program"] == [[]] * len(run.tests)
    assert "mmap" in data["strings"][data["tests"]["refusal"][0]]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *_texts(item))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def test_hostile_names_reach_the_page_as_printable_text() -> None:
    html = render_html(hostile_run())
    for harm in ("\u2028", "\u202e", "\x1b", "\x00", "<script>alert", "x" * 500):
        assert harm not in html
    assert "{{ 7 * 7 }}{% raw %}[bold red]markup[/]" in html
    data = _data(html)
    parts = data.pop("parts")
    assert all(line.isprintable() for text in _texts(data) for line in text.split("\n"))
    assert all(part.isascii() for part in parts)


def test_a_page_of_the_largest_run_is_far_below_its_limit() -> None:
    run = invented_run(POSIX18, 20)
    assert len(run.tests) > 3_000
    packed = len(render_html(run)) - len(script())
    assert packed / len(run.tests) < LARGEST_PAGE_BYTES / LARGEST_RUN_TESTS / 2


def test_variables_shown_alike_are_told_apart() -> None:
    assert unique_names(["a", "b", "a\u2028", "a\\u2028", "a"]) == ["a", "b", r"a\u2028", r"a\u2028 (2)", "a (2)"]


def test_outcomes_have_looks_of_their_own() -> None:
    styles = page_template("css/tests.css")
    for outcome in Outcome:
        assert f".outcome-{outcome.value}" in styles


def test_modules_join_to_one_script_without_imports() -> None:
    text = script()
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
    for module in MODULES:
        opening = page_template(f"js/{module}.js").splitlines()[0]
        assert opening.startswith("// ")
        assert opening in text


def test_file_appears_whole_or_not_at_all(friendly: RunReport, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_html(friendly, path)
    assert path.read_text(encoding="utf-8") == render_html(friendly)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(RunError, match=r"nowhere/report\.html") as refusal:
        write_html(friendly, tmp_path / "nowhere" / "report.html")
    assert "\n" not in str(refusal.value)
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(RunError):
        write_html(friendly, taken)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["report.html", "taken"]
