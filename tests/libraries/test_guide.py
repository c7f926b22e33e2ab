"""guides/libraries.md: from a new adapter to a mended bug, as the page says it; its adapters compile and are small."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from commutant.runs import load_run
from tests.libraries.building import build, session

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "libraries.md"
TOUR = re.search(r"^## From nothing to a mended bug\n(.*?)^## ", PAGE.read_text(), re.MULTILINE | re.DOTALL)
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TOUR[1] if TOUR else "", re.MULTILINE | re.DOTALL)
FILES = ["counting/counters.h", "counting/adapter.c"]


def run_session(text: str, folder: Path) -> None:
    """Runs the commands of a session; what stands after one is in what it prints."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    printed = ""
    for line in text.splitlines():
        if line.startswith("$ "):
            command = shlex.split(line[2:])
            ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            printed = ended.stdout
            assert ended.returncode == 0 or "wrong results" in ended.stderr, ended.stderr + ended.stdout
        else:
            assert line in printed, printed


def test_the_tour_from_a_new_adapter_to_a_mended_bug(tmp_path: Path) -> None:
    files = iter(FILES)
    for kind, text in BLOCKS:
        if kind == "text":
            run_session(text, tmp_path)
        elif kind == "c":
            (tmp_path / next(files)).write_text(text)
        elif kind == "diff":
            parts = ["".join(line[1:] + "\n" for line in text.splitlines() if line[0] == sign) for sign in "-+"]
            header = tmp_path / FILES[0]
            assert parts[0] in header.read_text()
            header.write_text(header.read_text().replace(*parts))
    before, after = (load_run(tmp_path / name).summary for name in ("before", "after"))
    assert before.wrong_result == after.wrong_result == 0
    assert before.conflict_free < after.conflict_free


@pytest.mark.parametrize("language, suffix", [("cpp", ".cpp"), ("rust", ".rs")])
def test_adapters_on_the_page_are_small_and_load(language: str, suffix: str, tmp_path: Path) -> None:
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    source = tmp_path / f"adapter{suffix}"
    source.write_text(code)
    with session(build(tmp_path, "adapter", source)) as running:
        assert running is not None
