"""The case worked through in docs/architecture/conditions.md is what the analyzer and the generator give."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

from tests.repository.tree import ROOT, command

PAGE = (ROOT / "docs" / "architecture" / "conditions.md").read_text()


def test_the_cube_of_open_beside_open() -> None:
    (pair,) = json.loads(command("commutant", "analyze", "names", "--calls", "open,open", "--format", "json"))["sets"]
    said = re.search(r"Of the (\d+) paths of the pair (\d+) commute, and (\w+) conditions", PAGE)
    assert said is not None
    number = {"three": 3, "four": 4, "five": 5}[said[3]]
    assert (int(said[1]), int(said[2]), number) == (pair["paths"], pair["commutative_paths"], len(pair["conditions"]))


def test_the_test_that_comes_of_it(tmp_path: Path) -> None:
    corpus = tmp_path / "open.jsonl.gz"
    command("commutant", "generate", "names", "--calls", "open,open", "-o", str(corpus))
    lines = [json.loads(line) for line in gzip.decompress(corpus.read_bytes()).splitlines()]
    tests = {line["id"]: line for line in lines if "id" in line}
    assert f"makes {len(tests)} tests" in PAGE
    shown = json.loads(re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[-1])
    assert {key: tests[shown["id"]][key] for key in shown} == shown
    assert [order["outcomes"][0]["results"] for order in tests[shown["id"]]["orders"]] == [[0, 0], [0, 0]]
