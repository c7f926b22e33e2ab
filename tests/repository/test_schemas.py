"""The schemas in docs/schemas are schemas, have a name and a version, and hold what the command line prints."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import jsonschema
import pytest

import schemas
from tests.repository.tree import ROOT, command, python_files, tracked

SCHEMAS = sorted((ROOT / "docs" / "schemas").glob("*.schema.json"))


def test_there_is_a_schema_for_every_document() -> None:
    names = {file.name.removesuffix(".schema.json") for file in SCHEMAS}
    assert {"analyze", "generate", "corpus", "summary", "run"} <= names


def test_schemas_that_sources_name_exist() -> None:
    sources = [file for file in tracked() if file.suffix in (".py", ".rs", ".html")]
    named = {name for file in sources for name in re.findall(r"docs/schemas/(\w+\.schema\.json)", file.read_text())}
    assert named and named <= {file.name for file in SCHEMAS}


@pytest.mark.parametrize("file", SCHEMAS, ids=lambda file: file.name)
def test_schema_is_valid_and_described(file: Path) -> None:
    schema = json.loads(file.read_text())
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]
    jsonschema.Draft202012Validator.check_schema(schema)


def test_every_schema_is_written_from_a_declaration() -> None:
    """Once 3,126 lines of them were written by hand."""
    assert {file.name.removesuffix(".schema.json") for file in SCHEMAS} == set(schemas.SCHEMAS)


CHECKED_BY_HAND = ("src/commutant/corpus/testcase.py", "src/commutant/corpus/values.py")
"""All functions there count as readers: the corpus is read and checked without msgspec."""


def test_readers_and_writers_by_hand_are_a_fifth_of_what_they_were() -> None:
    """3,695 lines with the schemas, at first; `pytest -s` prints today's."""
    lines = {}
    for file in python_files("src/commutant"):
        path = str(file.relative_to(ROOT))
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and ("json" in node.name or path in CHECKED_BY_HAND):
                assert node.end_lineno is not None
                lines[f"{path}: {node.name}, line {node.lineno}"] = node.end_lineno - node.lineno + 1
    print(f"readers and writers by hand: {sum(lines.values())} lines in {len(lines)} functions")
    assert sum(lines.values()) <= 3695 // 5


@pytest.mark.parametrize("verb", ["analyze", "generate"])
def test_what_a_verb_prints_fits_its_schema(verb: str, tmp_path: Path) -> None:
    arguments = [verb, "figure4", "--calls", "rename,rename", "--format", "json"]
    if verb == "generate":
        arguments += ["-o", str(tmp_path / "corpus")]
    document = json.loads(command("commutant", *arguments))
    schema = json.loads((ROOT / "docs" / "schemas" / f"{verb}.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["sets"][0]["calls"] == ["rename", "rename"]


@pytest.mark.parametrize("name", schemas.SCHEMAS)
def test_a_schema_is_as_the_document_is_declared(name: str) -> None:
    """`python scripts/schemas.py` writes them again."""
    assert (schemas.FOLDER / f"{name}.schema.json").read_text() == schemas.text_of(name)
