"""The page in headless Chromium: from the heat map to a call stack by mouse, by keyboard and by address."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec import structs
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from commutant.campaign import Outcome as Judgement
from commutant.report import c_program, causes, parallel_calls, rank_causes, rank_shared, write_html
from commutant.report.data import JudgedTest, RunReport
from commutant.report.groups import has_failing_call
from commutant.report.hints import hint
from commutant.report.roles import role
from tests.campaign.fakes import make_test
from tests.report.browser import LOWEST_CONTRAST, MOST_STEPS, OVERFLOW_PIXELS, Page
from tests.report.invented import POSIX18, hostile_run, invented_run, summary_of


@pytest.fixture(scope="module")
def run() -> RunReport:
    return invented_run(tests_per_pair=40)


@pytest.fixture(scope="module")
def friendly_path(run: RunReport, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("friendly") / "report.html"
    write_html(run, path)
    return path


@pytest.fixture
def page(driver: Chrome, friendly_path: Path) -> Iterator[Page]:
    page = Page(driver, friendly_path)
    page.open()
    yield page
    assert page.drain("browser") == [], "the console stays empty"
    assert page.requests() == {page.address}, "nothing but the page itself is asked for"


def _tests_of(run: RunReport, *calls: str) -> list[JudgedTest]:
    return [judged for judged in run.tests if sorted(call.call for call in judged.test.calls) == sorted(calls)]


def _conflicting(run: RunReport, *calls: str) -> JudgedTest:
    return next(judged for judged in _tests_of(run, *calls) if len(judged.findings) > 1)


def test_click_from_heat_map_to_stack(page: Page, run: RunReport) -> None:
    tests = _tests_of(run, "link", "rename")
    page.find('#map-0 [data-calls="link,rename"]').click()
    page.wait(lambda: page.text("#count") == f"{len(tests)} of {len(run.tests)} tests")
    assert page.find('#map-0 [data-calls="link,rename"]').get_attribute("aria-current") == "true"

    judged = _conflicting(run, "link", "rename")
    for _ in range(MOST_STEPS):
        if page.all(f'[data-test="{judged.test.id}"]'):
            break
        page.find("#next").click()
    page.find(f'[data-test="{judged.test.id}"]').click()
    page.wait(lambda: judged.test.id in page.text("#test"))
    assert "Set-up" in page.text("#test")
    assert "in every order" in page.text("#test")

    names = [section.get_attribute("data-finding") for section in page.all(".shared")]
    lines = [finding for cause in causes(judged) for finding in cause.lines]
    assert names == [finding.name for finding in lines]
    page.all(".shared summary")[1].click()
    stack = page.all(".shared")[1].find_elements(By.CSS_SELECTOR, ".stack")[1]
    page.wait(stack.is_displayed)
    assert stack.text.splitlines()[1:] == list(lines[1].second.stack)


def test_a_cell_says_what_to_fix_first_and_a_test_what_its_lines_follow_from(page: Page, run: RunReport) -> None:
    first = rank_causes(run.tests)[0]
    assert f"Fix first: {first.title}." in page.text(".result")
    assert first.example.hint.technique.title in page.text(".first-panel")
    rows = [row.text for row in page.all(".parallel tbody th")]
    assert rows == [one.call for one in parallel_calls(run.tests)]
    counts: Counter[str] = Counter()
    for judged in _tests_of(run, "link", "rename"):
        for cause in causes(judged):
            counts[cause.title] += len(cause.lines)
    page.find('#map-0 [data-calls="link,rename"]').click()
    page.wait(lambda: page.all("#causes li"))
    most = max(counts.values())
    share = f"{100 * most / counts.total():.0f} % of {counts.total()} shared lines"
    assert share in page.text("#causes li")
    assert any(page.text("#causes b") == title for title, count in counts.items() if count == most)
    page.find(".first-panel a").click()
    page.wait(lambda: first.example_id in page.text("#test"))
    assert page.text("#test .cause h4") == f"1. {first.title}"
    assert f"{first.example.sentence}." in page.text("#test .cause p")
    roles = {
        role(judged.test, finding)
        for judged in run.tests
        if judged.test.id == first.example_id
        for finding in judged.findings
    } - {""}
    assert {one.text for one in page.all("#test .role")} == roles


def test_the_map_comes_first_and_facts_are_folded(page: Page) -> None:
    page.driver.set_window_size(390, 844)
    try:
        page.open()
        top = "return document.querySelector('.map').getBoundingClientRect().top + scrollY"
        assert page.run(top) < 600, "it was 1,557 pixels down"
        assert page.run("return document.querySelector('.about').open") is False
        page.find(".about summary").click()
        page.wait(lambda: page.all(".facts"))
    finally:
        page.driver.set_window_size(1400, 1000)


def test_a_link_to_a_test_opens_at_the_test(page: Page, run: RunReport) -> None:
    judged = _conflicting(run, "link", "rename")
    page.open(f"#calls=link%2Crename&test={judged.test.id}")
    page.wait(lambda: 0 <= page.run("return document.querySelector('#test').getBoundingClientRect().top") < 40)


def test_a_filter_that_hides_what_a_cell_promises_says_so(page: Page, run: RunReport) -> None:
    tests = _tests_of(run, "link", "rename")
    page.open("#find=no_such_word&calls=link%2Crename")
    page.wait(lambda: page.text("#hidden").startswith(f"{len(tests)} more of link, rename hidden by: no_such_word."))
    page.find("#hidden button").click()
    page.wait(lambda: page.text("#count") == f"{len(tests)} of {len(run.tests)} tests")
    assert not page.all("#hidden")


def test_counters_reference_counts_and_times_are_called_so(run: RunReport, driver: Chrome, tmp_path: Path) -> None:
    """Names that ext4 shares in a real run, with what the page proposes."""
    shared = {
        "struct transaction_s.t_handle_count": ("statistics counter", "Divide per core"),
        "struct transaction_s.t_updates": ("statistics counter", "Divide per core"),
        "struct buffer_head.b_count": ("reference count", "Defer work"),
        "struct inode.i_nlink": ("reference count", "Defer work"),
        "struct inode.i_ctime": ("time stamp", "Divide per core"),
        "struct inode.i_mtime": ("time stamp", "Divide per core"),
        "struct inode.i_rwsem": ("lock word", "Layer scalable structures"),
    }
    judged = next(one for one in run.tests if one.outcome is Judgement.CONFLICTING)
    line = judged.findings[0]
    writes = [structs.replace(access, write=True, function="ext4_create") for access in (line.first, line.second)]
    findings = tuple(
        structs.replace(
            line,
            object=name.partition(".")[0],
            field=name.partition(".")[2],
            sharing="true",
            first=writes[0],
            second=writes[1],
        )
        for name in shared
    )
    path = tmp_path / "report.html"
    write_html(replace(run, tests=[replace(judged, findings=findings)]), path)
    page = Page(driver, path)
    page.open(f"#test={judged.test.id}")
    page.wait(lambda: len(page.all("#test .shared")) == len(shared))
    for section in page.all("#test .shared"):
        kind, technique = shared[str(section.get_attribute("data-finding"))]
        assert kind in section.text and technique in section.text, section.text


def test_program_is_shown_and_copied(page: Page, run: RunReport) -> None:
    judged = _conflicting(run, "open", "link")
    page.open(f"#test={judged.test.id}")
    page.wait(lambda: page.all(".program"))
    page.find(".program summary").click()
    page.wait(lambda: page.run("return document.querySelector('.program code').textContent") == c_program(judged.test))
    page.find(".copy").click()
    page.wait(lambda: page.text(".bar [role=status]"))


def test_keyboard_alone_reaches_a_stack_and_comes_back(page: Page) -> None:
    page.run("document.activeElement.blur()")
    page.press(Keys.TAB)
    for _ in range(MOST_STEPS):
        if page.focused("data-calls"):
            break
        page.press(Keys.TAB)
    assert page.focused("data-calls") == "open,open"
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert page.focused("data-calls") == "link,unlink"
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press(Keys.ENTER)
    page.wait(lambda: page.focused("data-test"))
    page.press(Keys.ARROW_DOWN)
    second = page.all("[data-test]")[1].get_attribute("data-test")
    assert page.focused("data-test") == second
    page.press(Keys.END)
    page.press(Keys.ARROW_DOWN)
    page.wait(lambda: page.text("#page").startswith("page 2"))
    assert page.focused("data-row") == "0"
    chosen = page.focused("data-test")
    page.press(Keys.ENTER)
    page.wait(lambda: page.focused("id") == "test")
    assert f"test={chosen}" in page.hash
    for _ in range(MOST_STEPS):
        page.press(Keys.TAB)
        if page.run("return document.activeElement.textContent") == "Call stacks":
            break
    was_open = page.run("return document.activeElement.parentElement.open")
    page.press(Keys.ENTER)
    assert page.run("return document.activeElement.parentElement.open") is not was_open
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.focused("data-test") == chosen)
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.focused("data-calls") == "link,unlink")
    assert page.hash in ("", "#")


def test_words_verdict_and_variable_filter_together(page: Page, run: RunReport) -> None:
    total = len(run.tests)
    page.press("/")
    assert page.focused("id") == "find"
    page.press("RENAME inode_permission")
    wanted = [
        judged
        for judged in run.tests
        if "rename" in {call.call for call in judged.test.calls} | _frames(judged)
        and "inode_permission" in _frames(judged)
    ]
    page.wait(lambda: page.text("#count") == f"{len(wanted)} of {total} tests")
    page.find('#ranking [data-variable="struct cred.usage"]').click()
    both = [judged for judged in wanted if "struct cred.usage" in {finding.name for finding in judged.findings}]
    assert 0 < len(both) < len(wanted)
    page.wait(lambda: page.text("#count") == f"{len(both)} of {total} tests")
    dim = {cell.get_attribute("data-calls") for cell in page.all("#map-0 .dim")}
    assert dim
    for calls in dim:
        assert not any(
            "struct cred.usage" in {f.name for f in j.findings} for j in _tests_of(run, *str(calls).split(","))
        )
    page.find('#outcome option[value="unstable"]').click()
    unstable = [judged for judged in both if judged.outcome == "unstable"]
    page.wait(lambda: page.text("#count") == f"{len(unstable)} of {total} tests")
    page.run("document.getElementById('find').blur()")
    page.press(Keys.ESCAPE, Keys.ESCAPE, Keys.ESCAPE)
    page.wait(lambda: page.text("#count") == f"{total} of {total} tests")


def _frames(judged: JudgedTest) -> set[str]:
    accesses = [access for finding in judged.findings for access in (finding.first, finding.second)]
    return {word for access in accesses for frame in access.stack for word in (frame.split("+")[0],)}


def test_a_word_can_look_in_one_place_alone(page: Page, run: RunReport) -> None:
    def count(words: str) -> int:
        page.open(f"#find={quote(words)}")
        return int(page.text("#count").split(" of ")[0].replace(",", ""))

    def expected(condition: Callable[[JudgedTest], bool]) -> int:
        number = sum(1 for judged in run.tests if condition(judged))
        assert 0 < number < len(run.tests)
        return number

    def kinds(judged: JudgedTest) -> set[str]:
        return {hint(finding).kind for finding in judged.findings}

    assert count("call:link") == count("CALL:unLINK call:link") + expected(
        lambda judged: any("link" in call for call in judged.calls) and "unlink" not in judged.calls
    )
    assert count("type:d_lockref") == expected(lambda one: any(f.name.endswith("d_lockref") for f in one.findings))
    assert count("function:inode_permission") == expected(lambda one: "inode_permission" in _frames(one))
    assert count("verdict:unstable") == expected(lambda one: one.outcome == "unstable")
    assert count("kind:reference") == expected(lambda one: "reference count" in kinds(one))
    assert count("kind:reference call:open verdict:conflict") == expected(
        lambda one: (
            "reference count" in kinds(one)
            and "open" in one.calls
            and one.outcome.startswith("conflict")
            and one.outcome != "unstable"
        )
    )
    assert count("type:inode_permission") == 0
    assert count("constructor:x") == 0


def test_a_chosen_variable_says_what_it_costs(page: Page, run: RunReport) -> None:
    variable = rank_shared(run.tests)[0]
    page.find(f'#ranking [data-variable="{variable.name}"]').click()
    sentence = f"{variable.name} breaks {variable.tests} tests of {variable.sets} sets of calls"
    page.wait(lambda: sentence in page.text("#filters"))


def test_a_line_is_drawn_with_its_fields_and_cores(page: Page, run: RunReport) -> None:
    judged = next(one for one in run.tests if any(finding.sharing == "false" for finding in one.findings))
    page.open(f"#test={judged.test.id}")
    page.wait(lambda: page.all(".shared"))
    lines = [finding for cause in causes(judged) for finding in cause.lines]
    for picture, finding in zip(page.all(".shared"), lines, strict=True):
        titles = [
            title.get_attribute("textContent") for title in picture.find_elements(By.CSS_SELECTOR, ".field title")
        ]
        own = f"{finding.object}."
        assert titles == [
            f"{one.name.removeprefix(own)}: bytes {one.offset} to {one.offset + one.size_bytes - 1}"
            for one in finding.fields
        ]
        for look, ranges in (("write", "written"), ("read", "read")):
            drawn = len(picture.find_elements(By.CSS_SELECTOR, f".line rect.{look}"))
            assert drawn == sum(size for one in finding.touched for _, size in getattr(one, ranges))
        assert len(picture.find_elements(By.CSS_SELECTOR, ".witness")) == 2
        advice = hint(finding, has_failing_call(judged.test.orders))
        assert advice.technique.advice in picture.text
        assert f"docs/guides/patterns.md#{advice.technique.anchor}" in picture.text
        assert advice.kind in picture.find_element(By.CSS_SELECTOR, "h4").text


def test_address_opens_a_test_and_the_back_button_closes_it(page: Page, run: RunReport) -> None:
    judged = _conflicting(run, "rename", "unlink")
    page.open(f"#calls=rename%2Cunlink&test={judged.test.id}")
    page.wait(lambda: judged.test.id in page.text("#test"))
    assert page.all(f'tr.current [data-test="{judged.test.id}"]')
    page.find("#test .close").click()
    page.wait(lambda: not page.all("#test"))
    page.driver.back()
    page.wait(lambda: judged.test.id in page.text("#test"))
    page.open("#test=no-such-test-%3Cb%3E")
    assert page.text("#test") == "No test no-such-test-<b> in this run."
    page.open("#calls=nothing&variable=nothing&outcome=nothing")
    assert page.text("#count").startswith("0 of ")


def test_ranking_shows_ten_then_all(page: Page) -> None:
    assert len(page.all("#ranking tbody tr")) == 10
    page.find("#ranking-more").click()
    assert len(page.all("#ranking tbody tr")) == 12


def test_dark_and_light_are_both_readable(page: Page) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        seen[scheme] = page.run("return getComputedStyle(document.body).backgroundColor")
        assert page.run(LOWEST_CONTRAST) >= 4.5
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert seen["light"] == "rgb(255, 255, 255)"
    assert seen["dark"] != seen["light"]


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_nothing_sticks_out_sideways(page: Page, run: RunReport, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page.open(f"#test={_conflicting(run, 'link', 'rename').test.id}")
    overflow = page.run(OVERFLOW_PIXELS)
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert overflow <= 0


def test_everything_to_press_has_a_name(page: Page, run: RunReport) -> None:
    page.open(f"#calls=link%2Crename&test={_conflicting(run, 'link', 'rename').test.id}")
    page.wait(lambda: page.all(".shared"))
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = {"link", "button", "searchbox", "combobox", "DisclosureTriangle", "table", "image", "article"}
    roles = set()
    for node in nodes:
        role = node.get("role", {}).get("value")
        if role in named and not node.get("ignored"):
            roles.add(role)
            assert node.get("name", {}).get("value"), node
    assert {"link", "button", "searchbox", "table", "article"} <= roles


def test_paper_shows_everything_of_an_open_test(page: Page, run: RunReport) -> None:
    page.open(f"#test={_conflicting(run, 'link', 'rename').test.id}")
    page.wait(lambda: page.all(".shared"))
    printed = page.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert base64.b64decode(printed).startswith(b"%PDF")
    assert page.run("return [...document.querySelectorAll('#test details')].every((details) => details.open)")


def test_hostile_names_are_only_text(driver: Chrome, tmp_path: Path) -> None:
    run = hostile_run()
    path = tmp_path / "hostile.html"
    write_html(run, path)
    page = Page(driver, path)
    for judged in run.tests:
        page.open(f"#test={judged.test.id}")
        page.wait(lambda: page.all(".shared"))
        assert page.run(OVERFLOW_PIXELS) <= 0
        link = page.find(".shared h4 a")
        name = link.text
        link.click()
        page.wait(lambda: page.text("#count").startswith("1 of "))
        assert page.find("#ranking tr.current").text.startswith(name)
        assert page.find(".shared.current h4 a").text == name
    assert page.run("return document.querySelectorAll('script').length") == 2
    assert page.run("return document.images.length") == 0
    assert page.drain("browser") == []
    assert page.requests() <= {page.address}


def test_a_large_run_is_searched_and_turned_over(driver: Chrome, tmp_path: Path) -> None:
    run = invented_run(POSIX18, 60)
    path = tmp_path / "large.html"
    write_html(run, path)
    page = Page(driver, path)
    page.open()
    assert page.text("#count") == f"{len(run.tests):,} of {len(run.tests):,} tests"
    assert len(page.all("#tests tbody tr")) == 25
    last = run.tests[-1].test
    page.find("#find").send_keys(last.id[-12:])
    page.wait(lambda: page.text("#count").startswith("1 of "))
    assert page.find("[data-test]").get_attribute("data-test") == last.id
    assert page.drain("browser") == []


def _at_width(page: Page, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page.open()


@pytest.mark.parametrize("width", [1100, 1280, 1600])
def test_names_of_variables_have_room(page: Page, width: int) -> None:
    """At 1,280 pixels they stood in a column of five letters, next to white."""
    try:
        _at_width(page, width)
        lines = "[...document.querySelectorAll('.variable')].map((one) => one.getClientRects().length)"
        assert page.run(f"return Math.max(...{lines})") <= 2
        assert page.run("return document.querySelector('.ranking-panel .tall').scrollWidth") <= width
        sideways = (
            "const one = document.querySelector('.ranking-panel .tall'); return one.scrollWidth - one.clientWidth"
        )
        assert page.run(sideways) <= 0, "no column is cut off"
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_narrow_map_shows_all_its_columns(driver: Chrome, tmp_path: Path) -> None:
    """Six calls, as `names` has them, on a telephone."""
    names = ("open", "link", "unlink", "rename", "stat", "access")
    pairs = [pair for index, one in enumerate(names) for pair in [(one, other) for other in names[index:]]]
    tests = [JudgedTest(make_test(number, pair), Judgement.CONFLICT_FREE) for number, pair in enumerate(pairs)]
    write_html(RunReport(summary_of(tests), tests), tmp_path / "report.html")
    page = Page(driver, tmp_path / "report.html")
    try:
        _at_width(page, 390)
        right = (
            "const box = document.querySelector('.map').closest('.scroll'); return box.scrollWidth - box.clientWidth"
        )
        assert page.run(right) <= 0
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_click_on_a_cell_clears_the_search(page: Page, run: RunReport) -> None:
    """It said `0 of 1,038 tests` under a cell of 110."""
    page.open("#find=no_such_word")
    page.wait(lambda: page.text("#count").startswith("0 of"))
    page.find('[data-calls="link,rename"]').click()
    tests = _tests_of(run, "link", "rename")
    page.wait(lambda: page.text("#count") == f"{len(tests)} of {len(run.tests)} tests")
    assert page.run("return document.querySelector('#find').value") == ""


def test_tests_with_findings_come_first(page: Page, run: RunReport) -> None:
    page.open("#calls=link%2Crename")
    shown = [one.get_attribute("data-test") for one in page.all("#tests a")]
    while page.find("#next").is_enabled():
        page.find("#next").click()
        shown += [one.get_attribute("data-test") for one in page.all("#tests a")]
    assert len(shown) == len(_tests_of(run, "link", "rename"))
    outcomes = {judged.test.id: judged.outcome for judged in run.tests}
    ranks = [list(RANKS).index(outcomes[test]) for test in shown]
    assert ranks == sorted(ranks) and len(set(ranks)) > 1


RANKS = (
    Judgement.CRASHED,
    Judgement.WRONG_RESULT,
    Judgement.CONFLICTING,
    Judgement.UNSTABLE,
    Judgement.CONFLICT_FREE,
    Judgement.SKIPPED,
)
