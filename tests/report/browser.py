"""A page in headless Chromium, and what a reader does with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE_SECONDS = 60
MOST_STEPS = 20


class Page:
    """A page in the browser, and what a reader does with it."""

    def __init__(self, driver: Chrome, path: Path) -> None:
        self.driver = driver
        self.address = path.as_uri()

    def open(self, hash_: str = "") -> None:
        self.driver.get("about:blank")
        self.drain("performance")
        self.driver.get(self.address + hash_)
        self.wait(lambda: self.find("#explorer").is_displayed())

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return [item for item in self.driver.find_elements(By.CSS_SELECTOR, selector) if item.is_displayed()]

    def text(self, selector: str) -> str:
        return self.find(selector).text

    def run(self, code: str) -> Any:
        return self.driver.execute_script(code)

    def wait(self, condition: Callable[[], object]) -> None:
        WebDriverWait(self.driver, PATIENCE_SECONDS, poll_frequency=0.02).until(lambda _: condition())

    def press(self, *keys: str) -> None:
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def focused(self, attribute: str) -> str | None:
        value = self.driver.execute_script("return document.activeElement.getAttribute(arguments[0])", attribute)
        assert value is None or isinstance(value, str)
        return value

    @property
    def hash(self) -> str:
        text = self.run("return location.hash")
        assert isinstance(text, str)
        return text

    def drain(self, log: str) -> list[dict[str, Any]]:
        return list(self.driver.get_log(log))  # type: ignore[no-untyped-call]

    def requests(self) -> set[str]:
        messages = [json.loads(entry["message"])["message"] for entry in self.drain("performance")]
        return {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}


OVERFLOW_PIXELS = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"

LOWEST_CONTRAST = """
const channel = (part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
function background(element) {
  for (; element; element = element.parentElement) {
    const colour = parse(getComputedStyle(element).backgroundColor);
    if (colour.length < 4 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
}
let lowest = 21;
for (const element of document.querySelectorAll("body *")) {
  const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!hasText || !element.checkVisibility() || element.disabled) continue;
  const pair = [luminance(parse(getComputedStyle(element).color)), luminance(background(element))];
  lowest = Math.min(lowest, (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05));
}
return lowest;
"""
