"""The page of two runs side by side, in headless Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys

from commutant.compare import compare_runs
from commutant.report import write_html
from commutant.report.data import OUTCOME_WORDS, RunReport
from tests.report.browser import LOWEST_CONTRAST, MOST_STEPS, OVERFLOW_PIXELS, Page
from tests.report.invented import changed_run, invented_run


@pytest.fixture(scope="module")
def run() -> RunReport:
    return invented_run(tests_per_pair=40)


@pytest.fixture(scope="module")
def base(run: RunReport) -> RunReport:
    return changed_run(run)


@pytest.fixture
def both(driver: Chrome, run: RunReport, base: RunReport, tmp_path: Path) -> Iterator[Page]:
    path = tmp_path / "both.html"
    write_html(run, path, base)
    page = Page(driver, path)
    page.open()
    yield page
    assert page.drain("browser") == []


def test_two_maps_stand_side_by_side_and_choose_the_same(both: Page) -> None:
    maps = both.all(".map")
    assert len(maps) == 2
    assert maps[0].location["y"] == maps[1].location["y"] and maps[0].location["x"] < maps[1].location["x"]
    assert both.run(OVERFLOW_PIXELS) <= 0
    both.find('#map-0 [data-calls="link,rename"]').click()
    both.wait(lambda: both.find('#map-1 [data-calls="link,rename"]').get_attribute("aria-current") == "true")


def test_tests_are_found_by_how_they_changed(both: Page, run: RunReport, base: RunReport) -> None:
    comparison = compare_runs(base, run)
    for change, tests in (("worse", comparison.worse), ("better", comparison.better)):
        both.open(f"#change={change}")
        assert tests
        assert both.text("#count").startswith(f"{len(tests)} of ")
    test = comparison.worse[0]
    both.open(f"#change=worse&test={test.test_id}")
    both.wait(lambda: both.all("#test .shared"))
    assert f"was {OUTCOME_WORDS[test.before]}" in both.text("#test")
    states = {mark.text for mark in both.all("#test .kind") if "state-" in str(mark.get_attribute("class"))}
    assert "new" in states


def test_a_link_to_a_test_opens_at_the_test(both: Page, run: RunReport, base: RunReport) -> None:
    test = compare_runs(base, run).worse[0]
    both.open(f"#calls={'%2C'.join(test.calls)}&test={test.test_id}")
    both.wait(lambda: 0 <= both.run("return document.querySelector('#test').getBoundingClientRect().top") < 40)


def test_a_filter_that_hides_what_a_cell_promises_says_so(both: Page, run: RunReport) -> None:
    tests = [judged for judged in run.tests if sorted(judged.calls) == ["link", "rename"]]
    both.open("#find=no_such_word&calls=link%2Crename")
    both.wait(lambda: both.text("#hidden").startswith(f"{len(tests)} more of link, rename hidden by: no_such_word."))
    both.find("#hidden button").click()
    both.wait(lambda: both.text("#count").startswith(f"{len(tests)} of "))
    assert not both.all("#hidden")


def test_what_went_is_shown_as_gone(both: Page, run: RunReport, base: RunReport) -> None:
    test = next(test for test in compare_runs(base, run).better if test.variables)
    both.open(f"#test={test.test_id}")
    both.wait(lambda: both.all("#test .shared.gone"))
    names = [section.get_attribute("data-finding") for section in both.all("#test .shared.gone")]
    assert names == list(test.variables)


def test_keyboard_reaches_either_map(both: Page) -> None:
    both.run("document.activeElement.blur()")
    reached = []
    for _ in range(MOST_STEPS):
        both.press(Keys.TAB)
        if both.focused("data-calls"):
            reached.append(both.run("return document.activeElement.closest('table').id"))
    assert reached[:2] == ["map-0", "map-1"]


def test_it_is_readable_dark_and_light_and_narrow(both: Page) -> None:
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        both.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        assert both.run(LOWEST_CONTRAST) >= 4.5
    both.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    metrics = {"width": 360, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    both.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    overflow = both.run(OVERFLOW_PIXELS)
    both.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert overflow <= 0
