"""reference/models.md, guides/modelling.md and its second half: every model runs, and prints what its page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import commutant
from commutant.analyzer import analyze
from commutant.lang import load_interface
from commutant.testgen import generate

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "models.md"
GUIDES = [PAGE.parents[1] / "guides" / name for name in ("modelling.md", "modelling-choices.md")]


def models(page: Path) -> Iterator[tuple[str, str, str]]:
    """File name, text of the model, and each session after it: the command, and what it prints."""
    pattern = r"^```python\n(.*?)^```\n((?:\n```text\n.*?^```\n)+)"
    for model, sessions in re.findall(pattern, page.read_text(), re.MULTILINE | re.DOTALL):
        for session in re.findall(r"^```text\n(.*?)^```", sessions, re.MULTILINE | re.DOTALL):
            name = re.match(r"\$ commutant (?:analyze|generate) (\w+\.py)", session)
            assert name, session
            yield name[1], model, session


MODELS = list(models(PAGE))
GUIDED = [found for guide in GUIDES for found in models(guide)]


@pytest.mark.parametrize("pages, found", [([PAGE], MODELS), (GUIDES, GUIDED)], ids=["models", "modelling"])
def test_every_example_is_executed(pages: list[Path], found: list[tuple[str, str, str]]) -> None:
    shown = sum(page.read_text().count("```python\n") for page in pages)
    assert shown == len({name for name, *_ in found}) > 4


@pytest.mark.parametrize(
    "name, model, session", [*MODELS, *GUIDED], ids=[s[:40].strip() for *_, s in [*MODELS, *GUIDED]]
)
def test_a_model_prints_what_the_page_says(name: str, model: str, session: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(model)
    command, _, expected = session.removeprefix("$ commutant ").partition("\n")
    ended = subprocess.run(
        [sys.executable, "-m", "commutant", *command.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(commutant.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    printed = ended.stdout + ended.stderr.replace(f"{tmp_path}/", "")
    assert printed.rstrip() == expected.rstrip()


def test_the_last_model_has_tests(tmp_path: Path) -> None:
    name, model, _ = MODELS[-1]
    (tmp_path / name).write_text(model)
    corpus = generate(load_interface(str(tmp_path / name)))
    assert {test.set_name for test in corpus.tests} == {"put-put", "put-open", "open-open"}
    assert corpus.without_setup == {"put-put": 1, "put-open": 2, "open-open": 1}


def test_the_limits_on_the_page_are_the_engines() -> None:
    from commutant.symbolic.engine import MAX_DECISIONS_PER_PATH

    assert f"within {MAX_DECISIONS_PER_PATH} decisions" in PAGE.read_text()


def test_three_sets_do_not_commute_as_the_page_says(tmp_path: Path) -> None:
    name, model, _ = MODELS[0]
    (tmp_path / name).write_text(model)
    one = analyze(load_interface(str(tmp_path / name)), ["set", "set", "set"], size=3).sets[0]
    assert one.conditions == ["new.0 = new.1; new.0 = new.2"]
