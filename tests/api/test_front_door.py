"""The front door: the page's examples run, answers print in a terminal and a notebook, wrong use gets one line."""

from __future__ import annotations

import html
import re
import subprocess
import sys
import types
from pathlib import Path

import jsonschema
import pytest

import commutant as c
from commutant.api import Answer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "api.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    page = types.ModuleType("page_of_examples")
    monkeypatch.setitem(sys.modules, page.__name__, page)  # models find their annotations in their module
    names = page.__dict__
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)
    answers = {name: value for name, value in names.items() if isinstance(value, Answer)}
    assert set(answers) == {"answer", "found", "tests", "on_scalefs", "seen", "compared"}
    printed = capfd.readouterr().out
    assert "increment, increment: 1 path, 1 of them commutes" in printed
    for answer in answers.values():
        text, shown = str(answer), answer._repr_html_()
        assert shown.startswith("<pre") and "<script" not in shown
        plain = html.unescape(re.sub(r"<[^>]*>", "", shown))
        assert text.split() == plain.split()


def test_documents_of_answers_follow_their_schemas():
    import json

    document = c.analyze("figure4").to_json()
    schema = json.loads((ROOT / "docs" / "schemas" / "analyze.schema.json").read_text())
    jsonschema.validate(json.loads(json.dumps(document)), schema)


def test_names_of_a_model_are_escaped_in_a_notebook(monkeypatch):
    answer = c.analyze("figure4")
    one = answer.analysis.sets[0]
    monkeypatch.setattr(one, "known_conditions", ["<img src=x onerror=alert(1)> [bold]kept[/bold]"])
    assert "<img" not in answer._repr_html_()
    assert "[bold]kept[/bold]" in str(answer)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: c.analyze(3), "expected a model"),
        (lambda: c.analyze("nowhere"), "nowhere"),
        (lambda: c.check("names", target="nothing"), "unknown target 'nothing'"),
        (lambda: c.check(c.generate("names", calls=["link"]), calls=["link"]), "have their calls"),
        (lambda: c.locks("true"), "expected a command line as a list"),
        (lambda: c.compare_locks("nowhere.json", "nowhere.json"), "nowhere.json: expected what `commutant locks"),
        (lambda: c.generate("names", level="none"), "unknown level"),
    ],
)
def test_wrong_use_is_a_usage_error(wrong, told):
    with pytest.raises(c.UsageError, match=re.escape(told)) as caught:
        wrong()
    assert "\n" not in str(caught.value)


def test_importing_the_package_imports_little():
    program = "import sys, commutant; print([m for m in ('rich', 'z3', 'pyarrow', 'jinja2') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"


def test_an_unknown_attribute_is_one():
    with pytest.raises(AttributeError, match="no attribute 'anaylze'"):
        _ = c.anaylze
    assert {"analyze", "check", "compare_locks", "conform", "generate", "locks"} <= set(dir(c))


def test_a_model_of_a_notebook_is_analysed_anew(tmp_path):
    """The cache tells models apart by their files: a class from a prompt has none."""
    source = (
        "from commutant.lang import Interface, call\nimport commutant as c\n"
        "class Cell(Interface):\n    value: bool\n    def __init__(self):\n        self.value = False\n"
        "    @call\n    def turn(self) -> bool:\n        self.value = {right}\n        return {left}\n"
        "print(c.analyze(Cell).analysis.sets[0].commutative_paths)\n"
    )
    counts = []
    for right, left in (("True", "True"), ("not self.value", "self.value")):
        answer = subprocess.run(
            [sys.executable, "-"],
            input=source.format(right=right, left=left),
            capture_output=True,
            text=True,
            check=True,
            env={"XDG_CACHE_HOME": str(tmp_path), "PATH": ""},
        )
        counts.append(int(answer.stdout))
    assert counts[0] != counts[1]
    assert not list(tmp_path.rglob("*analysis*"))
