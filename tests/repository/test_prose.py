"""Pages are for strangers: sentences of 40 words at most, 250 lines but for reference, no names of lost files.

Guides are read by newcomers, so their sentences are shorter; and what a program says has the words of the field, too.

The changelog grows with each release, and a reader reads one release of it.
"""

from __future__ import annotations

import ast
import functools
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository.tree import ROOT, python_files, tracked

PAGES = [file for file in tracked() if file.suffix == ".md"]
MOST_WORDS = 40
MOST_LINES = 250
MOST_WORDS_IN_A_GUIDE = 35
MEDIAN_OF_A_GUIDE = 16

DIALECT = {
    r"\bfor ever\b": "forever",
    r"\b(?:fore)?told\b(?! apart)": "predicted, reported, shown, returned",
    r"\bso many\b": "this many, as many",
    r"\bwhoever\b": "anyone who",
    r"\bnobody\b": "no one",
    r"\bmeanwhile\b": "in the meantime",
    r"\banew\b": "again",
    r"\bbehind (?:the|its|an) (?:new )?end\b": "past the end",
    r"`\w+` beside `\w+`\(": "with, during",
}
"""Words that readers of this field do not use so, and what they would say."""

MADE = {"docs/benchmarks.md", "docs/notes/benchmark-samples.md"}
"""Written by scripts from measurements: rows as they come."""

OF_THE_TREE = ("src/commutant/", "crates/", "tests/", "docs/", "scripts/", "bench/")
"""A piece of code that begins so is the name of a file or folder of this repository."""

WORD = re.compile(r"\d+(?:[.,]\d+)*|\w[\w'’-]*")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|vs|et al|cf|approx|[Nn]o(?=\.\s\d)|Figure|Fig|Sec)\.")


def _prose(text: str) -> str:
    """The page without blocks of code, also those inside lists."""
    return re.sub(r"^(\s*)(```+|~~~+).*?^\s*\2", "", text, flags=re.MULTILINE | re.DOTALL)


def _paragraphs(text: str) -> list[str]:
    """The running text: without code, tables, headings and pictures; items of lists apart."""
    lines = ["" if re.match(r"\s*(\||#+ |!\[|<)", line) else line for line in _prose(text).splitlines()]
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.) )", "\n".join(lines))
    return [" ".join(block.split()) for block in blocks if block.strip()]


def sentences(text: str) -> list[str]:
    """The sentences of a page. A link counts as its text, a piece of code as one word.

    A sentence ends at a full stop, a question mark or an exclamation mark before a word with a capital, a number or a
    piece of code; a colon or a semicolon ends none.
    """
    found = []
    for paragraph in _paragraphs(text):
        plain = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "Code", paragraph)
        plain = re.sub(r"\]\([^)]*\)", "]", plain)
        plain = ABBREVIATION.sub(r"\1", plain)
        found += re.split(r"(?<=[.!?])[)\"”*\]]*\s+(?=\W*[A-Z0-9])", plain)
    return found


def too_long(text: str, limit: int = MOST_WORDS) -> dict[str, int]:
    """The sentences above the limit, with their numbers of words."""
    counted = {sentence: len(WORD.findall(sentence)) for sentence in sentences(text)}
    return {sentence: count for sentence, count in counted.items() if count > limit}


def missing_files(text: str) -> list[str]:
    """Files and folders that a page names in code and that are not in the tree; a star stands for any text."""
    prose = re.sub(r"\]\([^)]*\)", "]", _prose(text))
    named = {name for name in re.findall(r"`([\w./*-]+)(?:::?\w+)*`", prose) if name.startswith(OF_THE_TREE)}
    named |= set(re.findall(r"(?<![\w/`])docs/[\w/.-]+\.\w+", prose))
    return sorted(name for name in named if not _is_there(name.rstrip("/")))


@functools.cache
def _is_there(name: str) -> bool:
    files = [file.relative_to(ROOT) for file in tracked()]
    places = {str(place) for file in files for place in (file, *file.parents)}
    wanted = re.compile("[^/]*".join(re.escape(part) for part in name.split("*")))
    return any(wanted.fullmatch(place) for place in places)


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_sentence_is_longer_than_forty_words(file: Path) -> None:
    if str(file.relative_to(ROOT)) not in MADE:
        assert not too_long(file.read_text())


GUIDES = [file for file in PAGES if file.parent == ROOT / "docs" / "guides"]


@pytest.mark.parametrize("file", GUIDES, ids=lambda file: file.stem)
def test_sentences_of_a_guide_are_short(file: Path) -> None:
    assert not too_long(file.read_text(), MOST_WORDS_IN_A_GUIDE)
    assert statistics.median(len(WORD.findall(one)) for one in sentences(file.read_text())) <= MEDIAN_OF_A_GUIDE


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_page_that_is_no_reference_is_read_to_its_end(file: Path) -> None:
    place = file.relative_to(ROOT)
    if place.parts[:2] != ("docs", "reference") and str(place) not in MADE:
        # A table that is drawn from the sources is looked up, not read.
        text = re.sub(r"(?ms)^<!-- drawn by .*?: begin -->$.*?^<!-- drawn by .*?: end -->$", "", file.read_text())
        parts = re.split(r"(?m)^(?=## )", text) if place.name == "CHANGELOG.md" else [text]
        assert max(len(part.splitlines()) for part in parts) <= MOST_LINES


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(file: Path) -> None:
    assert not missing_files(file.read_text())


def test_pages_without_the_check_are_there() -> None:
    pages = {str(file.relative_to(ROOT)) for file in PAGES}
    assert pages >= MADE


@pytest.mark.parametrize(
    "start", ["Short.\n\n- ", "Heads:\n1. ", "> ", "It has `a.b` (Figure 4), e.g. ", "**Bold**: [a link](x. Y.md) "]
)
def test_a_planted_long_sentence_is_found(start: str) -> None:
    assert not too_long(f"{start}{'word ' * 30}end. And more.")
    (found,) = too_long(f"{start}{'word ' * 20}: {'word; ' * 20}end. And more.")
    assert "word; word" in found


def test_sentences_end_where_a_reader_ends_them() -> None:
    assert sentences("See [the page](a/b.md#c). It ends.") == ["See [the page].", "It ends."]
    assert sentences("Is it so? (No. `x.y` is 3.5 times faster.) 12 are.") == [
        "Is it so?", "(No.", "Code is 3.5 times faster.", "12 are.",
    ]  # fmt: skip
    assert sentences("Clements et al. say so; no. 3, approx. half.") == ["Clements et al say so; no 3, approx half."]
    assert sentences("# A heading. Or two\n\n| a. B | c |\n\n```\nCode. More.\n```\n") == []
    assert sentences("- One\n- two\n\n  ```sh\n  Run. It.\n  ```\n") == ["- One", "- two"]


def test_a_planted_stale_name_is_found() -> None:
    there = "`tests/repository/tree.py::toml`, `src/commutant/interfaces/`, `crates/*/symbolic` and docs/index.md."
    assert not missing_files(there)
    assert missing_files(f"{there}; `src/commutant/no_such_file.py`") == ["src/commutant/no_such_file.py"]
    assert missing_files("see docs/none.md (x) and [docs/two.md](docs/three.md)") == ["docs/none.md", "docs/two.md"]
    assert not missing_files("```sh\npytest `tests/none`\n```\n")


def dialect(text: str) -> dict[str, str]:
    """The words of a page, outside code, that readers would stumble over, with what they would say."""
    plain = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", _prose(text))
    return {
        found[0]: better for pattern, better in DIALECT.items() for found in re.finditer(pattern, plain, re.IGNORECASE)
    }


FROM_SOURCE = (
    "docs/notes/planted-faults.md",
    "docs/notes/benchmark-samples.md",
    "docs/notes/recall.md",
    "docs/benchmarks.md",
)
"""Rows that scripts take from the code, from measurements or from others' messages."""


WRITTEN = [file for file in PAGES if not str(file.relative_to(ROOT)).startswith((*FROM_SOURCE, "docs/gallery/"))]


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_page_has_the_words_of_the_field(file: Path) -> None:
    assert dialect(file.read_text(encoding="utf-8")) == {}


def test_words_of_the_dialect_are_found() -> None:
    found = dialect("Whoever waits for ever is told so, as foretold.\n\n```\nnobody\n```\n`so many`, told apart")
    assert set(found) == {"Whoever", "for ever", "told", "foretold"}


IN_MESSAGES = {**DIALECT, r"\bbehind `?--|:Class behind|behind the last": "after", r"\bbites\b": "has an effect"}
"""What a program says is read without the page around it."""

_LITERAL = re.compile(r'(?<![\'\w])"((?:[^"\\\n]|\\.)*)"')
_COMMENT = re.compile(r"^\s*//.*|\s//[ !/].*$")


def _python_messages(text: str) -> Iterator[tuple[int, str]]:
    """String literals that are no docstrings, and docstrings of what click calls: they are help."""
    tree = ast.parse(text)
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value
        elif isinstance(node, ast.FunctionDef) and any("command" in ast.unparse(one) for one in node.decorator_list):
            yield node.lineno, ast.get_docstring(node) or ""


def _rust_messages(text: str) -> Iterator[tuple[int, str]]:
    """String literals on one line, which is how messages are written, outside comments."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, found[1]) for found in _LITERAL.finditer(_COMMENT.sub("", line)))


def messages_in_dialect(file: Path, text: str) -> list[str]:
    """Lines of a source file whose messages have words that readers of this field do not use so."""
    messages = _python_messages(text) if file.suffix == ".py" else _rust_messages(text)
    return [
        f"{file}:{line}: {found[0]}: say {better}"
        for line, message in messages
        for pattern, better in IN_MESSAGES.items()
        for found in re.finditer(pattern, re.sub(r"\{\w+(?::[^}]*)?\}", "", message), re.IGNORECASE)
        if not _is_identifier(message)
    ]


def _is_identifier(message: str) -> bool:
    """Members of documents and names of classes are kept as they are: others read them."""
    return re.fullmatch(r"\w+", message) is not None


def test_what_the_package_says_has_the_words_of_the_field() -> None:
    files = [*python_files("src/commutant"), *python_files("packages")]
    wrong = [one for file in files for one in messages_in_dialect(file.relative_to(ROOT), file.read_text())]
    assert not wrong, "\n".join(wrong)


def test_what_the_crates_say_has_the_words_of_the_field() -> None:
    files = [file for file in tracked() if file.match("crates/*/*/src/**/*.rs") or file.match("crates/*/*/src/*.rs")]
    assert len(files) > 300
    wrong = [one for file in files for one in messages_in_dialect(file.relative_to(ROOT), file.read_text())]
    assert not wrong, "\n".join(wrong)


def test_a_planted_word_in_a_message_is_found() -> None:
    python = '''def f():\n    """Nobody is told."""\n    raise UsageError("expected a program behind --")\n'''
    (found,) = messages_in_dialect(Path("a.py"), python)
    assert found == "a.py:3: behind --: say after"
    helped = '@cli.command("x")\ndef f():\n    """Waits for ever."""\n'
    assert messages_in_dialect(Path("a.py"), helped) == ["a.py:2: for ever: say forever"]
    rust = '// "nobody"\nlet x = f("nobody receives there"); // "told"\n'
    assert messages_in_dialect(Path("a.rs"), rust) == ["a.rs:2: nobody: say no one"]
