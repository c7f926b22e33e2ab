"""Pictures of a run's page for the guides: `python scripts/page_pictures.py RUN TEST FOLDER`.

It writes `page-map.webp`, the page as it opens, and `page-test.webp`, one test of it, as a reader sees them at 1,280
points. The page is made from the run again, so that both show what the code of today makes of it.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from steps import StepFailed, run

WIDTH, HEIGHT = 1280, 720
PATIENCE_SECONDS = 60
QUALITY_PERCENT = 80


def taken(driver: Chrome, page: Path, hash_: str, awaited: str) -> bytes:
    """The page at a hash, once an element is displayed."""
    driver.get("about:blank")
    driver.get(page.as_uri() + hash_)
    WebDriverWait(driver, PATIENCE_SECONDS).until(
        lambda _: driver.find_element(By.CSS_SELECTOR, awaited).is_displayed()
    )
    options = {"format": "webp", "quality": QUALITY_PERCENT}
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"])


def main(arguments: Sequence[str]) -> int:
    """Writes both pictures; returns the exit code."""
    if len(arguments) != 3 or not Path(arguments[0]).is_dir():
        print("usage: page_pictures.py RUN TEST FOLDER, with a folder of `commutant check` as RUN", file=sys.stderr)
        return 2
    found, test, folder = Path(arguments[0]), arguments[1], Path(arguments[2])
    chromedriver = shutil.which("chromedriver")
    if chromedriver is None:
        print("expected chromedriver on PATH: `make setup` installs it", file=sys.stderr)
        return 2
    options = ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(option)
    with tempfile.TemporaryDirectory(prefix="commutant-pictures-") as name:
        page = Path(name) / "report.html"
        try:
            run(["commutant", "report", found.resolve(), "--format", "html", "-o", page])
        except (StepFailed, subprocess.SubprocessError) as failure:
            print(failure, file=sys.stderr)
            return 1
        driver = Chrome(options=options, service=Service(chromedriver))
        try:
            metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "page-map.webp").write_bytes(taken(driver, page, "", "#explorer"))
            (folder / "page-test.webp").write_bytes(taken(driver, page, f"#test={test}", "#test"))
        finally:
            driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
