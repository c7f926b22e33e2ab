"""The documents say what is true: links lead somewhere, commands exist, the README's model works as printed."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest

import guide_pictures
from tests.repository.tree import ROOT, command, tracked

DOCUMENTS = [file for file in tracked() if file.suffix == ".md"]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
README = ROOT / "README.md"


def _blocks(file: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", file.read_text(), re.MULTILINE | re.DOTALL)


def _commands() -> list[str]:
    """Every line of a shell block in a document, without prompt, comment and what follows a pipe."""
    lines = [line for file in DOCUMENTS for block in _blocks(file, "sh") for line in block.splitlines()]
    return sorted({re.split(r"\s+#|\s[|>&]", line.removeprefix("$ "))[0].strip() for line in lines} - {""})


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(file: Path) -> None:
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, heading = link.partition("#")
        target = (file.parent / path).resolve() if path else file
        assert target.exists(), f"{link}: no such file"
        if heading:
            assert heading in _anchors(target), f"{link}: no such heading"


@pytest.mark.parametrize("guide", sorted((ROOT / "docs" / "guides").glob("*.md")), ids=lambda guide: guide.stem)
def test_every_guide_has_a_picture(guide: Path) -> None:
    text = re.sub(r"^```.*?^```", "", guide.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert re.search(r"^!\[[^\]]{20,}\]\(", text, re.MULTILINE), "expected a picture with what it shows in words"


def test_pictures_of_guides_are_as_their_script_draws_them() -> None:
    for path, text in guide_pictures.documents().items():
        assert path.read_text() == text, f"{path.name}: run `python scripts/guide_pictures.py`"


def _anchors(file: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@functools.cache
def _help(*verb: str) -> str:
    return command("commutant", *verb, "--help")


@pytest.mark.parametrize("line", [line for line in _commands() if line.split()[0].endswith("commutant")])
def test_documented_commands_exist(line: str) -> None:
    words = line.split()[1:]
    verbs = words[:1] if words and not words[0].startswith("-") else []
    if verbs:
        assert re.search(rf"^  {re.escape(verbs[0])}\b", _help(), re.MULTILINE), f"no verb {verbs[0]}"
        if words[1:] and "\nCommands:\n" in _help(*verbs):
            assert re.search(rf"^  {re.escape(words[1])}\b", _help(*verbs), re.MULTILINE), f"no verb {words[:2]}"
            verbs = words[:2]
    for option in (word.partition("=")[0] for word in words if word.startswith("-") and word != "-"):
        assert re.search(rf"(?<![\w-]){re.escape(option)}\b", _help(*verbs)), f"no option {option}"


@pytest.mark.parametrize("line", [line for line in _commands() if line.split()[0] == "make"])
def test_documented_make_targets_exist(line: str) -> None:
    for target in line.split()[1:]:
        if "=" not in target:
            known = target in TARGETS or re.fullmatch(r"bench-([a-z]+|AREA)", target)
            assert known, f"no target {target}"


def test_every_make_target_says_what_it_does_and_contributing_names_it() -> None:
    described = set(re.findall(r"^([a-z][a-z-]*):[^#\n]*## \S", MAKEFILE, re.MULTILINE))
    assert described == TARGETS
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert not {target for target in TARGETS if f"make {target}" not in contributing}


def test_continuous_integration_runs_what_a_newcomer_runs() -> None:
    lines = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ["set -eu", 'cd "$(dirname "$0")/.."', "exec make test ALL=1"]
    assert "make test ALL=1" in README.read_text()


def test_the_model_in_the_readme_is_the_one_that_ships(tmp_path: Path) -> None:
    """The README's Python block is a whole model file: analysing it gives what analysing `figure4` gives."""
    (model,) = _blocks(README, "python")
    file = tmp_path / "figure4.py"
    file.write_text(model)
    options = ["--calls", "rename,rename", "--format", "json"]
    written = json.loads(command("commutant", "analyze", str(file), *options))
    shipped = json.loads(command("commutant", "analyze", "figure4", *options))
    assert written["sets"] == shipped["sets"]


def test_the_readme_shows_the_heat_maps_of_two_runs() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.read_text())
    assert pictures == ["docs/figure6.svg"]
    for picture in pictures:
        assert (ROOT / picture).read_bytes().lstrip().startswith(b"<svg")


def test_the_readme_leads_to_the_index_and_the_index_to_every_page() -> None:
    docs = ROOT / "docs"
    assert "](docs/index.md)" in README.read_text()
    index = (docs / "index.md").read_text()
    pages = {str(file.relative_to(docs)) for file in DOCUMENTS if docs in file.parents} - {"index.md"}
    assert not {page for page in pages if f"]({page})" not in index}


def test_a_page_is_a_guide_a_reference_or_a_note() -> None:
    docs = ROOT / "docs"
    folders = {file.relative_to(docs).parts[0] for file in DOCUMENTS if docs in file.parents and file.parent != docs}
    assert folders <= {"architecture", "gallery", "guides", "reference", "notes"}
    assert {file.name for file in docs.glob("*.md")} == {"ARCHITECTURE.md", "benchmarks.md", "index.md"}
