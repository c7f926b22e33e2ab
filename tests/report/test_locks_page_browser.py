"""The page of a lock view in headless Chromium: its picture says which lock a dot is."""

from __future__ import annotations

from copy import copy
from pathlib import Path

from msgspec import structs
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from commutant.lock_view import LockStudy, read_record, study
from commutant.lock_view.record import LockRecord
from commutant.lock_view.shown.page import render_page
from commutant.lock_view.study.classes import LockClass
from tests.lock_view.test_record import record, written

LETTER_PIXELS = 4


def _held(one: LockClass, number: int) -> LockClass:
    """The class with a name of its own; the higher its number, the longer it is held and the more its sections meet."""
    one.name = f"struct table{number}.lock"

    def held(lock: LockRecord) -> LockRecord:
        total = structs.replace(lock.hold.total, instructions=10 ** (1 + 2 * number))
        pairs = structs.replace(lock.pairs, compared=4, conflicting=(number,) * len(lock.pairs.conflicting))
        return structs.replace(lock, hold=structs.replace(lock.hold, total=total), pairs=pairs)

    one.locks = [held(lock) for lock in one.locks]
    return one


def test_each_dot_of_the_picture_has_a_label(driver: Chrome, tmp_path: Path) -> None:
    studied = study(read_record(written(tmp_path, record())))
    classes = [_held(copy(studied.classes[0]), number) for number in range(4)]
    studied = LockStudy(studied.record, tuple(classes), {})
    path = tmp_path / "locks.html"
    path.write_text(render_page(studied, studied.classes, "planted"))
    driver.get(path.as_uri())
    labels = driver.find_elements(By.CSS_SELECTOR, "svg text.label")
    assert {label.text for label in labels} == {one.name for one in studied.classes}
    frame = driver.find_element(By.CSS_SELECTOR, "svg").rect
    for label in labels:
        box = label.rect
        assert label.is_displayed() and box["width"] > LETTER_PIXELS * len(label.text)
        assert frame["x"] <= box["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
    axes = [text.text for text in driver.find_elements(By.CSS_SELECTOR, "svg > text")]
    assert "instructions executed while the lock was held" in axes and "independent pairs of sections" in axes
    driver.find_element(By.CSS_SELECTOR, "svg a").click()
    assert driver.current_url.rpartition("#")[2].startswith("lock-")
