"""What it takes to show a large run: size of the page, seconds to write and to open it, and most memory of a format.

The run is invented (tests/report/invented.py): as many tests as posix18 has, with the shapes of names, stacks and lines
of real ones. Pages are opened in headless Chromium; "open" is the time from the address to a list that can be searched.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from bench.commands import ROOT
from bench.figure import Figure, Goal
from commutant.corpus.file import Corpus, write_corpus
from commutant.corpus.testcase import TestCase
from commutant.report import write_html
from commutant.report.data import RunReport
from tests.cli.memory import peak_memory_bytes
from tests.report.invented import POSIX18, changed_run, invented_run

TITLE = "Reports on large runs"
PAGE_TESTS = 25_000
CAMPAIGN_TESTS = 100_000
OPENINGS = 5
SEARCHES = ("rename inode_permission", "call:open kind:lock verdict:conflict", "nothing-of-the-kind")
COMMAND = "make bench-report"


def measure() -> list[Figure]:
    """Size, seconds and memory of pages and formats."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [*_pages(folder), *_memory(folder)]


def _pages(folder: Path) -> list[Figure]:
    run = invented_run(POSIX18, 150)
    run = RunReport(run.summary, run.tests[:PAGE_TESTS], run.facts)
    figures = []
    for what, base in (("one run", None), ("two runs", changed_run(run))):
        path = folder / f"{what}.html"
        started = time.monotonic()
        write_html(run, path, base)
        seconds = time.monotonic() - started
        opened, searched = _opened(path)
        tests = f"{what} of {len(run.tests):,} tests"
        figures += [
            Figure(f"{tests}, page", "MB", (path.stat().st_size / 1e6,), COMMAND, Goal("at_most", 10)),
            Figure(f"{tests}, written in", "s", (seconds,), COMMAND),
            Figure(f"{tests}, opened in", "s", opened, COMMAND, Goal("at_most", 2)),
            Figure(f"{tests}, searched in", "s", searched, COMMAND, Goal("at_most", 0.2)),
        ]
    return figures


def _opened(path: Path) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Seconds to open a page, and to search it."""
    with tempfile.TemporaryDirectory() as profile:
        options = ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for switch in ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"):
            options.add_argument(switch)
        browser = Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            opened = []
            for _ in range(OPENINGS):
                browser.get("about:blank")
                started = time.monotonic()
                browser.get(path.as_uri())
                while browser.execute_script("return document.getElementById('explorer').hidden"):
                    time.sleep(0.005)
                opened.append(time.monotonic() - started)
            script = """
                const find = document.getElementById("find");
                find.value = arguments[0];
                const started = performance.now();
                find.dispatchEvent(new Event("input"));
                return (performance.now() - started) / 1000;
            """
            return tuple(opened), tuple(browser.execute_script(script, words) for words in SEARCHES)
        finally:
            browser.quit()


def _memory(folder: Path) -> list[Figure]:
    """The most memory of a campaign without machines, with its table and page, and of formats that need most."""
    tests: dict[str, TestCase] = {}
    for seed in range(100):
        tests.update((judged.test.id, judged.test) for judged in invented_run(POSIX18, 300, seed).tests)
        if len(tests) >= CAMPAIGN_TESTS:
            break
    corpus = Corpus("posix18", "conflict", "0123abcd", list(tests.values())[:CAMPAIGN_TESTS])
    write_corpus(corpus, folder / "corpus.jsonl.gz")
    check = ["check", "corpus.jsonl.gz", "--target", "fake:outcome=varied", "--repeats", "1", "-o", "run"]
    figures = [_peak("check", folder, check)]
    figures += [
        _peak(f"report --format {format_}", folder, ["report", "run", "--format", format_, "-o", format_])
        for format_ in ("sarif", "junit")
    ]
    figures.append(_peak("diff", folder, ["diff", "run", "run", "-o", "diff"]))
    return figures


def _peak(what: str, folder: Path, arguments: Sequence[str]) -> Figure:
    command = [sys.executable, "-m", "tests.cli.fake_target", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    used = peak_memory_bytes(command, folder, environment) / 2**20
    name = f"{what} of {CAMPAIGN_TESTS:,} tests, most memory"
    return Figure(name, "MiB", (used,), COMMAND, Goal("at_most", 1024))
